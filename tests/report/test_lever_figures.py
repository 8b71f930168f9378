# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figures of levers: reproducible bytes, correct marks, published numbers separate from ours."""

import dataclasses
from pathlib import Path
from typing import Any

import fabricate_arms as fab
import pytest
from matplotlib.figure import Figure
from report.runs import bars_of, drawn, texts

from jaxbench.analysis import studies
from jaxbench.core import store
from jaxbench.core.store import RunFolder
from jaxbench.report import build, run_report
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.figures.levers import difference, factors
from jaxbench.report.figures.memory import draw_remat, draw_search, front
from jaxbench.report.run_report import RunReport


def findings(path: Path, kind: str, **facts: Any) -> RunReport:
    return run_report.find(RunFolder(fab.folder(path, kind, **facts)))


def draw(path: Path, kind: str, **facts: Any) -> Figure:
    return drawn(build.figures()[kind], findings(path, kind, **facts))


@pytest.mark.parametrize("kind", fab.RUNS)
def test_every_figure_says_n_and_what_its_bars_are(tmp_path: Path, kind: str) -> None:
    said = texts(draw(tmp_path, kind))
    assert "n = " in said and " processes per setting" in said and "95 % confidence intervals" in said
    assert (notes.HOLLOW in said) == (kind == "phases"), "of four devices on two cores"


@pytest.mark.parametrize("kind", fab.RUNS)
def test_oversubscribed_is_said_and_has_no_filled_mark(tmp_path: Path, kind: str) -> None:
    figure = draw(tmp_path, kind, devices=(8,), cores=2)
    assert notes.HOLLOW in texts(figure)
    ours = set(marks.COLOURS) - {"#000000"}
    panels = figure.axes[:2] if kind == "remat" else figure.axes  # the law of depth is compiled, not timed
    for line in (line for axes in panels for line in axes.lines if line.get_marker() in marks.MARKERS):
        assert line.get_color() not in ours or line.get_markerfacecolor() == "white"


@pytest.mark.parametrize("kind", fab.RUNS)
def test_nothing_measured_is_no_figure(tmp_path: Path, kind: str) -> None:
    assert build.figures()[kind].draw(findings(tmp_path, kind, rounds=0)) is None


@pytest.mark.parametrize("kind", fab.RUNS)
def test_a_wrong_arm_is_crossed_out(tmp_path: Path, kind: str) -> None:
    arms = fab.RUNS[kind][0]()
    arms = [*arms[:-1], dataclasses.replace(arms[-1], ok=False)]
    assert notes.WRONG in texts(draw(tmp_path, kind, arms=arms))


def test_published_overheads_are_hollow_dashed_and_cited(tmp_path: Path) -> None:
    figure = draw(tmp_path, "remat")
    white = (1.0, 1.0, 1.0, 1.0)
    theirs = sorted(bar.get_width() for bar in bars_of(figure.axes[1]) if bar.get_facecolor() == white)
    assert theirs == [4, 7, 30, 39]
    assert all(bar.get_linestyle() != "-" for bar in bars_of(figure.axes[1]) if bar.get_facecolor() == white)
    said = texts(figure)
    assert "Korthikanti et al., 2022" in said and "Chen et al., 2016" in said and "not measured here" in said


def test_the_front_is_what_no_other_beats_in_both(tmp_path: Path) -> None:
    arms = findings(tmp_path, "remat").groups[0].arms
    assert [arm.label for arm in front(arms)] == ["block", "dots_saveable", "none"]


def test_the_law_has_its_exponent_and_two_guides(tmp_path: Path) -> None:
    figure = draw(tmp_path, "remat")
    legend = [text.get_text() for text in figure.axes[2].get_legend().get_texts()]
    assert legend[0] == "none: n^1.00 ± 0.00" and legend[1].startswith("sqrt: n^0.50")
    assert {"n", "√n"} <= {text.get_text() for text in figure.axes[2].texts}
    bare = fab.lever_folder(tmp_path / "bare", fab.remat(), ["remat"])
    assert len(drawn(draw_remat, run_report.find(RunFolder(bare))).axes) == 2


def test_accuracy_differences_are_next_to_published_ones(tmp_path: Path) -> None:
    figure = draw(tmp_path, "precision")
    assert len(figure.axes) == 4 and "Micikevicius et al., 2018" in texts(figure)
    last = figure.axes[3]
    published = [line for line in last.lines if line.get_markerfacecolor() == "white"]
    assert [round(line.get_xdata()[0], 2) for line in published] == [0.16, 0.03, 0.10, -0.01, 0.28, 0.12]
    places = findings(tmp_path / "more", "precision").groups
    values = {arm.label: difference(arm) for arm in places[0].arms}
    assert values["bfloat16"].value == pytest.approx(-0.2) and not values["default"].known
    arms = [dataclasses.replace(arm, outcome={}) for arm in fab.precision()]
    figure = draw(tmp_path / "untrained", "precision", arms=arms)
    assert len(figure.axes) == 2 and "Micikevicius" not in texts(figure)


def test_rung_factors_are_over_the_rung_before_unless_it_failed(tmp_path: Path) -> None:
    (place,) = findings(tmp_path, "ladder", noise=0, drift=0).groups
    first, *others = factors(place)
    assert not first.known
    assert [f.value for f in others] == pytest.approx([5, 20 / 7, 14 / 13.97, 13.97 / 8])
    arms = fab.ladder()
    arms[2] = dataclasses.replace(arms[2], failed="no")
    (place,) = findings(tmp_path / "failed", "ladder", arms=arms).groups
    assert [f.known for f in factors(place)] == [False, True, False, False, True]
    assert "failed" in texts(draw(tmp_path / "drawn", "ladder", arms=arms))


def test_the_knee_is_named_and_the_search_has_its_limit_and_needs_no_proof(tmp_path: Path) -> None:
    assert "knee 512" in texts(draw(tmp_path, "batch"))
    found = findings(tmp_path / "more", "batch")
    figure = drawn(draw_search, found)
    assert found.search is not None and studies.search_sentence(found.search) in draw_search.more(found)
    said = texts(figure)
    assert "✓" in said and "✗" in said and "limit, 2.00 GB" in said and "half of the memory that was free" in said
    fab.lever_folder(tmp_path / "unproven", fab.batch(), ["batch"])
    store.write_json(tmp_path / "unproven" / "search.json", {**fab.SEARCH, "proven": [], "largest": 0, "error": None})
    found = run_report.find(RunFolder(tmp_path / "unproven"))
    assert canvas.render(lambda: draw_search(found))["svg"]


def test_a_percentile_that_is_missing_says_why(tmp_path: Path) -> None:
    figure = draw(tmp_path, "inference", arms=fab.inference(blocks=10))
    assert "no p99 at batch 1, 4, 16, 64, 256: 60 single calls" in texts(figure)
    assert not [line for line in figure.axes[0].lines if line.get_marker() == "^" and len(line.get_xdata())]


def test_a_negative_phase_is_not_drawn_and_is_said(tmp_path: Path) -> None:
    arms = [fab.arm(4e-3, part="forward"), fab.arm(9e-3, part="gradient"), fab.arm(7e-3, part="step")]
    figure = draw(tmp_path, "phases", arms=arms, devices=(1,))
    assert "negative, so not drawn in the stack: update + communication -" in texts(figure)


@pytest.mark.parametrize("name", [r"my$\bad$x", "a" * 300, "/long/path" * 30, "{}", "x\ny", "[b]"])
@pytest.mark.parametrize("kind", ["freeze", "arms"])
def test_names_are_text_and_stay_inside_the_figure(tmp_path: Path, kind: str, name: str) -> None:
    arms = [fab.arm(0.01, freeze="none"), fab.arm(0.008, freeze=name)]
    swept = ["freeze"] if kind == "freeze" else ["execution", "freeze"]
    run = RunFolder(fab.lever_folder(tmp_path, arms, swept, experiment=name))
    made = run_report.find(run)
    with canvas.style():
        figure = build.figures()[kind].draw(made)
        assert figure is not None
        figure.draw_without_rendering()
    assert figure.axes[0].get_window_extent().width > 80 * canvas.DPI / 100
