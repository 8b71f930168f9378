# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""While a run measures: its points so far on a terminal, lines in a log, and a valid interval."""

from __future__ import annotations

import io
import random
import statistics
import time

import pytest
from rich.console import Console

from jaxbench.core.schema import RoundRecord
from jaxbench.sweep import progress
from jaxbench.sweep.progress import SoFar, SweepProgress, interval


def measured(point: str, number: int, *block_s: float, steps: int = 2) -> RoundRecord:
    return RoundRecord(
        point=point, round=number, steps=steps, block_s=block_s, double_block_s=(), warmup_block_s=(9.0,),
        settled=True, compilations=0, worker="w",
    )  # fmt: skip


def swept(*, terminal: bool) -> str:
    """The output of a sweep of two points; one fails."""
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120, height=40, color_system=None)
    tasks = [("prepare", "a/1"), ("prepare", "[b]/2"), ("prepare", "c/4")]
    tasks += [("round", point) for point in ("a/1", "[b]/2", "c/4")]
    with SweepProgress(console, tasks, [measured("a/1", 0, 0.02, 0.03, 0.04)]) as shown:
        for point in ("a/1", "[b]/2", "c/4"):
            shown.begin("prepare", point, f"compile {point}")
            shown.end("prepare", point)
        shown.drop("c/4")
        for number, point in enumerate(("a/1", "[b]/2")):
            shown.begin("round", point, f"round {number}")
            shown.end("round", point)
            shown.measured(measured(point, 1, 0.042, 0.038, 0.1))
        shown.show("the last")
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_without_a_terminal_each_point_has_a_line_when_prepared_and_one_at_the_end() -> None:
    lines = [line for line in swept(terminal=False).splitlines() if line]
    assert [line.split(" in ")[0] for line in lines[:3]] == [f"{p}: prepared" for p in ("a/1", "[b]/2", "c/4")]
    assert "left" in lines[0]
    ends = ["a/1: measured in 2 rounds", "[b]/2: measured in 1 round"]
    assert lines[3:] == ends, "no second number for a point of the report's table; a failed point has no line"


def test_a_log_is_never_silent_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task may last for minutes, and CI services end jobs without output."""
    monkeypatch.setattr(progress, "SILENT_S", 0.05)
    console = Console(file=io.StringIO(), width=120)
    with SweepProgress(console, [("prepare", "a/1"), ("round", "a/1")]) as shown:
        shown.begin("prepare", "a/1", "compile and check a")
        shown.end("prepare", "a/1")
        shown.begin("round", "a/1", "round 1/3: a")
        time.sleep(0.4)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert said.count("round 1/3: a: 1 of 2 done, about") >= 2


def test_a_terminal_shows_the_points_as_they_come() -> None:
    frames = swept(terminal=True).split("compile ")
    assert "a/1" in frames[0] and "[b]/2" not in frames[0], "a run that is continued has its earlier rounds"
    last = frames[-1].rsplit("per step", 1)[1]
    assert "18 ms" in last and "[15, 21]" in last and "21 ms" in last and "[b]/2" in last
    assert "c/4" not in last and "as if rounds were independent" in last
    assert "a/1: measured" not in last, "the report has the table: no lines at the end"


def test_of_many_points_those_around_the_newest_are_shown() -> None:
    so_far = SoFar()
    for number in range(50):
        so_far.measured(measured(f"p{number}", 0, 1e-7))
    so_far.prepared("p20")
    console = Console(file=io.StringIO(), width=100)
    console.print(*so_far.shown(6))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "p20" in text and "p17" in text and "p30" not in text and "6 of 50 points" in text and "50 ns" in text


@pytest.mark.parametrize(
    ("count", "ends"), [(1, (0, 0)), (5, (0, 4)), (6, (0, 5)), (9, (1, 7)), (10, (1, 8)), (20, (5, 14))]
)
def test_the_interval_is_the_sign_tests(count: int, ends: tuple[int, int]) -> None:
    """Conover, Practical nonparametric statistics, table of the binomial distribution at 1/2."""
    assert interval([float(number) for number in range(count)]) == ends


def test_the_interval_holds_the_median_in_at_least_95_of_100_samples() -> None:
    draw = random.Random(1)
    samples = [[draw.expovariate(1.0) for _ in range(12)] for _ in range(2000)]
    median = statistics.median(draw.expovariate(1.0) for _ in range(100_001))
    held = sum(low <= median <= high for low, high in map(interval, samples))
    assert held >= 0.95 * len(samples)


def test_a_log_has_a_line_for_each_kernel_and_type_of_many_points() -> None:
    """`jaxbench machine` measures a hundred sizes; each used to have two lines."""
    points = [f"{op}/float32/{2**size}/jit" for op in ("triad", "copy") for size in range(40)]
    console = Console(file=io.StringIO(), width=200)
    with SweepProgress(console, [("prepare", point) for point in points]) as progress:
        for point in points:
            progress.begin("prepare", point, point)
            progress.end("prepare", point)
        for number, point in enumerate(points):
            progress.measured(measured(point, 0, 1e-3 * (1 + number % 40), steps=1))
    lines = [line for line in console.file.getvalue().splitlines() if line]  # type: ignore[attr-defined]
    assert [line.split(",")[0] for line in lines[:2]] == ["triad/float32: prepared", "copy/float32: prepared"]
    assert lines[2:] == [f"{op}/float32: 40 points measured" for op in ("copy", "triad")]


def test_a_number_that_reaches_the_next_unit_has_no_exponent() -> None:
    so_far = SoFar()
    for number, seconds in enumerate((0.999e-3, 0.9996e-3, 1.03e-3)):
        so_far.measured(measured("a/1", number, seconds, steps=1))
    console = Console(file=io.StringIO(), width=100)
    console.print(*so_far.shown(6))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "1000 µs" in text and "[999, 1030]" in text
