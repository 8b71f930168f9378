# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rows of training runs as series over devices. A series is a family: a strategy with one setting of the levers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from jaxbench.analysis.run_rows import Row
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.canvas import short
from jaxbench.statistics.bootstrap import Estimate

Value = Callable[[Row], Estimate]


def compiled(rows: Iterable[Row]) -> list[Row]:
    """Rows that were compiled: their memory, bytes and schedule are known even if they were not timed."""
    return [row for row in rows if row.point.record is not None]


def families(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by strategy and arm, sorted by devices. Families keep the order of the run, which fixes their styles."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(", ".join(filter(None, (row.point.strategy, row.point.arm))), []).append(row)
    return {name: sorted(members, key=lambda row: row.point.devices) for name, members in groups.items()}


def line(
    axes: Axes, rows: Sequence[Row], value: Value, *, place: int, exact: bool = False, between: LineStyleType = "-"
) -> None:
    """Draws `value` over devices."""
    marks.line(axes, marks.of(rows, lambda row: row.point.devices, value, exact=exact), place=place, between=between)


def lines(axes: Axes, groups: Mapping[str, Sequence[Row]], value: Value, **style: Any) -> None:
    """Draws a `line` for each family. style: passed to `line`."""
    for place, rows in enumerate(groups.values()):
        line(axes, rows, value, place=place, **style)


def counts(rows: Iterable[Row]) -> list[int]:
    """The device counts of the rows, ascending."""
    return sorted({row.point.devices for row in rows})


def handles(names: Iterable[str]) -> list[Line2D]:
    """One legend entry for each family."""
    return [marks.handle(place, short(name, 28)) for place, name in enumerate(names)]


def remarks(timed: Sequence[Row], drawn: Sequence[Row]) -> list[str]:
    """The footnotes on n, on error bars of times, and on hollow and crossed-out marks."""
    # Exact marks are never hollow, so that note is about times; a failed check is crossed out in all panels.
    hollow = [note for note in notes.of_states(timed) if note != notes.WRONG]
    wrong = [note for note in notes.of_states(drawn) if note == notes.WRONG]
    return [*notes.of_times(timed, "per point", what="times: "), *hollow, *wrong]


def received(row: Row) -> dict[str, float]:
    """The bytes that one device receives in a step, by kind of collective: the sizes of the collectives' results."""
    sizes: dict[str, float] = {}
    for sent in row.point.compile_report.collectives if row.point.compile_report is not None else ():
        sizes[sent.kind] = sizes.get(sent.kind, 0.0) + sent.bytes  # one entry for each mesh axis of a kind
    return sizes


def received_bytes(row: Row) -> float:
    """The bytes that one device receives in a step; NaN: unknown."""
    return float(sum(received(row).values())) if row.point.record is not None else math.nan
