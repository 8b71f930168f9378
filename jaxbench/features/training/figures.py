# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of trainings: how they learn, and what their wall time goes to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.catalog import published
from jaxbench.digits import digits
from jaxbench.features.training import costs as costs_lib
from jaxbench.features.training.costs import Costs
from jaxbench.features.training.trainings import ACCURACY, HOUR_S, LABELS, LearningCurve
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.axes import efficiency_axis, entitle, log_axis, plain, si
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import GREY

OVER = {"steps": si, "seconds": plain}
MOST = 10**5  # devices: six times those of the published failure rate
SLOW = 60.0, 600.0  # (seconds that a checkpoint blocks, seconds of a restart) of a large model: assumed, not measured
LEAST_S = 600.0  # from shorter trainings, checkpoint and restart costs cannot be carried over to large ones
_NAMED = 6  # parts of the bar with their own style; the smallest parts share one


@plot("learning")
def draw_learning(sides: Mapping[str, Sequence[LearningCurve]], *, title: str) -> Figure | None:
    """Loss and accuracy on the test set over steps and over seconds of work (without compiling); of one training, over
    steps alone. Dotted: training loss, a mean over the steps since the last evaluation. Dashed: the target."""
    every = [one for trained in sides.values() for one in trained]
    if not any(one.rows for one in every):
        return None
    other = next((one.metric for one in every if one.metric != "loss"), ACCURACY)  # the metric of the lower panels
    # Steps, examples and seconds of one training are one curve three times: it is drawn once, with both panels abreast.
    over_all = OVER if len(every) > 1 else dict(list(OVER.items())[:1])
    sheet = Sheet(2, len(over_all), heights=1.7) if len(over_all) > 1 else Sheet(1, 2, heights=2.0)
    panels = sheet.panels
    if len(over_all) == 1:
        panels = panels.reshape(2, 1)
    for column, (over, show) in enumerate(over_all.items()):
        loss, accuracy = panels[:, column]
        for place, trained in enumerate(sides.values()):
            for one in trained:
                _learning_line(loss, one, "train_loss", over, place, dotted=True)
                _learning_line(loss, one, "test_loss", over, place)
                _learning_line(accuracy, one, f"test_{other}", over, place)
        for metric, target in {(one.metric, one.target) for one in every}:
            marks.unity(loss if metric == "loss" else accuracy, at=target, along="y")
        log_axis(loss, "y", show=plain, max_ticks=5)
        for axes in (loss, accuracy):
            log_axis(axes, "x", show=show, max_ticks=4)
        entitle(loss, "loss" if column == 0 else "", x=over if len(over_all) == 1 else "")
        entitle(accuracy, f"test {other}" if column == 0 else "", x=over)
    handles = [marks.handle(place, short(name)) for place, name in enumerate(sides)]
    handles += [marks.style_handle("in training", color=GREY, linestyle=":"), marks.guide_handle("target")]
    return sheet.finish(title, handles)


def _learning_line(axes: Axes, one: LearningCurve, what: str, over: str, place: int, *, dotted: bool = False) -> None:
    colour, marker = marks.series_style(place)
    x, y = one.series(what, over)
    few = len(x) <= 40  # more markers would hide the line
    axes.plot(x, y, color=colour, linestyle=":" if dotted else "-", marker="" if dotted or not few else marker)


@plot("goodput")
def draw_goodput(spent: Mapping[str, int], costs: Costs | None, *, title: str) -> Figure | None:
    """Above: the wall time of the training, over all its starts. Below: the expected goodput (share of time in steps
    that count) with the measured costs of a checkpoint and a restart, if the failure of any device ends the job. A
    training of less than ten minutes has no figure: it mostly starts and compiles."""
    if sum(spent.values()) / 1e9 < LEAST_S:
        return None
    sheet = Sheet(2, 1, heights=[0.75, 2.2]) if costs else Sheet(heights=0.75)
    parts = _bar(sheet.panels[0, 0], spent)
    handles = [marks.bar_handle(style, label) for style, label in enumerate(parts)]
    return sheet.finish(title, handles, _goodput_devices(sheet.panels[1, 0], costs) if costs else [])


def _bar(axes: Axes, spent: Mapping[str, int]) -> list[str]:
    """Draws one bar of seconds. Returns its parts by style."""
    whole = sum(spent.values()) / 1e9
    largest = sorted(spent, key=lambda name: -spent[name])[:_NAMED]
    parts = {LABELS[name]: spent[name] / 1e9 for name in spent if name in largest and spent[name]}
    if (rest := whole - sum(parts.values())) > 1e-9:
        parts["all else"] = rest
    marks.stack(axes, 0, [(size, style) for style, size in enumerate(parts.values())], thick=0.8)
    axes.set_yticks([])
    axes.set_xlim(0, whole)
    axes.set_ylim(-0.5, 0.5)
    axes.grid(False, axis="y")
    entitle(axes, "wall time, s")
    return list(parts)


def _goodput_devices(axes: Axes, costs: Costs) -> list[str]:
    """Draws expected goodput over devices: best interval, this training's interval, and higher costs.

    Returns:
      The footnotes.
    """
    known = published.interruptions()
    counts = np.unique(np.geomspace(1, MOST, 120).astype(int))
    slow = replace(costs, checkpoint_s=SLOW[0], latency_s=SLOW[0], restart_s=SLOW[1])
    for style, of_line in enumerate((costs, slow)):
        axes.plot(
            counts, [_best(of_line, int(n))[1] for n in counts], color=marks.COLOURS[style], linestyle="-:"[style]
        )
        for power in range(3 * style, int(math.log10(MOST)) + 1):  # only where the lines are apart enough for text
            at, share = _best(of_line, 10**power)
            axes.plot([10**power], [share], marker=marks.MARKERS[style], color=marks.COLOURS[style])
            side: marks.Style = dict(xytext=(0, -3), va="top") if style else {}
            marks.write(axes, 10**power, share, _duration(at), above=True, **side)
    used = [100 * costs_lib.expected_goodput(costs, HOUR_S / (int(n) * known.per_device_hour)) for n in counts]
    axes.plot(counts, used, color=marks.COLOURS[0], linestyle=marks.DASHED)
    marks.published(axes, [known.devices], [100 * known.goodput], shape="^", joined=False)
    marks.write(axes, known.devices, 100 * known.goodput, "Llama 3 (> 90 %)", xytext=(0, 10), color=GREY)
    efficiency_axis(axes)
    log_axis(axes, "x", show=si)
    entitle(axes, "expected goodput, %", x="devices")
    return [
        "solid: checkpoints at the best interval (Daly 2006), written at each mark; dashed: "
        f"{_duration(costs.interval_s)} apart, as in this training; dotted: at the best interval, if a checkpoint "
        f"blocked {SLOW[0]:g} s and a restart took {SLOW[1]:g} s (assumed)",
        f"failures: one per {1 / known.per_device_hour:,.0f} device-hours, the rate of {known.project}, "
        "arXiv:2407.21783",
        f"measured here, assumed for any number of devices: a checkpoint blocks {digits(costs.checkpoint_s)} s, is "
        f"sealed {digits(costs.latency_s)} s later, a restart takes {digits(costs.restart_s)} s, and "
        f"{1 - costs.useful:.1%} of progress is waiting for input and evaluating",
    ]


def _best(costs: Costs, devices: int) -> tuple[float, float]:
    """(best seconds between checkpoints, expected goodput in percent)."""
    rate = published.interruptions().per_device_hour
    at, share = costs_lib.at_devices(costs, devices=devices, failures_per_device_hour=rate)
    return at, 100 * share


def _duration(seconds: float) -> str:
    """Two digits and a unit, such as "0.44 s", "34 s", "5.7 min" or "3.4 h"."""
    size, unit = next((pair for pair in ((3600, "h"), (60, "min")) if seconds >= 2 * pair[0]), (1, "s"))
    return f"{float(f'{seconds / size:.2g}'):g} {unit}"
