# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The ratios of `benchmarks/plain_jax.py` from known times, its file, its figures, and processes that hang or end."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from benchmarks import plain_jax, plain_jax_figure
from benchmarks.peers import arms
from benchmarks.plain_jax_ratios import PLAIN, SUITE, Cell, Cells, Sample, against, spread
from jaxbench.core.store import write_json
from jaxbench.machine.cores import available_cores


def sample(step_s: float, cpu_s: float = 0.02) -> Sample:
    return Sample([step_s, step_s, 9.0], cpu_s, waits=20, switches=10)


def found() -> Cells:
    """cnn on 2 devices, where plain JAX hung once, and on 4, which are more than the cores."""
    two = {
        SUITE: [sample(0.010), sample(0.011), sample(0.030)],
        PLAIN: [sample(0.010), sample(0.010), None],
        "processes": [sample(0.008), sample(0.008), sample(0.008)],
        "mimalloc": [sample(0.009), sample(0.011), sample(0.030)],
    }
    pairs = [dict(zip(two, each, strict=True)) for each in zip(*two.values(), strict=True)]
    alone = {SUITE: sample(0.001), "arenas": sample(0.001)}  # measured later, without plain JAX
    four = [{SUITE: sample(0.02), PLAIN: sample(0.04)}]
    return Cells(2, "0.10", {"cnn/2": 4}, {"cnn/2": [*pairs, alone], "cnn/4": four})


def test_ratios_are_of_pairs_and_leave_out_hangs() -> None:
    by_way = found().cells["cnn/2"]
    base, ratio = against(by_way, SUITE)
    assert base == PLAIN and ratio.each == pytest.approx([1.0, 1.1]) and ratio.value == pytest.approx(1.05)
    assert against(by_way, "mimalloc")[0] == SUITE and against(by_way, "mimalloc")[1].value == pytest.approx(1.0)
    assert against(by_way, PLAIN)[0] == ""
    assert spread([sample(0.009), sample(0.011)]) == pytest.approx(0.1 * np.sqrt(2))


def test_the_file_comes_back_and_says_what_is_not_speed(tmp_path: Path) -> None:
    write_json(tmp_path / "file", found().to_json())
    assert Cells.read(tmp_path / "file") == found()
    shown = plain_jax.table(found())
    names, hangs = (list(column.cells) for column in (shown.columns[0], shown.columns[8]))
    assert "cnn/2" in names and "cnn/4 (bytes and schedules only, not speed)" in names
    assert dict(zip(shown.columns[1].cells, hangs, strict=True))[SUITE] == "0" and "1" in hangs
    assert "cnn 1.050 [1.000, 1.100]" in plain_jax.verdict(found()) and "missed" in plain_jax.verdict(found())


def test_the_figures_are_drawn(tmp_path: Path) -> None:
    plain_jax_figure.save(found(), tmp_path)
    for name in ("plain_jax", "allocators"):
        assert (tmp_path / f"{name}.svg").stat().st_size > 10_000
    assert "bytes and schedules only, not speed" in plain_jax_figure.head(found(), 4)
    assert plain_jax_figure.draw_allocators(Cells(2, "0.10")) is None


def test_an_unknown_cell_is_refused() -> None:
    assert plain_jax.cells(["cnn/2"]) == [Cell("cnn", 2)]
    with pytest.raises(SystemExit, match="--only=cnn/3 is no cell: use a model"):
        plain_jax.cells(["cnn/3"])


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The name of a module in place of `benchmarks.NAME`: a process that answers once, and then hangs or ends."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    text = """
        import json, sys, time
        print(json.dumps({"what": "", "losses": []}), flush=True)
        sys.stdin.readline()
        print(json.dumps({"seconds": 0.5, "cpu_s": 1.0, "waits": 3, "switches": 1}), flush=True)
        sys.stdin.readline()
        if sys.argv[1] == "hang":
            time.sleep(600)
    """
    (folder / "fragile.py").write_text(textwrap.dedent(text))
    monkeypatch.setattr(
        arms, "__file__", str(folder / "peers" / "arms.py")
    )  # the parent of its folder is where they run
    return "fragile"


@pytest.mark.parametrize("word", ["hang", "end"])
def test_plain_jax_that_hangs_or_ends_is_lost_and_the_suite_is_an_error(module: str, word: str) -> None:
    limit_s = 1.0 if word == "hang" else 60.0
    way = plain_jax.Way([arms.Arm("plain", module, word, ready=False, variables={}, limit_s=60.0)])
    plain_jax.guarded(PLAIN, way, way.hello)
    plain_jax.guarded(PLAIN, way, lambda: way.run(2))
    assert not way.lost and way.sample() == Sample([0.25], 0.5, 1.5, 0.5)
    way.arms[0]._limit_s = limit_s
    with pytest.raises(arms.Lost):
        plain_jax.guarded(SUITE, way, lambda: way.run(2))
    assert way.arms[0]._process.wait(10) == (-9 if word == "hang" else 0)
    plain_jax.guarded(PLAIN, way, lambda: way.run(2))
    assert way.lost
    way.arms[0].close()


@pytest.mark.full
def test_a_pair_of_real_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if available_cores() < 2:
        pytest.skip("devices on one core take turns")
    words = f"--folder={tmp_path} --pairs=1 --only=mlp/2 --block_s=0.01 --allocators=arenas".split()
    monkeypatch.setattr(sys, "argv", ["plain_jax", *words])
    plain_jax.main()
    (by_way,) = Cells.read(tmp_path / plain_jax.FILE).cells["mlp/2"]
    assert set(by_way) == {"suite", "plain", "kept", "processes", "arenas"}
    assert all(each and each.cpu_s > 0 for each in by_way.values())
    before = (tmp_path / plain_jax.FILE).read_bytes()
    plain_jax.main()  # nothing is missing
    assert (tmp_path / plain_jax.FILE).read_bytes() == before


def test_only_allocators_of_the_chosen_ways_must_be_on_the_machine() -> None:
    """`--ways=plain,processes` ended because a library that it does not use was missing."""
    assert plain_jax.needed(["arenas", "mimalloc"], ["plain", "processes"]) == []
    assert plain_jax.needed(["arenas", "mimalloc"], ["plain", "arenas"]) == ["arenas"]
    assert plain_jax.needed(["arenas", "mimalloc"], []) == ["arenas", "mimalloc"]
