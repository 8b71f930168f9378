# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The choice of tests by what they cost and which lines of the package they add."""

from __future__ import annotations

import heapq
from pathlib import Path

from .recording import Recording

LEFT_OUT = Path(__file__).with_name("left_out.txt")
KEPT = Path(__file__).with_name("kept.txt")
CHEAP_S = 0.15  # such tests all stay
A_TEST = 30  # the first case of a test function is worth this many lines: each guarantee is tested once


def left_out() -> set[str]:
    return _tests(LEFT_OUT)


def kept_for_faults() -> set[str]:
    """Lines do not say what a test compares: one case of a function may see a fault that another case runs through."""
    return _tests(KEPT)


def _tests(file: Path) -> set[str]:
    return {line for line in file.read_text().splitlines() if line and not line.startswith("#")}


def function(test: str) -> str:
    """tests/hlo/test_a.py::test_b[case] -> tests/hlo/test_a.py::test_b"""
    return test.partition("[")[0]


def chosen(seconds: float, recording: Recording) -> list[str]:
    """Cheap tests and those of kept.txt, then in each step the test with the most new lines a second, until the seconds
    are used.

    A test that failed while it was recorded stays: its lines and seconds are not those that it has otherwise.
    """
    costs = {test: max(cost, 0.001) for test, cost in recording.seconds.items()}
    always = recording.failed | kept_for_faults()
    kept = [test for test, cost in costs.items() if cost < CHEAP_S or test in always]
    spent = sum(costs[test] for test in kept)
    covered = set().union(*(recording.lines.get(test, set()) for test in kept))
    functions = {function(test) for test in kept}

    def worth(test: str) -> float:
        new = len(recording.lines.get(test, set()) - covered)
        return (new + A_TEST * (function(test) not in functions)) / costs[test]

    # The worth of a test only falls while others are kept. So the first is the best if it is so after a new look.
    ahead = [(-worth(test), test) for test in sorted(set(costs) - set(kept))]
    heapq.heapify(ahead)
    while ahead:
        said, test = heapq.heappop(ahead)
        now = worth(test)
        if now < -said:
            heapq.heappush(ahead, (-now, test))
        elif now and spent + costs[test] <= seconds:  # else a cheaper one may still fit
            kept.append(test)
            spent += costs[test]
            covered |= recording.lines.get(test, set())
            functions.add(function(test))
    return kept


def choose(seconds: float, recording: Recording) -> int:
    """Writes left_out.txt. What was left out and is not in the recording stays left out."""
    kept = set(chosen(seconds, recording))
    out = sorted((set(recording.seconds) | left_out()) - kept)
    head = LEFT_OUT.read_text().splitlines()
    comments = [line for line in head if line.startswith("#")]
    LEFT_OUT.write_text("\n".join([*comments, *out]) + "\n")
    return print_coverage(recording)


def print_coverage(recording: Recording) -> int:
    """Prints the lines, seconds and test functions that the chosen tests keep of those recorded."""
    out = left_out()
    tests = set(recording.seconds)
    kept = tests - out
    lines = recording.all_lines()
    covered = set().union(*(recording.lines[test] for test in kept if test in recording.lines))
    functions, shown = ({function(test) for test in some} for some in (tests, kept))
    spent, total = (sum(recording.seconds[test] for test in some) for some in (kept, tests))
    print(f"lines: {len(covered)} of {len(lines)}, {len(covered) / max(len(lines), 1):.2%}")
    print(f"tests: {len(kept)} of {len(tests)}; test functions: {len(shown)} of {len(functions)}")
    print(f"CPU seconds: {spent:.0f} of {total:.0f}")
    return 0
