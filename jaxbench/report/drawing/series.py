# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rows as the series of a figure, each with name, style and rows.

Cases come first, then rows of training runs over devices, where a series is a family: a strategy with one setting of
the levers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from jaxbench.analysis.run_rows import Row
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import entitle
from jaxbench.report.drawing.canvas import Sheet, short
from jaxbench.report.drawing.shapes import Layer, on
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

PARTS: dict[str, Callable[[Row], str]] = {
    "op": lambda row: row.point.op,
    "impl": lambda row: row.point.impl,
    "dtype": lambda row: row.point.dtype,
    "shape": lambda row: row.point.shape or f"{row.point.elements}",
    "platform": lambda row: row.point.platform,
    # On an accelerator, cores do not matter.
    "cores": lambda row: row.point.where if row.point.platform == "cpu" and row.point.cores is not None else "",
    "group": lambda row: row.point.group if row.point.family == "collective" else "",
    "pair": lambda row: f"{row.point.source} → {row.point.target}",
}


@dataclass(frozen=True, kw_only=True)
class Series:
    """One series."""

    label: str
    place: int  # its number in the figure, for its style
    rows: list[Row]  # the timed rows, by size

    def handle(self) -> Line2D:
        """The legend entry."""
        return marks.handle(self.place, short(self.label))

    def draw(
        self,
        axes: Axes,
        x: Callable[[Row], float],
        value: Callable[[Row], Estimate],
        *,
        scale: float = 1,
        between: LineStyleType = "-",
    ) -> None:
        """Draws scale * value(row) over x(row), for rows with a positive x."""
        # The axes of sizes are logarithmic.
        rows = [row for row in self.rows if x(row) > 0]
        marks.line(axes, marks.of(rows, x, value, scale=scale), place=self.place, between=between)


def split(rows: Sequence[Row], parts: Sequence[str], *, size: Callable[[Row], float]) -> list[Series]:
    """One series for each combination of `parts` (names of `PARTS`), in the order of the rows.

    Labels contain the parts in which the rows differ. Split all rows of a figure at once and select with `only`, so
    that a series has the same label and style in every panel.
    """
    names = naming(rows, parts)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(names[row.point_id], []).append(row)
    return [
        Series(label=label, place=place, rows=sorted((row for row in members if row.timing.step_s.known), key=size))
        for place, (label, members) in enumerate(groups.items())
    ]


def curves(
    every: Sequence[Series], x: Callable[[Row], float], value: Callable[[Row], Estimate], *, scale: float = 1
) -> list[Layer]:
    """A line for each series."""
    return [on(curve.draw, x, value, scale=scale) for curve in every]


def of_op(series: Sequence[Series], op: str) -> list[Series]:
    """The series with only the rows of one operation, without empty series."""
    return only(series, {row.point_id for curve in series for row in curve.rows if row.point.op == op})


def only(series: Sequence[Series], points: Container[str]) -> list[Series]:
    """The series with only the rows of these points, without empty series."""
    picked = [(curve, [row for row in curve.rows if row.point_id in points]) for curve in series]
    return [dataclasses.replace(curve, rows=rows) for curve, rows in picked if rows]


def operations(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.point.op for row in rows))


def bands(
    rows: Sequence[Row], *, across: int, heights: tuple[float, float]
) -> tuple[Sheet, dict[str, tuple[Axes, Axes]]]:
    """A sheet with two panels for each operation, one above the other, and `across` operations in a row.

    heights: of both panels in inches. Returns the sheet and {operation: (upper panel, lower panel)}, with titles.
    """
    ops = operations(rows)
    down, columns = -(-len(ops) // across), min(across, len(ops))
    sheet = Sheet(2 * down, columns, heights=[*heights] * down, sharex=True, sharey="row")
    places = [(2 * band, column) for band in range(down) for column in range(columns)]
    pairs = {op: (sheet.panels[row, c], sheet.panels[row + 1, c]) for op, (row, c) in zip(ops, places, strict=False)}
    for op, (above, below) in pairs.items():
        entitle(above, short(op, 24))
        below.tick_params(labelbottom=True)
    for row, column in places[len(ops) :]:
        for axes in sheet.panels[row : row + 2, column]:
            axes.remove()
    return sheet, pairs


def naming(rows: Sequence[Row], parts: Sequence[str], *, always: str = "") -> dict[str, str]:
    """{point: name}. A name has `always` and the parts in which the rows differ, or else the first part.

    "jit", "jit on gpu", "jit, float32 on 1 core": as in `analysis.case_comparisons`.
    """
    values = {part: [PARTS[part](row) for row in rows] for part in parts}
    # Without "": a part that some rows do not have, such as cores, does not distinguish the others.
    telling = [part for part in parts if part == always or len(set(values[part]) - {""}) > 1] or list(parts[:1])
    what = [part for part in telling if part not in ("platform", "cores")]
    where = [part for part in telling if part not in what]
    names = {}
    for place, row in enumerate(rows):
        things, places = ([values[part][place] for part in chosen] for chosen in (what, where))
        names[row.point_id] = " on ".join(filter(None, [", ".join(filter(None, things)), *places]))
    return names


def elements(row: Row) -> float:
    return float(row.point.elements or 0)


def payload(row: Row) -> float:
    """The payload in bytes; 0 if it has none."""
    return float(row.point.payload_bytes or 0)


def time(row: Row) -> Estimate:
    """Seconds per call."""
    return row.timing.step_s


def per_second(row: Row) -> Estimate:
    """Elements per second."""
    return row.timing.step_s.under(elements(row))


def believed(row: Row) -> bool:
    """Whether the row may be on a line: it is measured, not known to be wrong, and not refused."""
    return row.timing.step_s.known and marks.state(row) in ("solid", "hollow")


def base_of(row: Row, rows: Sequence[Row], impl: str) -> Row | None:
    """The valid row of another implementation with the same operation, size, platform and cores; None without one."""
    same = ("op", "dtype", "elements", "platform", "cores")
    bases = (r for r in rows if r.point.impl == impl and believed(r))
    return next((r for r in bases if all(getattr(r.point, s) == getattr(row.point, s) for s in same)), None)


def time_over(row: Row, rows: Sequence[Row], impl: str) -> Estimate:
    """The row's time over the time of `impl` for the same work on the same cores; UNKNOWN if either is missing."""
    base = base_of(row, rows, impl)
    if base is None or row.point.impl == impl or not believed(row):  # a line at 1 for `impl` itself would say nothing
        return UNKNOWN
    return paired_ratio.ratio(row, base)


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
