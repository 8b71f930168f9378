# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figures of `benchmarks.plain_jax`: `plain_jax` (the suite and JAX's defaults) and `allocators`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.plain_jax_ratios import ALLOCATORS, PLAIN, PROCESSES, SUITE, Cell, Cells, Ratio, against, samples
from jaxbench.report.drawing import canvas, marks
from jaxbench.report.drawing.axes import entitle, log_axis, plain
from jaxbench.report.drawing.canvas import Sheet
from jaxbench.statistics.bootstrap import Estimate

TIME, CPU = 0, 1  # of `Sample.numbers`
NOT_SPEED = "bytes and schedules only, not speed"
APART = 0.74  # the share of a row's height that its ways fill


def save(found: Cells, folder: Path) -> None:
    """Writes the figures for which there are cells, in all formats."""
    for name, draw in (("plain_jax", draw_plain), ("allocators", draw_allocators)):
        if files := canvas.render(lambda draw=draw: draw(found)):
            canvas.write(files, folder, name)


def columns(found: Cells, ways: Sequence[str]) -> tuple[list[str], list[int]]:
    """(models, device counts) of the cells that have a ratio of one of the ways."""
    some = [Cell.of(name) for name, pairs in found.cells.items() if any(against(pairs, w)[0] for w in ways)]
    return list(dict.fromkeys(cell.model for cell in some)), sorted({cell.devices for cell in some})


def ratio_of(found: Cells, cell: Cell, way: str, number: int) -> Ratio | None:
    base, ratio = against(found.cells.get(cell.name, []), way, number)
    return ratio if base else None


def dots(axes: Axes, found: Cells, devices: int, models: Sequence[str], ways: Sequence[str], number: int) -> None:
    """A row for each model: the ratio of each pair, and their median with its interval."""
    shown = [way for way in ways if any(ratio_of(found, Cell(model, devices), way, number) for model in models)]
    for place, way in enumerate(ways):
        colour, _ = marks.series_style(place)
        for row, model in enumerate(models):
            if (ratio := ratio_of(found, Cell(model, devices), way, number)) is None:
                continue
            at = row + (shown.index(way) - (len(shown) - 1) / 2) * APART / max(2, len(shown))
            style = dict(color=colour, marker="|", markersize=5, linestyle="none", alpha=0.5, zorder=2)
            axes.plot(ratio.each, [at] * len(ratio.each), **style)
            state = "solid" if devices <= found.cores else "hollow"
            # One pair has no interval.
            value = ratio.estimate if len(ratio.each) > 1 else ratio.estimate.alone()
            marks.dots(axes, [marks.Mark(at=at, value=value, style=place, state=state)])
    marks.unity(axes)


def head(found: Cells, devices: int) -> str:
    words = f"{devices} device{'s' if devices > 1 else ''}"
    return words if devices <= found.cores else f"{words} on {found.cores} cores:\n{NOT_SPEED}"


def ratio_rows(
    sheet: Sheet, found: Cells, models: Sequence[str], counts: Sequence[int], ways: Sequence[str], base: str
) -> None:
    """Two rows of panels: wall time and CPU time. Both and all device counts have the same axis."""
    for line, (number, what) in enumerate(((TIME, "time per step"), (CPU, "CPU time per step"))):
        for column, devices in enumerate(counts):
            axes = sheet.panels[line, column]
            dots(axes, found, devices, models, ways, number)
            sheet.names(axes, models, abreast=len(ways), shown=not column)
            entitle(axes, head(found, devices) if not line else "", x=f"{what} / {base}")
    low, high = sheet.panels[0, 0].get_xlim()
    for axes in sheet.panels[:2].flat:
        low, high = min(low, axes.get_xlim()[0]), max(high, axes.get_xlim()[1])
    for axes in sheet.panels[:2].flat:
        axes.set_xlim(low, high)


def switches(
    axes: Axes, found: Cells, devices: int, models: Sequence[str], ways: Sequence[str], styles: Styles
) -> None:
    """A row for each model: context switches per step, voluntary and not, the median over processes."""
    made = []
    cells = {model: found.cells.get(Cell(model, devices).name, []) for model in models}
    ways = [way for way in ways if any(samples(pairs, way) for pairs in cells.values())]
    for place, way in enumerate(ways):
        for row, model in enumerate(models):
            some = [each for each in samples(cells[model], way) if each]
            if some:
                values = sorted(each.waits + each.switches for each in some)
                at = row + (place - (len(ways) - 1) / 2) * APART / max(2, len(ways))
                value = Estimate(value=values[len(values) // 2], lo=values[0], hi=values[-1])
                made.append(marks.Mark(at=at, value=value, style=styles(way)))
    marks.dots(axes, made)


Styles = Callable[[str], int]


def draw_plain(found: Cells) -> Figure | None:
    """Time, CPU time and context switches of the suite's step and of plain JAX."""
    ways = (SUITE, PROCESSES)
    models, counts = columns(found, (SUITE,))
    if not models:
        return None
    sheet = Sheet(3, len(counts), heights=[0.45 * len(models) + 0.5] * 3)
    ratio_rows(sheet, found, models, counts, ways, "plain JAX")
    order = [SUITE, PROCESSES, PLAIN]
    for column, devices in enumerate(counts):
        axes = sheet.panels[2, column]
        switches(axes, found, devices, models, order, order.index)
        sheet.names(axes, models, abreast=len(order), shown=not column)
        log_axis(axes, "x", show=plain)
        entitle(axes, x="context switches per step")
    handles = [marks.handle(place, words, between="") for place, words in enumerate(WORDS)]
    notes = [
        "strokes: pairs of new processes that take turns; bars: the 95 % interval of their median; of the context "
        "switches, the range over processes",
        "plain JAX: a loop by hand in JAX's defaults, on as many cores as devices",
    ]
    if max(counts) > found.cores:
        notes.append(f"hollow: more devices than cores: {NOT_SPEED}")
    return sheet.finish("The suite's step and plain JAX", [*handles, marks.guide_handle("equal")], notes)


WORDS = "suite", "a process for each device, at the same time", "plain JAX"


def draw_allocators(found: Cells) -> Figure | None:
    """Time and CPU time of a step with another allocator, relative to glibc with one heap."""
    ways = [way for way in ALLOCATORS if any(samples(pairs, way) for pairs in found.cells.values())]
    models, counts = columns(found, ways)
    if not models:
        return None
    sheet = Sheet(2, len(counts), heights=[0.4 * len(models) + 0.5] * 2)
    ratio_rows(sheet, found, models, counts, ways, "one heap")
    handles = [marks.handle(place, f"measure.allocator={way}", between="") for place, way in enumerate(ways)]
    note = "strokes: pairs of new processes that take turns; bars: the 95 % interval of their median"
    return sheet.finish("Allocators of the suite's processes", [*handles, marks.guide_handle("equal")], [note])
