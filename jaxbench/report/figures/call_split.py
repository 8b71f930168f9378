# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where the time of a call with data on the host goes: transfer, start and work, stacked to the whole call."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis.call_split import NAMES, CallSplit
from jaxbench.analysis.quantities import seconds
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.kit import Axes, Figure, Sheet, entitle, short

VIEWS = ("cases/versus",)
ORDER = 1
CAPTION = (
    "Each bar is one XLA call with its data on the host (jit+copies), in percent of the call's time, which is written "
    "next to it. Transfer: sending the arguments and fetching the result. Start: the time of a nearly empty program "
    "with the same arguments. Work: the rest. Without copies, data stay on the device and there is no transfer. NumPy "
    "and Python neither send nor start anything, so all of their time is work."
)
ROOM = 24  # percent of a panel that the name of a part needs to fit inside its bar


def draw(run: CaseFindings) -> Figure | None:
    """Draws a panel for the smallest size and one for the largest. None when no call was split."""
    if not run.splits:
        return None
    places = list(dict.fromkeys((one.op, one.where) for one in run.splits))
    sheet = Sheet(1, 2)
    for column, (axes, what) in enumerate(zip(sheet.panels[0], ("latency", "throughput"), strict=True)):
        shown = [one for one in run.splits if one.largest == bool(column)]
        for one in shown:
            _bar(axes, places.index((one.op, one.where)), one)
        sizes = sorted({one.rows for one in shown})
        rows = " to ".join(f"{size:,}" for size in dict.fromkeys(sizes[:1] + sizes[-1:]))
        entitle(axes, f"{rows} row{'s' * (sizes != [1])}: {what}", x="% of the time of a call")
        axes.set_xlim(0, 128)
        axes.set_xticks([0, 25, 50, 75, 100])
        sheet.names(axes, [short(f"{op} on {where}", 34) for op, where in places], shown=not column)
    handles = [marks.bar_handle(style, name) for style, name in enumerate(NAMES)]
    return sheet.finish(f"{run.experiment}: where the time of a call goes", handles, _notes(run.splits))


def _bar(axes: Axes, at: int, one: CallSplit) -> None:
    """Draws one bar. A part below 0 has no length; a part that may be 0 is white, with its name if that fits."""
    lengths = [max(0.0, part.value) for part in one.parts]
    parts = [100 * length / sum(lengths) for length in lengths]
    for place, (name, told) in enumerate(zip(NAMES, one.told, strict=True)):
        if not told and parts[place] > ROOM:
            marks.write(axes, sum(parts[:place]), at, f"{name}?")
    styles = [style if told else None for style, told in enumerate(one.told)]
    marks.write(axes, marks.stack(axes, at, list(zip(parts, styles, strict=True))), at, seconds(one.whole.value))


def _notes(splits: Sequence[CallSplit]) -> list[str]:
    untold = not all(told for one in splits for told in one.told)
    told = ["white, dashed: the 95 % confidence interval of that part includes 0, so it may take no time"]
    return ["bars: medians", *told * untold]
