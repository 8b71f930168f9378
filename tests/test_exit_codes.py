# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The table of exit codes in docs/USAGE.md: each code of each verb is produced by a command."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import brought
import fabricate
import pytest
from doorway import QUICK_MLP, ROOT, jaxbench
from rich.console import Console
from thin import thin

from jaxbench import verbs
from jaxbench.commandline import VERBS
from jaxbench.features.accept.outcome import Acceptance, HostResult, Judged
from jaxbench.features.comparison import judge

Words = Callable[[Path], tuple[str, ...]]
ONE = (*QUICK_MLP, "--config.mesh.devices=1")
TRAIN = ("train", "mlp", "--config.mesh.devices=1", "--config.mesh.platform=cpu", "--config.train.epochs=1")
ACCEPT = ("--probes=triad", "--budget_s=2", "--devices=cpu:1")
LAUNCH = ("launch", "mpi", "--devices=cpu:1", "--dry_run")


def made(path: Path, *, lie: Callable[[dict[str, Any]], None] | None = None, **facts: Any) -> Path:
    """A run folder. A `lie` may change its records."""
    fabricate.run_folder(path, devices=(1, 2), scalings=("strong",), rounds=12, processes=3, noise=0.002, **facts)
    if lie is not None:
        fabricate.edit(path, lie)
    return path


def clocks_disagree(line: dict[str, Any]) -> None:
    """An additional step costs 1.7 times the time of a step."""
    if line["kind"] == "round":
        line["double_block_s"] = [1.35 * seconds for seconds in line["double_block_s"]]


def clocks_disagree_under_load(line: dict[str, Any]) -> None:
    """The same while another process uses half of the CPUs: it preempts the longer blocks."""
    clocks_disagree(line)
    if line["kind"] == "round":
        blocks = [*line["block_s"], *line["double_block_s"]]
        line |= {"cpu_s": [0.5 * each for each in blocks], "others_s": [0.1 + each for each in blocks], "cpus": 2}


def work_does_not_grow(line: dict[str, Any]) -> None:
    if line["kind"] == "round":
        line["double_block_s"] = line["block_s"][:2]


def above_the_peak(line: dict[str, Any]) -> None:
    if line["kind"] == "round":
        line |= {name: [seconds / 1e6 for seconds in line[name]] for name in ("block_s", "double_block_s")}


def two(a: dict[str, Any], b: dict[str, Any]) -> Words:
    """The arguments that compare two runs."""
    return lambda path: ("compare", f"--a={made(path / 'a', **a)}", f"--b={made(path / 'b', seed=1, **b)}")


def printed(path: Path, tokens_per_step: int) -> str:
    """A printed table with one row."""
    (path / "table.csv").write_text(f"gpus,tokens/s/gpu,step time (s),tokens per step\n8,12.5,10.0,{tokens_per_step}\n")
    return str(path / "table.csv")


def of_a_faster_machine(path: Path) -> Path:
    """The result of a test on a machine with a memory that is a hundred times as fast as any."""
    cell = Judged(host="fast", device="0", unit="0", probe="triad", verdict="pass", rate=1e13)
    host = HostResult(name="fast", verdict="pass", kinds=("cpu",))
    times = {"started": "2026-01-01T00:00:00+00:00", "finished": "2026-01-01T00:01:00+00:00", "seconds": 60.0}
    facts = {"verdict": "pass", "margin": 0.05, "against": (), "level": 0.01, "rounds": 9, "sentences": ()}
    made = Acceptance(schema=1, hosts=(host,), cells=(cell,), **times, **facts)  # type: ignore[arg-type]
    (path / "card.json").write_text(json.dumps(made.document()))
    return path / "card.json"


def mine(path: Path) -> tuple[str, ...]:
    """A model that states a million times its FLOPs, so that every point is impossible."""
    text = (ROOT / "experiments" / "mlp.py").read_text()
    text += "\n_build = build\ndef build(config):\n    import dataclasses\n    made = _build(config)\n"
    (path / "mine.py").write_text(text + "    return dataclasses.replace(made, flops_per_example=1e15)\n")
    return "run", str(path / "mine.py"), *ONE


def unmoved(path: Path) -> tuple[str, ...]:
    """A model that no strategy trains: its learning rate is 0."""
    return "try", brought.write(path, ("optax.sgd(0.1)", "optax.sgd(0.0)"))


CASES: dict[tuple[str, int], Words] = {
    ("run", 0): lambda path: ("run", "mlp", *ONE),
    ("run", 1): mine,
    ("report", 0): lambda path: ("report", f"--run={made(path / 'a')}"),
    ("report", 1): lambda path: ("report", f"--run={made(path / 'a', lie=clocks_disagree)}"),
    ("run --dry_run", 0): lambda path: ("run", "mlp", "--dry_run", *ONE),
    ("run --dry_run", 1): lambda path: ("run", "mlp", "--dry_run", *ONE, "--config.strategy=pipeline"),
    ("train", 0): lambda path: (*TRAIN, "--config.train.target=0.01"),
    ("train", 1): lambda path: (*TRAIN, "--config.train.target=0.9999"),
    ("launch", 0): lambda path: (*LAUNCH, "--", "run", "mlp"),
    ("compare", 0): two({}, {"base_step_s": 0.006}),
    ("compare", 1): two({}, {"base_step_s": 0.024}),
    ("compare", 2): two({}, {}),
    ("compare", 3): two({"lie": clocks_disagree}, {}),
    ("ab", 0): lambda path: ("ab", "mlp", *ONE, "--a=--config.model.width=4096", "--b="),
    ("ab", 2): lambda path: ("ab", "mlp", *ONE, "--a=", "--b=--config.model.width=300", "--budget_s=0.1"),
    ("ab", 3): lambda path: ("ab", "mlp", "--a=--config.bach=4", "--b="),
    ("check", 3): lambda path: ("check", "mlp", "--name=none"),
    ("repro", 3): lambda path: ("repro", "--card=/no/such"),
    ("baseline", 0): lambda path: ("baseline", f"--run={made(path / 'a')}", "--name=x"),
    ("baseline", 3): lambda path: ("baseline", f"--run={made(path / 'a', lie=work_does_not_grow)}", "--name=x"),
    ("calibrate", 3): lambda path: ("calibrate", "mlp", *ONE, "--config.measure.processes=2"),
    # Two strategies train it. The others average over parts what only the whole batch has.
    ("try", 0): lambda path: ("try", brought.write(path)),
    ("try", 1): unmoved,
    ("try", 2): lambda path: ("try", "mlq"),
    ("new", 0): lambda path: ("new", str(path / "model.py")),
    ("card", 0): lambda path: ("card", f"--run={made(path / 'a')}"),
    ("cards", 0): lambda path: ((path / "cards").symlink_to(ROOT / "cards"), ("cards",))[1],
    ("accept", 0): lambda path: ("accept", *ACCEPT, "--probes=software"),
    ("accept", 1): lambda path: ("accept", *ACCEPT, f"--against=card:{of_a_faster_machine(path)}"),
    ("accept", 3): lambda path: ("accept", *ACCEPT, "--against=forecast"),
    ("audit", 0): lambda path: ("audit", printed(path, 1000)),
    ("audit", 1): lambda path: ("audit", printed(path, 2000)),
    ("cache", 0): lambda path: ("cache",),
    ("list", 0): lambda path: ("list",),
    ("version", 0): lambda path: ("version",),
    ("help", 0): lambda path: ("help",),
}
# Bad input for the others: a flag that none of them accepts.
CASES |= {(name, 3 if verb.answers else 2): lambda path, name=name: (name, "--bad") for name, verb in VERBS.items()
          if (name, 3 if verb.answers else 2) not in CASES and name != "help"}  # fmt: skip
CASES |= {("run --dry_run", 2): lambda path: ("run", "mlq", "--dry_run"), ("help", 2): lambda path: ("help", "--bad=3")}
# Separate tests cover the others.
ELSEWHERE = {
    ("bisect", 0): "tests/features/bisect/test_bisect.py::test_a_difference_that_is_none_ends_after_one_comparison",
    (
        "bisect",
        1,
    ): "tests/features/bisect/test_bisect.py::test_a_slow_wheel_is_found_and_a_broken_one_is_named",
    ("bisect", 2): "tests/features/bisect/test_bisect.py::test_too_few_pairs_cannot_tell",
    ("install-completion", 0): "tests/commands/test_completion.py::test_it_is_installed_once_and_loaded_by_the_shell",
    ("ab", 1): "tests/features/comparison/test_verdicts.py::test_pairs_are_measured_until_the_answer_and_continued",
    ("launch", 1): "tests/cluster/test_launchers.py::test_an_exit_code_comes_back_through_mpirun",
    ("gallery", 0): "tests/suites/test_papers.py::test_the_gallery_has_every_paper_and_escapes_what_runs_say",
    ("check", 1): "tests/features/comparison/test_verdicts.py::test_a_gate_from_calibration_to_alarm",
    ("calibrate", 0): "tests/features/comparison/test_verdicts.py::test_a_gate_from_calibration_to_alarm",
    ("repro", 0): "tests/features/cards/test_agreement.py::test_the_same_again_is_within",
    ("repro", 1): "tests/features/cards/test_agreement.py::test_slower_or_another_scaling_is_outside",
    ("repro", 2): "tests/features/cards/test_agreement.py::test_one_sample_cannot_be_told",
}
# Exit codes from the results of these functions, which measure for minutes or need a compiler for other hardware.
OK = SimpleNamespace(ok=True), SimpleNamespace(ok=False)
ROOMS: dict[str, tuple[str, tuple[Any, Any], list[str]]] = {
    "machine": ("jaxbench.features.machine_profile.machine_command.machine", OK, []),
    "first-run": ("jaxbench.suites.first_run.first_run", (True, False), []),
    "paper": ("jaxbench.suites.papers.session.paper", (True, False), ["goyal2017"]),
    "doctor": ("jaxbench.features.doctor.examine.ok", (True, False), []),
    "advise": ("jaxbench.features.forecast.advise_command.advise", (True, False), ["gpt"]),
    "forecast": ("jaxbench.features.forecast.forecast_command.smallest_need", ("", "nothing fits"), ["gpt"]),
}


def table() -> set[tuple[str, int]]:
    """(verb, code) of each filled cell."""
    text = (ROOT / "docs" / "USAGE.md").read_text()
    lines = re.search(r"## Exit codes\n\n\| verbs \|.*?\n\|[-|]+\n(.*?)\n\n", text, re.DOTALL)
    assert lines is not None
    found = set()
    for line in lines[1].splitlines():
        verbs_, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        found |= {(name, code) for name in re.findall(r"`([^`]+)`", verbs_) for code, cell in enumerate(cells) if cell}
    return found


def test_noise_is_never_impossible(tmp_path: Path) -> None:
    """A slope that is too high refuses its point, but on a contended machine it proves nothing."""
    for lie, code in ((clocks_disagree_under_load, 0), (clocks_disagree, 1)):
        run = made(tmp_path / lie.__name__, lie=lie)
        done = jaxbench("report", f"--run={run}", cwd=tmp_path, limit_s=600)
        assert done.returncode == code and ("Failed: " in done.stdout) == bool(code), done.stdout


def test_the_table_has_every_verb_and_each_code_is_seen() -> None:
    assert {name.split()[0] for name, _ in table()} == set(VERBS)
    seen = {*CASES, *ELSEWHERE, *((verb, code) for verb in ROOMS for code in (0, 1)), ("check", 0), ("check", 2)}
    assert table() == seen
    assert judge.EXIT == {"same": 0, "faster": 0, "slower": 1, "cannot tell": 2}, "of check as of compare"
    for id in ELSEWHERE.values():
        file, _, name = id.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(), id


QUICK_ONES = [("report", 1), ("compare", 3)]


@pytest.mark.parametrize(("verb", "code"), thin(list(CASES), QUICK_ONES))
def test_a_command_ends_with_its_code(tmp_path: Path, verb: str, code: int) -> None:
    words = CASES[verb, code](tmp_path)
    if "workdir" in VERBS[words[0]].flags and "--bad" not in words and words[0] != "compare":
        words = (words[0], f"--workdir={tmp_path / 'folder'}", *words[1:])
    done = jaxbench(*words, cwd=tmp_path, limit_s=600)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ROOMS)
@pytest.mark.parametrize("code", [0, 1])
def test_a_verb_ends_as_its_room_says(verb: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    room, answers, arguments = ROOMS[verb]
    monkeypatch.setattr(room, lambda *a, **k: answers[code])
    others = ("forecast.page.write_advice", "forecast.page.write", "forecast.forecast_command.request",
              "forecast.advise_command.request", "doctor.examine.examine", "doctor.examine.write",
              "own_step.settle.settle")  # fmt: skip
    for other in others:
        monkeypatch.setattr(f"jaxbench.features.{other}", lambda *a, **k: None)
    found = [SimpleNamespace(status="ok")]
    monkeypatch.setattr("jaxbench.features.forecast.forecast_command.forecast", lambda *a, **k: found)
    monkeypatch.setattr(verbs.load(verb), "FLAGS", _Flags(), raising=False)
    assert verbs.load(verb).main(arguments, Path("x"), Console(file=io.StringIO())) == code


class _Flags:
    """Every flag, absent."""

    def __getattr__(self, name: str) -> Any:
        return None if name in ("dry_run", "preset", "config") else SimpleNamespace(value=None, present=False)

    def __getitem__(self, name: str) -> Any:
        return SimpleNamespace(value=None, present=False)


@pytest.mark.parametrize("lie", [clocks_disagree, work_does_not_grow, above_the_peak])
def test_impossible_points_are_named_in_the_first_line(tmp_path: Path, lie: Callable[[dict[str, Any]], None]) -> None:
    facts = {"platform": "gpu", "device_kind": "NVIDIA H200"} if lie is above_the_peak else {}
    done = jaxbench("report", f"--run={made(tmp_path, lie=lie, **facts)}")
    assert done.returncode == 1, done.stdout + done.stderr
    first = " ".join(done.stdout.split()).partition("cnn: how training scales")[0]
    assert first.startswith(
        "Failed: shard_map strong on 1 device, shard_map strong on 2 devices are impossible by the gate '"
    )
    gate = "not above peak" if lie is above_the_peak else "two clocks agree"
    assert f"'{gate}'" in first and re.search(r"\d+ % of the", first)


def test_noise_is_no_failure(tmp_path: Path) -> None:
    """Clocks that disagree in four rounds have no interval; a slow base makes no point impossible."""
    few = fabricate.run_folder(tmp_path / "few", rounds=4, devices=(1, 2), scalings=("strong",))

    def slow_clock(line: dict[str, Any]) -> None:
        if line["kind"] == "round":
            line["double_block_s"] = [4 * seconds for seconds in line["double_block_s"]]

    fabricate.edit(few, slow_clock)
    slow = made(tmp_path / "slow", law=lambda scaling, n: 1.5 * n if n > 1 else 1.0)
    for path in (few, slow):
        done = jaxbench("report", f"--run={path}")
        assert done.returncode == 0 and "Failed" not in done.stdout, done.stdout + done.stderr
        assert "refused" in done.stdout
