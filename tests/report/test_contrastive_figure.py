# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of a loss across examples: the numbers in the artists, what is hollow, and what is left out."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import fabricate
import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis import points, scaling
from jaxbench.analysis.points import Point
from jaxbench.records import schema
from jaxbench.records.store import RunFolder
from jaxbench.report.figures import canvas, contrastive, marks
from jaxbench.report.figures.spread_material import SpreadMaterial

MB = 1_000_000


def material(path: Path, *, wrong: tuple[str, ...] = (), scalings: tuple[str, ...] = ("weak",)) -> SpreadMaterial:
    """n devices on 2 cores: each does n GFLOP, gathers n MB and gets 9 MB of others, and holds 2 n MB."""
    fabricate.run_folder(path, scalings=scalings, cores=2, wrong=wrong, noise=0, drift=0, rounds=3)
    made = [_edited(point) for point in points.load(RunFolder(path))]
    return SpreadMaterial(experiment="made", rows=scaling.analyse(made, config={}))


def _edited(point: Point) -> Point:
    assert point.record is not None
    n = point.devices
    sizes = {"all-gather": n * MB, "reduce-scatter": 4 * MB, "all-reduce": 5 * MB}
    sent = tuple(schema.Collective(kind=kind, count=1, bytes=size) for kind, size in sizes.items())
    passport = fabricate.passport(product_flops_per_step=1e9 * n * n, temp_bytes=2 * n * MB, collectives=sent)
    return dataclasses.replace(point, record=dataclasses.replace(point.record, passport=passport))


def draw(made: SpreadMaterial) -> Figure:
    with canvas.style():
        figure = contrastive.draw(made)
    assert figure is not None
    return figure


def values(axes: Axes, *, filled: bool | None = None) -> dict[float, float]:
    """x -> y of our points; of the filled ones or of the hollow ones only, if asked."""
    ours = [line for line in axes.lines if line.get_color() == marks.colour(0) and line.get_marker() == marks.marker(0)]
    chosen = [line for line in ours if filled is None or (line.get_markerfacecolor() != "white") == filled]
    return {x: y for line in chosen for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}


def flat(axes: Axes) -> list[set[float]]:
    return [set(line.get_ydata()) for line in axes.lines if line.get_color() == canvas.DASHES["color"]]


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
    assert canvas.HOLLOW in said and marks.WRONG in said and contrastive.FLAT in said and "FLOP and bytes" in said
    assert 2 not in values(figure.axes[0])


def test_strong_scaling_has_no_such_figure(tmp_path: Path) -> None:
    assert contrastive.draw(material(tmp_path, scalings=("strong",))) is None


def test_many_series_are_told_apart_by_colour_and_line(tmp_path: Path) -> None:
    """Seven strategies, each with two arms."""
    made = material(tmp_path)

    def named(row, strategy, arm):
        return dataclasses.replace(row, point=dataclasses.replace(row.point, strategy=strategy, arm=arm))

    names = [(f"strategy {i}", arm) for i in range(7) for arm in ("none", "block")]
    mine = [row for row in made.rows if row.point.strategy == made.rows[0].point.strategy]
    figure = draw(dataclasses.replace(made, rows=[named(row, *name) for name in names for row in mine]))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [f"strategy {i}" for i in range(7)] + ["none", "block", contrastive.FLAT]
    joined = [line for line in figure.axes[0].lines if line.get_linestyle() in contrastive.LINES]
    assert len({(line.get_color(), line.get_linestyle()) for line in joined}) == len(names)
