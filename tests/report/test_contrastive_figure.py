# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of a loss across examples: the numbers in the artists, hollow marks, and omitted points."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import fabricate
import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis import points, scaling
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.records import schema
from jaxbench.records.store import RunFolder
from jaxbench.report import findings
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.figures.memory import FLAT, draw_contrastive
from jaxbench.report.findings import Findings

MB = 1_000_000


def material(path: Path, *, wrong: tuple[str, ...] = (), scalings: tuple[str, ...] = ("weak",)) -> Findings:
    """n devices on 2 cores: each does n GFLOP, gathers n MB, receives 9 MB of other data, and holds 2 n MB."""
    fabricate.run_folder(path, scalings=scalings, cores=2, wrong=wrong, noise=0, drift=0, rounds=3)
    made = [_edited(point) for point in points.load(RunFolder(path))]
    return dataclasses.replace(findings.find(RunFolder(path)), rows=scaling.analyse(made, config={}))


def _edited(point: MeasuredPoint) -> MeasuredPoint:
    assert point.record is not None
    n = point.devices
    sizes = {"all-gather": n * MB, "reduce-scatter": 4 * MB, "all-reduce": 5 * MB}
    sent = tuple(schema.Collective(kind=kind, count=1, bytes=size) for kind, size in sizes.items())
    passport = fabricate.passport(product_flops_per_step=1e9 * n * n, temp_bytes=2 * n * MB, collectives=sent)
    return dataclasses.replace(point, record=dataclasses.replace(point.record, passport=passport))


def draw(made: Findings) -> Figure:
    with canvas.style():
        figure = draw_contrastive(made)
    assert figure is not None
    return figure


def values(axes: Axes, *, filled: bool | None = None) -> dict[float, float]:
    """x -> y of our points; of the filled ones or of the hollow ones only, if asked."""
    ours = [
        line
        for line in axes.lines
        if line.get_color() == marks.series_style(0)[0] and line.get_marker() == marks.series_style(0)[1]
    ]
    chosen = [line for line in ours if filled is None or (line.get_markerfacecolor() != "white") == filled]
    return {x: y for line in chosen for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}


def flat(axes: Axes) -> list[set[float]]:
    return [set(line.get_ydata()) for line in axes.lines if line.get_color() == marks.DASHES["color"]]


def test_each_panel_has_the_numbers_of_one_device(tmp_path: Path) -> None:
    work, sent, scratch, time = draw(material(tmp_path)).axes
    assert values(work, filled=True) == {n: 1e9 * n for n in (1, 2, 4, 8)}
    assert values(sent, filled=True) == {1: 0, 2: 2, 4: 4, 8: 8}
    assert values(scratch, filled=True) == {n: 2 * n * MB for n in (1, 2, 4, 8)}
    assert set(values(time, filled=True)) == {1, 2} and set(values(time, filled=False)) == {4, 8}
    assert flat(work) == [{1e9}] and flat(sent) == [{0}] and flat(scratch) == [{2 * MB}]
    assert flat(time) == [{values(time)[1]}]


def test_it_says_what_is_hollow_exact_and_wrong(tmp_path: Path) -> None:
    figure = draw(material(tmp_path, wrong=("shard_map/weak/2",)))
    said = "\n".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))
    assert notes.HOLLOW in said and notes.WRONG in said and FLAT in said and "FLOP and bytes" in said
    assert 2 not in values(figure.axes[0])


def test_strong_scaling_has_no_such_figure(tmp_path: Path) -> None:
    assert draw_contrastive(material(tmp_path, scalings=("strong",))) is None
