# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A program is compiled once on a machine: later runs, pairs and trainings load it, whatever happened to the first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from doorway import QUICK_MLP, environment, sketching

from jaxbench.machine import program_cache

# One point on one device. A width of its own: no other test compiles these programs.
ONE = (*QUICK_MLP, "--config.mesh.devices=1", "--config.explain=off")


class Cache:
    """A folder of compiled programs, and the commands that use it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.variables = {**environment(), "JAX_COMPILATION_CACHE_DIR": str(folder / "kept")}

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        out, environment = subprocess.PIPE, {**self.variables, **variables}
        return subprocess.Popen(sketching(*words), stdout=out, stderr=out, text=True, env=environment, cwd=self.folder)

    def finish(self, process: subprocess.Popen[str], codes: Collection[int]) -> str:
        """What a command printed. It must end with one of these exit codes."""
        out, error = process.communicate(timeout=200)
        assert process.returncode in codes, out + error
        return " ".join((out + error).split())

    def run(self, workdir: str, *words: str, **variables: str) -> dict[str, Any]:
        """`preparation` of a run, which must succeed."""
        run = ("run", "mlp", *ONE, *words, f"--workdir={self.folder / workdir}", "--share_machine")
        self.said = self.finish(self.start(*run, **variables), (0,))
        return self.preparation(workdir)

    def preparation(self, workdir: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / workdir / "manifest.json").read_text())["preparation"]
        return found

    def compiled(self, workdir: str) -> list[str]:
        """The names of the compiled programs."""
        return [name for each in self.preparation(workdir)["points"] for name in each["names"]]

    def point(self, workdir: str) -> dict[str, Any]:
        line: dict[str, Any] = json.loads((self.folder / workdir / "records.jsonl").read_text().splitlines()[0])
        return line

    @property
    def entries(self) -> list[Path]:
        return [*(self.folder / "kept").glob("*/*-cache")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """A cache after its first run, in the folder `first`."""
    made = Cache(tmp_path_factory.mktemp("once"))
    first = made.run("first")
    assert first["compiled"] > 0 and first["kept"]
    return made


def test_a_point_on_one_device_has_few_programs_each_compiled_once(cache: Cache) -> None:
    first = cache.preparation("first")
    assert first["loaded"] == 0, "a program that this run has compiled is not asked for again"
    (point,) = [each for each in first["points"] if each["point"]]
    assert point["point"] == "jit_auto/strong/1" and point["cache"] == "miss"
    assert first["compiled"] == sum(len(each["names"]) for each in first["points"]) <= 8, "the model's among them"


def test_a_second_run_compiles_nothing_and_shows_the_first_compile_time(cache: Cache) -> None:
    second = cache.run("second")
    assert second["compiled"] == 0 and second["loaded"] == cache.preparation("first")["compiled"]
    assert "no program was compiled" in cache.said
    old, new = (cache.point(name)["compile_report"] for name in ("first", "second"))
    assert not old["compile_recorded"] and new["compile_recorded"]
    assert new["compile_s"] == old["compile_s"], "a time to load is no compile time"
    assert cache.point("first")["program_sha256"] == cache.point("second")["program_sha256"]
    page = (cache.folder / "second" / "report.html").read_text()
    assert "recorded when it was first compiled" in page and "no program was compiled" in page


def test_the_same_command_again_prepares_nothing(cache: Cache) -> None:
    cache.run("continued")
    again = cache.run("continued")
    assert again["compiled"] == again["loaded"] == 0


def test_fresh_compiles_anew_and_leaves_the_kept_programs_alone(cache: Cache) -> None:
    before = {path: path.stat().st_mtime_ns for path in cache.entries}
    fresh = cache.run("fresh", "--config.measure.compile=fresh")
    assert fresh["compiled"] > 0 and not fresh["kept"] and "compile=fresh" in fresh["note"]
    assert not cache.point("fresh")["compile_report"]["compile_recorded"]
    assert {path: path.stat().st_mtime_ns for path in cache.entries} == before


@pytest.mark.full
def test_a_changed_flag_misses(cache: Cache) -> None:
    flags = f"{environment()['XLA_FLAGS']} --xla_cpu_enable_fast_math=true"
    assert cache.run("flag", XLA_FLAGS=flags)["loaded"] == 0


@pytest.mark.full
def test_a_rerun_of_a_card_compiles_nothing(cache: Cache) -> None:
    cache.finish(cache.start("card", f"--run={cache.folder / 'first'}"), (0,))
    (card,) = (cache.folder / "cards").glob("*.json")
    again = cache.start("repro", f"--card={card}", f"--workdir={cache.folder / 'again'}", "--share_machine")
    said = cache.finish(again, (0, 1, 2, 3))  # two rounds prove nothing about speed
    assert (cache.folder / "again" / "manifest.json").exists(), said
    rerun = cache.preparation("again")
    assert rerun["compiled"] == 0 and rerun["loaded"] == cache.preparation("first")["compiled"]


@pytest.mark.full
def test_a_run_that_goes_on_compiles_nothing(cache: Cache) -> None:
    words = ("run", "mlp", *ONE, "--config.measure.rounds=40", "--config.measure.block_s=0.05", "--share_machine")
    cut = cache.start(*words, f"--workdir={cache.folder / 'cut'}")
    records = cache.folder / "cut" / "records.jsonl"
    until(lambda: records.exists() and '"kind":"round"' in records.read_text())
    cut.send_signal(signal.SIGKILL)
    cut.communicate()
    before = records.read_text().count('"kind":"round"')
    cache.finish(cache.start(*words, f"--workdir={cache.folder / 'cut'}"), (0,))
    rest = cache.preparation("cut")
    assert rest["compiled"] == 0 and rest["loaded"] > 0
    assert records.read_text().count('"kind":"round"') > before > 0, "it had rounds to measure"


@pytest.mark.full
def test_the_second_pair_of_ab_compiles_nothing(cache: Cache) -> None:
    # Arm b has a batch of its own, so its first pair compiles. Set k of the ledger is pair k.
    arms = ("--a=", "--b=--config.batch=48", "--budget_s=25")
    ab = cache.start("ab", "mlp", *ONE, *arms, f"--workdir={cache.folder / 'ab'}", "--share_machine")
    cache.finish(ab, (0, 1, 2, 3))
    for arm, first in (("a", False), ("b", True)):
        points = cache.preparation(f"ab/{arm}")["points"]
        assert {each["set"] for each in points} >= {0, 1}, "two pairs"
        compiling = {each["set"] for each in points if each["compiled"]}
        assert compiling == ({0} if first else set()), cache.compiled(f"ab/{arm}")
        assert all(each["loaded"] for each in points if each["set"])


@pytest.mark.full
def test_a_training_compiles_what_the_run_of_its_step_did_not_need_and_nothing_again(cache: Cache) -> None:
    config = json.loads((cache.folder / "first" / "config.json").read_text())
    model = [f"--config.model.{name}={value}" for name, value in config["model"].items()]
    shared = [word for word in ONE if word.startswith(("--preset", "--config.mesh", "--config.optimizer"))]
    words = ("train", "mlp", *shared, *model, "--config.train.epochs=1", "--config.train.target=0.01")
    for number, compiled in enumerate((["jit(score)"], [])):
        folder = f"--workdir={cache.folder / f'train{number}'}"
        cache.finish(cache.start(*words, f"--config.train.batch={config['batch']}", folder), (0,))
        assert cache.compiled(f"train{number}") == compiled
        assert cache.preparation(f"train{number}")["loaded"] > 0


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_run_that_is_killed_while_it_compiles_loses_nothing(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    process = cache.start("run", "mlp", *ONE, f"--workdir={tmp_path / 'killed'}", "--share_machine")
    until(lambda: len(cache.entries) >= 3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = len(cache.entries)
    cut_off = cache.entries[0]
    cut_off.write_bytes(cut_off.read_bytes()[:100])  # as a process does that is killed while it writes
    after = cache.run("killed")
    assert after["loaded"] >= kept - 2 and after["compiled"] > 0
    assert not any(program_cache.seal(part) for part in (tmp_path / "kept").iterdir())
    assert cache.run("again")["compiled"] == 0


@pytest.mark.full
def test_two_runs_at_once_share_a_folder(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    both = [threading.Thread(target=cache.run, args=(name,)) for name in ("one", "two")]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert all(cache.preparation(name)["compiled"] + cache.preparation(name)["loaded"] for name in ("one", "two"))
    assert cache.run("three")["compiled"] == 0


def test_a_folder_that_cannot_be_written_is_no_cache_and_one_sentence(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.variables["JAX_COMPILATION_CACHE_DIR"] = os.devnull + "/folder"
    found = cache.run("run")
    assert found["compiled"] > 0 and not found["kept"]
    assert cache.said.count("Compiled programs are not kept, because their folder cannot be written") == 2  # and why
    assert not (tmp_path / "run" / "compiled").exists()
