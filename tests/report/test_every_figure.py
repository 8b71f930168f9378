# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rules for every figure of fabricated and committed runs: readable labels, n and error bars explained."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fabricate
import fabricate_arms
import fabricate_forecasts
import fabricate_losses
import fabricate_ranks
import fabricate_tokens
import pytest
from fabricate_losses import Loss
from house.tree import ROOT
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from report import runs
from thin import thin

from jaxbench import config
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.features.forecast.figures import draw_forecast
from jaxbench.features.time_to_target import analysis as curves
from jaxbench.features.time_to_target.page import draw_targets
from jaxbench.features.training.costs import Costs
from jaxbench.features.training.figures import draw_goodput
from jaxbench.features.training.trainings import Trained
from jaxbench.report import build, run_report
from jaxbench.report import figures as figures_views
from jaxbench.report.drawing import canvas, fitness, marks
from jaxbench.report.drawing.canvas import Look
from jaxbench.report.drawing.fitness import cut, overlaps, shown
from jaxbench.report.drawing.notes import display
from jaxbench.report.run_report import RunReport
from jaxbench.workloads.cases import VIEWS

Make = Callable[[Path], Path]
Drawn = Callable[[str], list[tuple[str, Figure]]]
LOSSES = {2: Loss(share=1.3, machine=0.7, communication=0.9), 8: Loss(share=1.06, machine=0.6, communication=0.5)}
MADE: dict[str, Make] = {
    **{f"cases/{view}": lambda path, view=view: runs.folder(path, view) for view in runs.VIEWS},  # type: ignore[misc]
    "cases/both": lambda path: runs.folder(path, "curves", runs.both(), manifest=runs.GPU_MANIFEST),
    **{f"levers/{kind}": lambda path, kind=kind: fabricate_arms.folder(path, kind) for kind in fabricate_arms.RUNS},  # type: ignore[misc]
    "losses": lambda path: fabricate_losses.folder(path, LOSSES, scalings=("strong", "weak")),
    "resnet50": lambda path: fabricate.run_folder(
        path, experiment="resnet50", strategies=("jit_auto", "fsdp", "pmap"), config={"report": {"overlay": OVERLAY}}
    ),
    "ranks": lambda path: fabricate_ranks.folder(path, [1.0, 1.0, 1.3, 1.0]),
    "tokens": fabricate_tokens.folder,
}
OVERLAY = "tf_dgx1_p100_synth"
COMMITTED = (
    "cnn", "ladder", "links/1gbit/cnn", "machine/collectives", "machine/dispatch", "machine/matmul", "machine/stream",
    "machine/transfer", "remat", "versus", "zero",
)  # fmt: skip
QUICK = ["cases/versus", "cases/collectives", "levers/remat", "levers/ladder", "losses", "cnn", "zero"]
EVERY = [*MADE, *COMMITTED]
IDS = re.compile(
    r"\w/(strong|weak)/\d|\b(execution|precision|remat|accumulate|input|batch|freeze|compiler)=\S|\b\d+[kmg]bit\b"
    r"|\b(all_reduce|all_gather|reduce_scatter|all_to_all|op_by_op)\b|\b(host|device)_to_|\b[cgt]pu:\d"
    r"|smaller share|shared machine|not explained|most rows|times (the|as|one|K)\b|reckon|texts that this project"
)
COLUMN_IN = 3.5
PAGE_IN = 9.5  # a taller figure does not fit on a page with its caption


def found(name: str, path: Path) -> RunReport:
    return build.find(MADE[name](path) if name in MADE else ROOT / "docs/figures" / name)


def laid_out(draw: Callable[[], Figure | None], look: Look | None = None) -> Figure | None:
    with canvas.style(look):
        figure = draw()
        if figure is not None:
            canvas.lay_out(figure)
    return figure


def filled(sheet: canvas.Sheet) -> canvas.Sheet:
    """A sheet with a mark in each panel: one without data is not drawn."""
    for axes in sheet.panels.flat:
        axes.plot([1], [1], marker="o")
    return sheet


def figures(run: RunReport, look: Look | None = None) -> Iterator[tuple[str, Figure]]:
    """Every figure of the run, as written."""
    for name, module in build.figures_of(run).items():
        figure = laid_out(lambda module=module: module.draw(run), look)  # type: ignore[misc]
        if figure is not None:
            yield name, figure


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """The figures of a run, drawn once for all tests that read them."""
    return functools.cache(lambda name: list(figures(found(name, tmp_path_factory.mktemp("run")))))


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in shown(figure))


def bars(figure: Figure) -> bool:
    """Whether any mark has an error bar."""
    parts = (one for axes in figure.axes for one in axes.containers if isinstance(one, ErrorbarContainer))
    segments = (lines.get_segments() for one in parts for lines in one.lines[2])
    return any(abs(line[0] - line[1]).max() > 0 for each in segments for line in each if len(line) == 2)


@pytest.mark.parametrize("name", thin(EVERY, QUICK))
def test_a_figure_is_read_without_the_page(drawn: Drawn, name: str) -> None:
    for figure_name, figure in drawn(name):
        said, what = words(figure), f"{name}: {figure_name}"
        assert not overlaps(figure), what
        assert not cut(figure), what
        assert not IDS.search(said), (what, IDS.search(said))
        assert not fitness.faults(figure), what
        if bars(figure):
            assert "95 % confidence interval" in said and re.search(r"\bn = \d", said), what
        assert figure.get_figheight() <= PAGE_IN, what


@pytest.mark.parametrize("name", thin(EVERY, ["losses", "resnet50", "levers/arms", "cases/matmul"]))
def test_a_figure_can_be_as_narrow_as_a_column(tmp_path: Path, name: str) -> None:
    run = found(name, tmp_path)
    for figure_name, figure in figures(run, Look(COLUMN_IN, "Ours")):
        what = f"{name}: {figure_name}"
        assert figure.get_figwidth() == COLUMN_IN
        assert not cut(figure), what
        assert not overlaps(figure), what
        assert "Ours: " in words(figure).replace("\n", " "), what
        panels = [axes for axes in figure.axes if axes.get_visible() and axes.axison]
        assert min(axes.get_window_extent().width for axes in panels) > 0.8 * figure.dpi, what


@pytest.mark.usefixtures("every_format")
@pytest.mark.parametrize("name", thin([*MADE, "machine/matmul"], ["cases/dispatch"]))
def test_three_formats_seven_inches_and_the_same_bytes_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run = found(name, tmp_path)

    def rendered() -> dict[str, dict[str, bytes]]:
        return {plot.name: canvas.render(lambda plot=plot: plot(run)) for plot in build.figures_of(run).values()}  # type: ignore[misc]

    first = rendered()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")  # another day for matplotlib
    assert first == rendered() and any(first.values())
    for files in filter(None, first.values()):
        assert set(files) == {"svg", "pdf", "png"} and files["pdf"].startswith(b"%PDF")
        assert files["png"].startswith(b"\x89PNG") and int.from_bytes(files["png"][16:20], "big") == 1400  # at 200 dpi
        assert b"<text" not in files["svg"] and b"<image" not in files["svg"], "shapes only, in any reader's fonts"


def test_the_last_bits_of_the_layout_change_no_byte() -> None:
    """They differ from process to process, and the ids of clip paths are hashes of positions."""
    figure = laid_out(lambda: filled(canvas.Sheet(2, 3, sharex=True)).finish("a figure: of six panels"))
    assert figure is not None and len(figure.axes) == 6
    for axes in figure.axes:
        assert axes.get_position().bounds == pytest.approx([round(x, 9) for x in axes.get_position().bounds], abs=1e-15)
        assert axes.get_in_layout(), "or it is cut off where a figure is saved with a tight box"


@pytest.mark.parametrize("name", thin(["remat", "versus"], 1))
def test_no_line_crosses_the_label_of_a_mark(drawn: Drawn, name: str) -> None:
    for figure_name, figure in drawn(name):
        for axes in figure.axes:
            lines = list(canvas._paths(axes))
            for text in (text for text in axes.texts if text.get_label() == canvas.MOVABLE):
                box = Text.get_window_extent(text)
                crossed = any(line.intersects_bbox(box, filled=False) for line in lines)
                assert not crossed, f"{figure_name}: {text.get_text()}"


def test_each_line_is_labelled_at_its_own_height(drawn: Drawn) -> None:
    """The names of the roofs were one line too high."""
    (figure,) = [figure for name, figure in drawn("zero") if name == "roofline"]
    (axes,) = figure.axes
    roofs = {text.get_text(): text for text in axes.texts if text.get_text().startswith(("float32", "bfloat16"))}
    heights = {line.get_ydata()[0] for line in axes.lines if len(set(line.get_ydata())) == 1 < len(line.get_ydata())}
    assert len(roofs) == 2 == len(heights)
    for text in roofs.values():
        assert isinstance(text, Annotation)
        own = text.xy[1]
        assert min(heights, key=lambda height: abs(height / text.xyann[1] - 1)) == own


@pytest.mark.parametrize("name", ["zero"])
def test_the_memory_roof_rises_inside_the_panel_and_bears_its_name(drawn: Drawn, name: str) -> None:
    (figure,) = [figure for kind, figure in drawn(name) if kind == "roofline"]
    (axes,) = figure.axes
    (text,) = [text for text in axes.texts if text.get_text().startswith("memory ")]
    x, y = text.get_position()
    assert float(text.get_text().split()[1]) * 1e9 == pytest.approx(y / x, rel=0.01), "the name stands on its line"
    top = max(y for line in axes.lines for y in line.get_ydata()[:2] if len(line.get_ydata()) == 2)
    assert axes.get_xlim()[0] * (y / x) < 0.5 * top, "it rises"
    assert len(figure.legends[0].get_texts()) <= 8


def test_the_ideal_looks_like_nothing_that_was_published() -> None:
    assert marks.DASHES["color"] != marks.PUBLISHED["color"]
    assert marks.guide_handle("").get_linestyle() != marks.published_handle("o", "").get_linestyle()


def trained(batch: int, devices: int, seed: int, rule: str) -> Trained:
    return Trained(
        model="mlp", batch=batch, devices=devices, seed=seed, learning_rate=0.1, rule=rule, target=0.9,
        steps=round(2000 * (1 + 100 / batch) * (1 + 0.1 * seed)), reached=True, diverged=None, accuracy=0.95,
        step_s=1e-4 / devices, noise=((10, 1.0, 90.0 + seed),), folder=f"mlp-{batch}-{seed}",
    )  # fmt: skip


def test_a_colour_is_a_device_count_in_every_panel_of_time_to_target() -> None:
    made = [
        trained(batch, devices, seed, rule)
        for rule in ("sqrt", "linear")
        for batch in (8, 64, 512)
        for devices in (1, 2)
        for seed in (0, 1, 2)
    ]
    figure = laid_out(lambda: draw_targets(curves.curves(made), title="time_to_target: steps and time to a target"))
    assert figure is not None and not overlaps(figure) and not cut(figure)
    said = words(figure)
    assert "n = 3 seeds" in said and "95 % confidence intervals" in said
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"1 device", "2 devices", "learning rate: sqrt", "learning rate: linear"} <= legend
    for axes in figure.axes:
        colours = {line.get_color() for line in axes.lines if line.get_marker() in marks.MARKERS}
        assert colours == set(marks.COLOURS[:2])
    for axes in figure.axes[1:]:
        assert "second" not in axes.get_title(loc="left") and axes.yaxis.get_major_formatter()(0.1) == "100 ms"
    assert "lower limit" not in said
    missed = [dataclasses.replace(one, reached=one.batch < 512) for one in made]
    figure = laid_out(lambda: draw_targets(curves.curves(missed), title="x"))
    assert figure is not None and "hollow with an arrow: a lower limit" in words(figure)


@pytest.mark.parametrize("name", thin(["cases/versus", "versus"], 1))
def test_an_axis_with_units_on_its_ticks_names_no_other(drawn: Drawn, name: str) -> None:
    for _, figure in drawn(name):
        for axes in figure.axes:
            ticks = " ".join(label.get_text() for label in [*axes.get_xticklabels(), *axes.get_yticklabels()])
            said = " ".join((axes.get_xlabel(), axes.get_ylabel(), axes.get_title(loc="left")))
            assert not (re.search(r"\d (ms|µs|s)\b", ticks) and re.search(r"\bseconds\b|, m?s\b", said)), said


def test_an_empty_figure_is_not_drawn() -> None:
    one = fabricate_forecasts.at(8)
    assert draw_forecast([one], title="Forecast") is None, "a forecast of one target"
    both = laid_out(lambda: draw_forecast([one, fabricate_forecasts.at(64)], title="Forecast"))
    assert both is not None and not overlaps(both) and not cut(both)
    costs = Costs(interval_s=2.0, checkpoint_s=0.1, latency_s=0.2, restart_s=3.0, down_s=0.1, useful=0.9)
    assert draw_goodput({"steps": 8 * 10**9}, costs, title="mlp: goodput") is None, "8 s of work say nothing"
    figure = laid_out(lambda: draw_goodput({"steps": 3600 * 10**9}, costs, title="mlp: goodput"))
    assert figure is not None and len(figure.axes) == 2


def test_blocks_have_a_scale(drawn: Drawn) -> None:
    (figure,) = [figure for name, figure in drawn("losses") if name == "blocks"]
    axes: Axes = figure.axes[0]
    scale = {text.get_text(): text.xy[1] for text in axes.texts if isinstance(text, Annotation)}
    assert set(scale) == {"+30 %", "median", "−30 %"} and scale["+30 %"] < scale["median"] < scale["−30 %"]


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("jit_auto/strong/1", "jit_auto, strong, 1 device"),
        ("fsdp/weak/8/remat=block", "fsdp, weak, 8 devices, remat: block"),
        ("execution=eager", "execution: eager"),
        ("data=2, tensor=2", "data=2, tensor=2"),
        ("A is --config.batch=64, --margin=2%", "A is --config.batch=64, --margin=2%"),
        ("1gbit", "1 Gbit/s"),
        ("300mbit", "300 Mbit/s"),
        ("smaller share", "smaller per-device batch"),
        ("all_reduce", "all-reduce"),
        ("device_to_host/float32/1024B/cpu:0->host", "device to host, float32, 1 KiB, CPU 0 → host"),
        ("copy/float32/4096/jit/cores1", "copy, float32, 4096, jit, 1 core"),
        ("/path/to/mine.py", "/path/to/mine.py"),
        ("my_model", "my_model"),
        ("images/s", "images/s"),
    ],
)
def test_one_function_says_what_an_id_is_called(id: str, said: str) -> None:
    assert display(id) == said


def test_the_title_is_the_experiments_unless_it_is_chosen() -> None:
    def title(look: dict[str, Any]) -> str:
        figure = laid_out(lambda: filled(canvas.Sheet()).finish("cnn: throughput"), canvas.look_of({"report": look}))
        assert figure is not None
        return figure.legends[0].get_title().get_text()

    assert title({}) == "cnn: throughput" and title({"title": "Our CNN"}) == "Our CNN: throughput"
    assert title({"title": "none"}) == ""


def test_a_report_draws_what_is_asked_in_place_of_what_the_run_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, of = MADE["losses"](tmp_path), build.figures_of
    monkeypatch.setattr(build, "figures_of", lambda run: {"scaling": of(run)["scaling"]})
    for look, points in ((None, 504), ({"width_in": COLUMN_IN}, 252)):
        build.write(run, look=look)
        assert f'width="{points}pt"' in (run / "figures/scaling.svg").read_text()


def test_the_look_of_a_run_is_what_it_recorded_until_it_is_changed() -> None:
    assert config.check_look(config.look({}))["width_in"] == 7.0
    recorded = config.look({"report": {"width_in": 5.0, "overlay": "", "view": "zero"}})
    assert config.check_look(recorded) == {"width_in": 5.0, "title": "", "overlay": ""}
    with pytest.raises(UserError, match="width_in=1 is out of range: use 2.5 to 20"):
        config.check_look(config.look({"report": {"width_in": 1.0}}))


# A figure is a file: found by its name, drawn for its kinds of runs, at its position on the page.


FOLDER = Path(figures_views.__path__[0])
NEW = """
from jaxbench.report.drawing.canvas import plot
@plot("brand_new", views=("training",), order=-1)
def draw_brand_new(run):
    "a test"
    return None if run.experiment == "empty" else __import__("matplotlib.figure").figure.Figure()
"""


@pytest.mark.parametrize("name", build.figures())
def test_every_figure_has_a_caption_and_runs(name: str) -> None:
    plot = build.figures()[name]
    assert plot.caption.endswith(".")
    assert {view.partition("/")[0] for view in plot.views} <= {"training", "levers", "cases", "compiled", "decode"}


def test_every_view_that_something_asks_for_has_a_figure() -> None:
    assert set(VIEWS) == set(build.views_of("cases"))
    assert {*run_report._VIEWS.values(), "inference", "arms"} <= set(build.views_of("levers"))


def test_a_new_file_is_found_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "brand_new.py").write_text(NEW)
    monkeypatch.setattr(figures_views, "__path__", [*figures_views.__path__, str(tmp_path / "figures")])
    monkeypatch.setattr(build, "_FOLDER", tmp_path / "figures")
    build.figures.cache_clear()
    try:
        run = run_report.find(RunFolder(fabricate.run_folder(tmp_path / "run", devices=(1, 2), rounds=2)))
        (picture,) = build.pictures(run)
        assert (picture.name, picture.caption) == ("brand_new", "a test")
        assert (tmp_path / "run/figures/brand_new.svg").is_file()
    finally:
        build.figures.cache_clear()


def test_the_figures_of_a_run_are_those_of_its_kind_and_view(tmp_path: Path) -> None:
    config = {"report": {"overlay": "", "view": "zero"}}
    run = RunFolder(fabricate.run_folder(tmp_path / "zero", devices=(1,), rounds=1, config=config))
    names = [
        "zero",
        "scaling",
        "waterfall",
        "hosts",
        "roofline",
        "profile",
        "search",
        "ranks",
        "blocks",
        "clocks",
        "energy",
    ]
    assert list(build.figures_of(run_report.find(run))) == names
    assert list(build.figures_of(runs.findings(tmp_path / "c", "collectives"))) == [
        "busbw",
        "alpha_beta",
        "blocks",
        "clocks",
    ]


def test_an_unknown_view_in_a_runs_config_is_refused(tmp_path: Path) -> None:
    config = {"report": {"overlay": "", "view": "zerro"}}
    run = RunFolder(fabricate.run_folder(tmp_path, devices=(1,), rounds=1, config=config))
    with pytest.raises(UserError, match="report.view=zerro.* did you mean 'zero'"):
        build.figures_of(run_report.find(run))
