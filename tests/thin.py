# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Products of strategies, models and settings, thinned: `make test` runs a few of their cases, `make test-all` all."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from typing import Any

import pytest

KINDS = ["jit_auto", "shard_map", "fsdp"]  # strategies: split by the compiler, split by hand, with shards of the state

QUARTERS = (1, 2, 3, 4)


def thin(cases: Sequence[Any], keep: int | Collection[Any] | None = None) -> list[Any]:
    """All cases for `pytest.mark.parametrize`; cases that `make test` leaves out are marked `full`.

    cases: a value each, or a tuple for several arguments.
    keep: the cases that `make test` runs, or how many of the first. By default a few, in which each value of each
      argument occurs at least once.
    """
    if isinstance(keep, int):
        keep = cases[:keep]
    kept = covering(cases) if keep is None else [cases.index(case) for case in keep]
    assert kept, "make test would run none of these cases"
    return [
        pytest.param(*_arguments(case), marks=() if number in kept else pytest.mark.full)
        for number, case in enumerate(cases)
    ]


def covering(cases: Sequence[Any]) -> list[int]:
    """Cases that cover every value of every argument: repeatedly adds the case with the most new values."""
    values = [{(place, repr(value)) for place, value in enumerate(_arguments(case))} for case in cases]
    missing, chosen = set().union(*values), []
    while missing:
        best = max(range(len(cases)), key=lambda number: len(values[number] & missing))  # the first of equals
        chosen.append(best)
        missing -= values[best]
    return chosen


def _arguments(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)


def in_quarter(name: str, quarter: int) -> bool:
    """Whether the test of this id belongs to this quarter of the products.

    A checksum assigns the tests: a new test moves no other, and all processes of a run agree.
    """
    return QUARTERS[zlib.crc32(name.encode()) % len(QUARTERS)] == quarter
