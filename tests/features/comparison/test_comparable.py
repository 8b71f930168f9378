# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Comparable and incomparable runs, each refusal one sentence, and the exit code of each answer."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
import zlib

import fabricate
import pytest
from doorway import jaxbench
from thin import thin

from jaxbench.errors import UserError
from jaxbench.features.comparison import calibration, comparable
from jaxbench.statistics import bootstrap


def run(path, *, slower=1.0, seed=None, processes=4, drift=0.002, noise=0.002, **changes):
    options = dict(
        devices=(1, 2), scalings=("strong",), rounds=4 * processes, processes=processes,
        seed=zlib.crc32(path.name.encode()) if seed is None else seed,
        base_step_s=0.01 * slower, drift=drift, noise=noise,
    )  # fmt: skip
    return fabricate.run_folder(path, **{**options, **changes})


def edit(folder, name, **changes):
    path = folder / name
    held = json.loads(path.read_text())
    held.update(changes)
    path.write_text(json.dumps(held))
    return folder


def rewrite(path, old, new):
    path.write_text(re.sub(old, new, path.read_text()))


def pair(a, b, *across):
    return comparable.pair(comparable.read(a), comparable.read(b), across)


def test_points_are_matched_by_what_was_measured(tmp_path):
    a, b = run(tmp_path / "a"), run(tmp_path / "b", devices=(2, 4), seed=1)
    found = pair(a, b)
    assert list(found.a) == list(found.b) == ["shard_map/strong/2"]
    assert found.left_out == (("shard_map/strong/1", "not in B"), ("shard_map/strong/4", "not in A"))
    assert [len(rounds) for rounds in found.a["shard_map/strong/2"].processes] == [4] * 4


def test_a_difference_is_refused_with_its_values_until_it_is_the_question(tmp_path):
    a = run(tmp_path / "a")
    b = edit(run(tmp_path / "b"), "config.json", model={"dtype": "bfloat16"})
    with pytest.raises(UserError, match=r"model.dtype is 'float32' in A and 'bfloat16' in B.*--across=model.dtype"):
        pair(a, b)
    assert list(pair(a, b, "model.dtype").a) == list(pair(a, b, "model").a)
    with pytest.raises(UserError, match="--across=batch: A and B do not differ.*they differ in model.dtype"):
        pair(a, b, "model", "batch")


def test_another_allocator_is_a_difference_and_the_default_is_none(tmp_path):
    """It stands among the settings of how a run is measured, which do not count: but it changes the speed."""
    a = run(tmp_path / "a")  # from before the setting
    same = edit(run(tmp_path / "same", seed=1), "config.json", measure={"allocator": "system"})
    other = edit(run(tmp_path / "other", seed=2), "config.json", measure={"allocator": "mimalloc"})
    assert list(pair(a, same).a)
    with pytest.raises(UserError, match="measure.allocator is 'system' in A and 'mimalloc' in B"):
        pair(a, other)
    assert list(pair(a, other, "measure.allocator").a)
    assert comparable.measured(comparable.read(a)) != comparable.measured(comparable.read(other))


def test_all_differences_are_listed_at_once(tmp_path):
    a = run(tmp_path / "a")
    edit(a, "manifest.json", device_kind="A100", cores=2)
    b = edit(edit(run(tmp_path / "b"), "config.json", weak="model"), "manifest.json", device_kind="H100", cores=3)
    with pytest.raises(UserError, match="device_kind.*cores.*weak"):
        pair(a, b)


EPYC = {
    "cpu_model": "AMD EPYC",
    "identity": {
        "family": "25", "model": "17", "kernel": "6.1.0", "instruction_sets": ["avx2", "avx512f"],
        "product_s": 0.00112, "product_by": "numpy 2.4.6",
    },
}  # fmt: skip
OTHERS = {
    "family": ({"family": "23"}, "identity.family is '25' in A and '23' in B"),
    "flags": ({"instruction_sets": ["avx2"]}, "identity.instruction_sets is 'avx512f' in A and 'none' in B"),
    "kernel": ({"kernel": "6.2.0"}, "identity.kernel is '6.1.0' in A and '6.2.0' in B.*--across=identity.kernel"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_machine_of_the_same_name_is_refused(tmp_path, other):
    """A run on another processor with the same cloud name "AMD EPYC" was reported as "6.6 times slower"."""
    change, said = OTHERS[other]
    a = edit(run(tmp_path / "a"), "manifest.json", **EPYC)
    there = {**EPYC, "identity": {**EPYC["identity"], **change}}
    b = edit(run(tmp_path / "b", slower=6.6), "manifest.json", **there)
    with pytest.raises(UserError, match=said):
        pair(a, b)
    (name,) = change
    assert pair(a, b, f"identity.{name}").a


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.00112 * 1.1, ""), (0.00224, "2.0 times slower in B"), (0.00056, "in A")]
)
def test_another_speed_of_the_same_machine_explains_and_does_not_refuse(tmp_path, seconds, said):
    a = edit(run(tmp_path / "a"), "manifest.json", **EPYC)
    then = {**EPYC, "identity": {**EPYC["identity"], "product_s": seconds}}
    b = edit(run(tmp_path / "b", slower=1.9), "manifest.json", **then)
    found = pair(a, b).software
    assert len(found) == bool(said) and said in "".join(found)
    if said:
        assert pair(a, b, "identity.product_s").a  # declared, as an older version asked for


def test_machines_that_cannot_be_told_apart_are_said(tmp_path):
    a, b = (edit(run(tmp_path / name), "manifest.json", **EPYC) for name in "ab")
    assert pair(a, b).software == ()
    held = json.loads((b / "manifest.json").read_text())
    del held["identity"]
    (b / "manifest.json").write_text(json.dumps(held))
    (said,) = pair(a, b).software
    assert "another processor of the same name would not be noticed" in said


def test_a_declared_difference_is_no_difference_of_software(tmp_path):
    """The batch is declared to differ, so the resulting examples, FLOPs and bytes are no further differences."""
    config = {"batch": 256}
    a, b = run(tmp_path / "a", config=config), run(tmp_path / "b", slower=1.9, config={"batch": 512})
    for name in ("records.jsonl", "manifest.json"):
        (b / name).write_text(re.sub(r'"global_batch":( ?)256', r'"global_batch":\g<1>512', (b / name).read_text()))
    assert comparable.models(*map(comparable.read, (a, b)))
    assert pair(a, b, "batch").software == ()


def remodel(folder, **compile_report):
    """The same run with other facts in its compile reports."""
    fabricate.edit(folder, lambda line: line.get("compile_report", {}).update(compile_report))
    return folder


def test_another_model_is_refused_until_it_is_the_question(tmp_path):
    """85,002 against 3,466 parameters were reported as "faster, 0.243": the experiment imported another model."""
    a = run(tmp_path / "a")
    b = remodel(run(tmp_path / "b", slower=0.243), parameters=3_466, expected_gradient_bytes=13_864)
    with pytest.raises(UserError, match="parameters is 61706 in A and 3466 in B; gradient_bytes is .*13864 in B"):
        pair(a, b)
    assert "parameters: 61,706 in A, 3,466 in B" in pair(a, b, "parameters", "gradient_bytes").software
    with pytest.raises(UserError, match="--across=gradient_bytes"):
        pair(a, b, "parameters")


@pytest.mark.parametrize(
    ("config", "across", "compile_report", "refused"),
    [
        ({"batch": 512}, "batch", {"flops_per_step": 6.4e9, "compiler_flops_per_step": 6.4e9}, False),
        ({"batch": 512}, "batch", {"parameters": 3_466}, True),
        ({"lever": {"accumulate": "2"}}, "lever", {"expected_gradient_bytes": 1}, False),
        ({"lever": {"freeze": "backbone"}}, "lever", {"parameters": 3_466}, False),
        ({"model": {"dtype": "float32", "width": 8}}, "model.width", {"parameters": 3_466}, False),
        ({}, "", {"flops_per_step": 6.4e9}, True),
    ],
)
def test_consequences_of_a_declared_difference_may_differ(tmp_path, config, across, compile_report, refused):
    a, b = (run(tmp_path / name, config={"batch": 256, "model": {"dtype": "float32"}}) for name in "ab")
    if "batch" in config:
        b = run(tmp_path / "c", batch=config["batch"])
    b = edit(remodel(b, **compile_report), "config.json", **config)
    if refused:
        with pytest.raises(UserError, match="(parameters|flops) is [^;]* in A and"):
            pair(a, b, *filter(None, [across]))
    else:
        assert pair(a, b, across).a


def test_versions_are_said_and_not_refused(tmp_path):
    a, b = run(tmp_path / "a"), edit(run(tmp_path / "b"), "manifest.json", versions={"jax": "9.9"})
    assert pair(a, b).software == ("versions.jax: 0.10.2 in A, 9.9 in B",)


def test_another_strategy_is_a_difference_too(tmp_path):
    a, b = run(tmp_path / "a"), run(tmp_path / "b", strategies=("pmap",))
    with pytest.raises(UserError, match="--across=strategy"):
        pair(a, b)
    assert list(pair(a, b, "strategy").a) == ["strong/1", "strong/2"]
    both = run(tmp_path / "c", strategies=("pmap", "shard_map"))
    with pytest.raises(UserError, match="A and B do not differ"):
        pair(a, both, "strategy")


def test_failed_and_wrong_points_are_left_out_with_their_reason(tmp_path):
    a = run(tmp_path / "a", wrong=("shard_map/strong/2",))
    assert pair(a, run(tmp_path / "b")).left_out == (
        ("shard_map/strong/2", "incorrect in A (parameters: differ from those of one device)"),
    )
    with pytest.raises(UserError, match="no point was measured and correct in both"):
        pair(run(tmp_path / "c", wrong=("shard_map/strong/1", "shard_map/strong/2")), a)


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda run: run.rename(run.with_name("gone")), "is not a run folder"),
        (lambda run: (run / "manifest.json").unlink(), "manifest.json"),
        (lambda run: edit(run, "manifest.json", plan=None), "plan: None is not an object"),
        (lambda run: edit(run, "manifest.json", plan={}), "no sweep plan"),
        (lambda run: (run / "records.jsonl").write_text(""), "no measured round"),
        (lambda run: rewrite(run / "records.jsonl", r'"schema": ?1', '"schema":7'), "schema 7"),
        (lambda run: rewrite(run / "records.jsonl", r'"block_s": ?\[', '"block_s":["x",'), "is damaged"),
    ],
)  # fmt: skip
def test_an_incomplete_run_is_one_sentence(tmp_path, break_it, said):
    a, b = run(tmp_path / "a"), run(tmp_path / "b")
    break_it(b)
    with pytest.raises(UserError, match=said) as caught:
        pair(a, b)
    assert "\n" not in str(caught.value)


def test_one_run_twice_or_its_copy_is_refused(tmp_path):
    a = run(tmp_path / "a")
    (tmp_path / "link").symlink_to(a)
    with pytest.raises(UserError, match="give two runs"):
        pair(a, tmp_path / "link")
    shutil.copytree(a, tmp_path / "b")
    done = jaxbench("compare", f"--a={a}", f"--b={tmp_path / 'b'}")
    assert done.returncode == 3 and "one is a copy" in done.stderr


ANSWERS = [
    (dict(slower=1.2), (), 1, "Slower"),
    (dict(slower=0.8), (), 0, "Faster"),
    (dict(seed=1), ("--margin=0.2",), 0, "Same"),
    (dict(seed=1), (), 2, "runs at two times differ by 3 % (assumed)"),
    (dict(slower=1.2), ("--metric=throughput",), 1, "Slower"),
    (dict(slower=1.02, processes=1), (), 2, "annot tell"),
    (dict(devices=(4,)), (), 3, "devices is"),
    (dict(seed=1), ("--margin=7",), 3, "--margin=7"),
    (dict(seed=1), ("--metric=speed",), 3, "--metric=speed"),
    (dict(seed=1), ("--across=batch",), 3, "do not differ"),
    (dict(seed=1), ("much",), 3, "unexpected argument"),
]


@pytest.mark.parametrize(("b", "words", "code", "said"), thin(ANSWERS, 1))
def test_the_doorway_answers_with_its_exit_code(tmp_path, b, words, code, said):
    a, b = run(tmp_path / "a"), run(tmp_path / "b", **b)
    done = jaxbench("compare", f"--a={a}", f"--b={b}", f"--workdir={tmp_path / 'out'}", *words)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr and "Traceback" not in done.stderr
    if code < 3:
        assert json.loads((tmp_path / "out" / "comparison.json").read_text())["exit_code"] == code
        assert (tmp_path / "out" / "figures" / "comparison.svg").stat().st_size
    else:
        assert len(done.stderr.strip().splitlines()) == 1


def test_a_baseline_is_whole_and_is_never_replaced(tmp_path):
    a, folder = run(tmp_path / "a"), tmp_path / "baselines"
    kept = comparable.keep_baseline(a, "main-cnn", folder)
    assert list(comparable.samples_of(comparable.read(kept))) == ["shard_map/strong/1", "shard_map/strong/2"]
    assert comparable.find_baseline("main-cnn", folder) == kept
    with pytest.raises(UserError, match="there is a baseline 'main-cnn' already"):
        comparable.keep_baseline(a, "main-cnn", folder)
    with pytest.raises(UserError, match="no baseline 'main-cn': did you mean 'main-cnn'"):
        comparable.find_baseline("main-cn", folder)
    with pytest.raises(UserError, match="cannot be a baseline.*: shard_map/strong/2"):
        comparable.keep_baseline(run(tmp_path / "b", wrong=("shard_map/strong/2",)), "other", folder)
    assert [path.name for path in folder.iterdir()] == ["main-cnn"]


@pytest.mark.parametrize("name", ["../x", "/etc", "", ".", "a b", "a/b", "-x", "x\n", "a" * 300])
def test_no_name_leaves_the_folder(tmp_path, name):
    with pytest.raises(UserError, match="not a valid name"):
        comparable.baseline_path(name, tmp_path)


def test_a_calibration_is_of_its_machine_and_experiment(tmp_path):
    side = comparable.samples_of(comparable.read(run(tmp_path / "a", processes=8)))
    found = calibration.calibrate(side, "cnn", "2026-01-01")
    assert 0.0002 < found.sd < 0.004 and found.comparisons == 35 and found.alarms == 0 and found.threshold < 0.005
    assert found.df == 7  # both points were measured by the same processes
    here, there = {"platform": "cpu", "cores": 2}, {"platform": "cpu", "cores": 3}
    calibration.save(here, found, tmp_path)
    assert calibration.load(here, "cnn", tmp_path) == calibration.load(here, "mlp", tmp_path) == found
    assert calibration.load(there, "cnn", tmp_path) is None
    assert calibration.spread_of(there, "cnn", tmp_path) is calibration.ASSUMED
    with pytest.raises(UserError, match="measured by 4 processes: a calibration needs at least 6"):
        calibration.calibrate(comparable.samples_of(comparable.read(run(tmp_path / "b"))), "cnn", "")
    twin = {**here, "identity": {"family": "23"}}
    assert calibration.load(twin, "cnn", tmp_path) == found  # nothing is known about the calibrated one
    assert "another processor of the same name" in calibration.spread_of(twin, "cnn", tmp_path).source
    noisy = tuple(dataclasses.replace(session, sd=0.1) for session in found.sessions)
    other = dataclasses.replace(found, sd=0.1, sessions=noisy, experiment="mlp")
    for manifest, each in (({**here, "identity": {"family": "25"}}, found), (twin, other)):
        calibration.save(manifest, each, tmp_path / "two")
    assert calibration.load(twin, "cnn", tmp_path / "two") == other
    assert calibration.load({**here, "identity": {"family": "25"}}, "mlp", tmp_path / "two") == found
    assert calibration.spread_of(twin, "cnn", tmp_path / "two").source == (
        "calibrated on this machine with mlp in 1 run, at 2026-01-01"
    )
    (tmp_path / calibration.FILE).write_text('{"schema": 1}')
    with pytest.raises(UserError, match="is damaged"):
        calibration.load(here, "cnn", tmp_path)


def test_sessions_apart_in_time_show_how_days_differ():
    """The threshold of one session was used for two days."""

    def session(hour, log, software="x"):
        own = calibration.CalibrationSession(
            time=f"2026-01-01T{hour:02}:00:00+00:00", sd=0.01, df=7, logs={"p": log}, software=software
        )
        facts = dict(threshold=0.01, comparisons=35, alarms=0, experiment="cnn", time=own.time)
        return calibration.Calibration(sd=own.sd, df=own.df, sessions=(own,), **facts)

    two = session(4, 0.04).after(session(2, 0.0).after(None))
    assert math.isnan(two.session_sd) and two.spread.session_kind == "assumed" and two.spread.session_sd == 0.03
    three = session(6, 0.02).after(two)
    assert three.session_sd == pytest.approx(0.02) and (three.spread.session_df, three.df) == (2, 21)
    assert three.spread.session_kind == "calibrated"
    assert three.spread.source.endswith("with cnn in 3 runs, the newest at 2026-01-01T06:00:00+00:00")
    assert len(session(6, 0.0).after(session(6, 0.0)).sessions) == 1, "the same moment again"
    assert len(session(8, 0.0, software="y").after(three).sessions) == 1, "other software is no repetition"


def test_an_edited_calibration_is_damaged(tmp_path):
    here = {"platform": "cpu"}
    own = calibration.CalibrationSession(time="2026-01-01T02:00:00+00:00", sd=0.03, df=7, logs={"p": 0.0})
    facts = dict(threshold=0.01, comparisons=35, alarms=0, experiment="cnn", time=own.time, sd=0.03, df=7)
    path = calibration.save(here, calibration.Calibration(**facts, sessions=(own,)), tmp_path)
    assert calibration.load(here, "cnn", tmp_path).sd == 0.03
    file = json.loads(path.read_text())
    for machine in file["machines"].values():
        machine["cnn"]["sd"] = 0.0001
    path.write_text(json.dumps(file))
    with pytest.raises(UserError, match="is damaged .its numbers were changed after it was written"):
        calibration.load(here, "cnn", tmp_path)


def test_a_calibration_of_one_session_from_before_is_read_and_said(tmp_path):
    old = dict(sd=0.01, df=7, threshold=0.02, comparisons=35, alarms=0, experiment="cnn", time="2026-01-01")
    key = calibration.machine_key({"platform": "cpu"})
    (tmp_path / calibration.FILE).write_text(json.dumps({"schema": 1, "machines": {key: {"cnn": old}}}))
    found = calibration.spread_of({"platform": "cpu"}, "cnn", tmp_path)
    assert (found.sd, found.kind, found.session_sd, found.session_kind) == (0.01, "calibrated", 0.03, "assumed")
    calibration.adopt(tmp_path, {"platform": "cpu"}, "cnn", tmp_path)
    assert bootstrap.read_spread(tmp_path) == found
