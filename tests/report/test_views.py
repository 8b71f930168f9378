# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A figure is a file: found by its name, drawn for its kinds of runs, at its position on the page."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import fabricate
import pytest
from report import runs

from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.report import figures, run_report, views
from jaxbench.workloads.cases import VIEWS

FOLDER = Path(figures.__path__[0])
NEW = """
from jaxbench.report.drawing.plot import plot
@plot("brand_new", views=("training",), order=-1)
def draw_brand_new(run):
    "a test"
    return None if run.experiment == "empty" else __import__("matplotlib.figure").figure.Figure()
"""


@pytest.mark.parametrize("name", views.figures())
def test_every_figure_has_a_caption_and_runs(name: str) -> None:
    plot = views.figures()[name]
    assert plot.caption.endswith(".")
    assert {view.partition("/")[0] for view in plot.views} <= {"training", "levers", "cases", "compiled"}


def test_every_view_that_something_asks_for_has_a_figure() -> None:
    assert set(VIEWS) == set(views.views("cases"))
    assert {*run_report._VIEWS.values(), "inference", "arms"} <= set(views.views("levers"))


def test_a_new_file_is_found_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "brand_new.py").write_text(NEW)
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path / "figures")])
    monkeypatch.setattr(views, "_FOLDER", tmp_path / "figures")
    views.figures.cache_clear()
    try:
        run = run_report.find(RunFolder(fabricate.run_folder(tmp_path / "run", devices=(1, 2), rounds=2)))
        (picture,) = views.pictures(run)
        assert (picture.name, picture.caption) == ("brand_new", "a test")
        assert (tmp_path / "run/figures/brand_new.svg").is_file()
    finally:
        views.figures.cache_clear()


def test_the_figures_of_a_run_are_those_of_its_kind_and_view(tmp_path: Path) -> None:
    config = {"report": {"overlay": "", "view": "zero"}}
    run = RunFolder(fabricate.run_folder(tmp_path / "zero", devices=(1,), rounds=1, config=config))
    names = ["zero", "scaling", "waterfall", "hosts", "roofline", "profile", "search", "ranks", "blocks"]
    assert list(views.of(run_report.find(run))) == names
    assert list(views.of(runs.findings(tmp_path / "c", "collectives"))) == ["busbw", "alpha_beta", "blocks"]


def test_cases_of_an_unknown_view_are_refused(tmp_path: Path) -> None:
    found = runs.findings(tmp_path, "curves")
    with pytest.raises(UserError, match="did you mean 'curves'"):
        views.of(dataclasses.replace(found, view="curvs"))


def test_an_unknown_view_in_a_runs_config_is_refused(tmp_path: Path) -> None:
    config = {"report": {"overlay": "", "view": "zerro"}}
    run = RunFolder(fabricate.run_folder(tmp_path, devices=(1,), rounds=1, config=config))
    with pytest.raises(UserError, match="report.view=zerro.* did you mean 'zero'"):
        views.of(run_report.find(run))
