# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The command line: the results of right and wrong input."""

import csv
import json
import shutil
import subprocess
import sys

import pytest
from doorway import QUICK, QUICK_MLP, ROOT, environment, jaxbench
from thin import thin

from jaxbench import discovery
from jaxbench.core.store import lock_folder

COLUMNS = (
    "experiment,strategy,scaling,devices,processes,platform,oversubscribed,global_batch,step_s,step_s_lo,step_s_hi,samples,"
    "throughput,throughput_unit,speedup,speedup_lo,speedup_hi,efficiency,efficiency_lo,efficiency_hi,compile_s,peak_bytes,"
    "check_ok,status"
).split(",")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doorway") / "run"
    done = jaxbench("run", "mlp", f"--workdir={folder}", *QUICK_MLP)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_version_is_a_line():
    done = jaxbench("--version")
    assert done.returncode == 0 and done.stdout.startswith("jaxbench ") and done.stdout.count("\n") == 1


def test_a_run_folder_holds_everything(run):
    for name in ("manifest.json", "config.json", "records.jsonl", "summary.csv", "report.html"):
        assert (run / name).stat().st_size
    rows = list(csv.DictReader((run / "summary.csv").read_text().splitlines()))
    assert list(rows[0])[: len(COLUMNS)] == COLUMNS
    assert [(r["devices"], r["status"], r["check_ok"]) for r in rows] == [("1", "ok", "true"), ("2", "ok", "true")]
    assert all(float(r["step_s"]) > 0 and float(r["compile_s"]) > 0 for r in rows)


@pytest.mark.full
def test_a_finished_run_started_again_measures_nothing(run):
    before = (run / "records.jsonl").read_bytes()
    assert jaxbench("run", "mlp", f"--workdir={run}", *QUICK_MLP).returncode == 0
    assert (run / "records.jsonl").read_bytes() == before


@pytest.mark.full
def test_report_needs_no_jax(run):
    code = "import sys; sys.modules['jax'] = None; from jaxbench.report import build; build.write(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(run)], check=True, env=environment())
    assert jaxbench("report", f"--run={run}").returncode == 0


@pytest.mark.full
def test_a_damaged_last_line_is_repaired_and_said(run, tmp_path):
    copy = copy_of(run, tmp_path)
    with open(copy / "records.jsonl", "rb+") as file:
        file.truncate((copy / "records.jsonl").stat().st_size - 20)
    done = jaxbench("run", "mlp", f"--workdir={copy}", *QUICK_MLP)
    assert done.returncode == 0, done.stderr
    assert "the last line was cut off" in " ".join(done.stdout.split())


def copy_of(run, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("manifest.json", "config.json", "records.jsonl"):
        (copy / name).write_bytes((run / name).read_bytes())
    return copy


@pytest.mark.full
def test_damage_elsewhere_is_named_and_nothing_is_lost(run, tmp_path):
    copy = copy_of(run, tmp_path)
    lines = (copy / "records.jsonl").read_text().splitlines(keepends=True)
    for text, sentence in [
        ("".join([lines[0], "garbage\n", *lines[1:]]), "line 2 is damaged"),
        (json.dumps({**json.loads(lines[0]), "schema": 99}) + "\n", "has schema 99"),
    ]:
        (copy / "records.jsonl").write_text(text)
        done = jaxbench("run", "mlp", f"--workdir={copy}", *QUICK_MLP)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert (copy / "records.jsonl").read_text() == text


@pytest.mark.full
def test_another_config_or_experiment_is_refused(run):
    done = jaxbench("run", "mlp", f"--workdir={run}", *QUICK_MLP, "--config.batch=32")
    assert done.returncode == 2
    assert "batch was 16 and is now 32" in done.stderr


WRONG = [
    (["run", "cnnn"], "did you mean 'cnn'?"),
    (["run"], "takes one experiment"),
    (["new"], "jaxbench new takes one file to write: jaxbench new mine.py"),
    (["runn", "cnn"], "did you mean 'run'?"),
    (["run", "cnn", "--preset=smok"], "did you mean 'smoke'?"),
    (["run", "cnn", "--config.model.widht=3"], "did you mean 'model.width'?"),
    (["run", "cnn", "--config.model.width=wide"], "is not a whole number"),
    (["run", "cnn", "--presett=smoke"], "did you mean 'preset'?"),
    (["run", "cnn", "--config=x.py"], "'--config=x.py'"),
    (["run", "cnn", "--config.mesh.platform=gpu"], "a GPU was requested"),
    (["run", "cnn", "--config.mesh.platform=cpu", "--config.mesh.devices=3"], "does not divide over 3 devices"),
    (["run", "cnn", *QUICK, "--config.optimizer.name=sdg"], "did you mean 'sgd'?"),
    (["run", "cnn", *QUICK, "--workdir=/proc/nothing"], "cannot write to '/proc/nothing'"),
    (["new", "no/such/folder/mine.py"], "cannot use 'no/such/folder/mine.py' (No such file or directory)."),
    (["run", "cnn", "--config.experiment=<b>x</b>"], "--config.experiment cannot be set"),
    (["run", "cnn", "--config.report.view=nosuch"], "choose one of: context, contrastive"),
    (["run", "cnn", "--dry_run=maybe"], "--dry_run=maybe is not true or false"),
    (["run", "cnn", "--nodry_run=3"], "--nodry_run=3 does not take an argument"),
    (["run", "cnn", "x"], "unexpected argument 'x'"),
    (["run", "cnn", "--margin=3"], "jaxbench run does not take --margin"),
    (["try", "cnn", "--config.optimizer.name=adamm"], "did you mean 'adam'?"),
    (["try", "cnn", "--config.strategy=pmap"], "--config.strategy=pmap has no effect on jaxbench try"),
    (["try", "cnn", "--config.lever.remat=full"], "--config.lever.remat=full has no effect on jaxbench try"),
    (["run", "matmul", "--price_per_hour=1"], "--price_per_hour needs a model, which has steps"),
    (["report"], "jaxbench report needs --run: jaxbench report --run=DIR."),
    (["report", "--run=/no/such"], "'/no/such' is not a folder"),
]


@pytest.mark.parametrize(("words", "sentence"), thin(WRONG, 3))
def test_bad_input_is_one_sentence(words, sentence, tmp_path):
    done = jaxbench(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_verbosity_shows_the_stack_trace():
    done = jaxbench("run", "cn", "--verbosity=1")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_list_names_every_experiment_and_preset():
    done = jaxbench("list")
    assert done.returncode == 0
    for name in [*discovery.experiments(), *discovery.presets()]:
        assert f"  {name} " in done.stdout


@pytest.mark.full
def test_dry_run_measures_and_writes_nothing(tmp_path):
    impatient = "from jaxbench.sweep import progress; progress.SILENT_S = 1; from jaxbench import app; app.main()"
    words = [sys.executable, "-c", impatient, "run", "mlp", "--dry_run", *QUICK_MLP]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "s: 0 of 2 points compiled" in done.stdout, "a log is never silent for long"
    assert "jit_auto/strong/2" in done.stdout
    assert "Nothing was run or written" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_strategy_is_caught_and_exits_non_zero(tmp_path):
    """A well-known mistake, as a strategy file: the loss is right, the update n times too large."""
    (tmp_path / "strategies").mkdir()
    shutil.copy(ROOT / "tests" / "broken_strategies" / "naive.py", tmp_path / "strategies")
    mlp = (ROOT / "experiments" / "mlp.py").read_text()
    append = f"strategies.__path__.append({str(tmp_path / 'strategies')!r})"
    (tmp_path / "mine.py").write_text(f"{mlp}\nfrom jaxbench.parallel import strategies\n{append}\n")
    words = [word for word in QUICK_MLP if not word.startswith("--config.strategy")]
    words += ["--config.strategy=naive", "--config.mesh.devices=2"]
    done = jaxbench("run", "mine.py", "--workdir=run", *words, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    rows = list(csv.DictReader((tmp_path / "run" / "summary.csv").read_text().splitlines()))
    assert [(r["devices"], r["check_ok"]) for r in rows] == [("2", "false")]
    assert "NOT within 1e-05" in " ".join(done.stdout.split())


@pytest.mark.full
def test_two_runs_in_one_folder_are_kept_apart(run):
    with lock_folder(run):
        done = jaxbench("run", "mlp", f"--workdir={run}", *QUICK_MLP)
    assert done.returncode == 2
    assert "another process is using" in done.stderr


@pytest.mark.full
def test_a_training_is_no_place_for_measurements(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    done = jaxbench("run", "mlp", f"--workdir={tmp_path}", *QUICK_MLP)
    assert done.returncode == 2
    assert "contains a training" in done.stderr
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == ["checkpoints"]


@pytest.mark.full
def test_a_file_next_to_the_model_named_like_a_library_does_no_harm(run, tmp_path):
    (tmp_path / "queue.py").write_text("raise SystemExit('imported')")
    text = (ROOT / "experiments" / "mlp.py").read_text()
    text = text.replace("    config.optimizer =", "    config.model.x = (1, 2)\n    config.optimizer =")
    (tmp_path / "mine.py").write_text(text)
    for _ in range(2):  # the second time it continues: a tuple in the config is read as a list
        command = [sys.executable, "-P", "-m", "jaxbench", "run", "mine.py", "--workdir=out", *QUICK_MLP]
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
