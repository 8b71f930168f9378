# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of kernels, transfers and collectives: reproducible bytes, drawn as documented."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases as fab
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from report import runs
from report.runs import drawn, texts

from jaxbench.catalog import published
from jaxbench.core import store
from jaxbench.core.store import RunFolder
from jaxbench.report import build, run_report
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.figures import roofline
from jaxbench.report.figures.kernels import (
    MATMUL_LIMIT,
    draw_curves,
    draw_dispatch,
    draw_fusion,
    draw_linalg,
    draw_matmul,
    draw_stream,
)
from jaxbench.report.figures.links import draw_alpha_beta, draw_busbw, draw_transfer
from jaxbench.report.figures.roofline import Spot, of_cases, of_training
from jaxbench.report.figures.versus import draw_call_split, draw_versus, draw_ways_to_target
from jaxbench.statistics.bootstrap import Estimate

FIGURES = {name: plot.views for name, plot in build.figures().items()}
EVERY = [(view, name) for view in runs.VIEWS for name, shown in FIGURES.items() if f"cases/{view}" in shown]


def panel(figure: Figure, title: str) -> Axes:
    (found,) = [axes for axes in figure.axes if axes.get_title(loc="left") == title]
    return found


def joined(axes: Axes) -> list[Line2D]:
    """The lines that join points."""
    return [line for line in axes.lines if line.get_linestyle() not in ("None", "none", "")]


def xs(lines: list[Line2D]) -> set[float]:
    return {float(x) for line in lines for x in np.asarray(line.get_xdata(), dtype=float)}


def marked(axes: Axes, **style: Any) -> list[Line2D]:
    return [
        line for line in axes.lines if all(getattr(line, f"get_{name}")() == value for name, value in style.items())
    ]


@pytest.mark.parametrize(("view", "name"), EVERY)
def test_nothing_measured_is_nothing_drawn(tmp_path: Path, view: str, name: str) -> None:
    found = runs.findings(tmp_path, view, rounds=0, machine=fab.card())
    assert canvas.render(lambda: build.figures()[name].draw(found)) == {}


def test_refused_and_wrong_rows_are_crosses_off_the_line(tmp_path: Path) -> None:
    found = runs.findings(tmp_path, "curves")
    states = {row.point_id: (row.gate, row.point.check_ok) for row in found.rows}
    assert states["gelu/float32/10000000/jit"] == ("refused", True)
    assert states["gelu/float32/10000000/numpy"] == ("refused", False)
    figure = drawn(draw_curves, found)
    for title in ("gelu: time per call", "gelu: elements/s"):
        axes = panel(figure, title)
        series = [line for line in joined(axes) if line.get_linestyle() == "-"]
        assert 1e6 in xs(series) and 1e7 not in xs(series), "no line goes through what is not believed"
        (refused,) = marked(axes, marker="x", color=marks.PALE)
        (bad,) = marked(axes, marker="x", color="black")
        assert xs([refused]) == xs([bad]) == {1e7} and bad.get_markersize() > refused.get_markersize()
    assert notes.REFUSED in texts(figure) and notes.WRONG in texts(figure)


def test_curves_name_crossings_and_half_of_the_best_rate_and_differ_without_colour(tmp_path: Path) -> None:
    figure = drawn(draw_curves, runs.findings(tmp_path, "curves"))
    assert "a  10k: jit passes numpy" in texts(figure) and "n½ jit: " in texts(figure)
    dotted = [line for line in joined(panel(figure, "gelu: time per call")) if line.get_linestyle() != "-"]
    assert xs(dotted) == {10_000}
    bars = marked(panel(figure, "gelu: elements/s"), marker="|")
    assert len(bars) == 2 and all(100 < x < 1e6 for x in xs(bars))
    assert len({h.get_marker() for h in figure.legends[0].legend_handles}) == 2
    assert len(panel(figure, "gelu: time per call").containers) == 2


def test_buses_of_fake_devices_are_hollow_and_published_ones_dotted_and_one_device_has_none(tmp_path: Path) -> None:
    figure = drawn(draw_busbw, runs.findings(tmp_path, "collectives"))
    axes = panel(figure, "all-gather")
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    filled = [line for line in axes.lines if line.get_marker() in marks.MARKERS and line not in hollow]
    assert len(hollow) == 2 and len(filled) == 1
    assert notes.FAKE in texts(figure)
    assert "1 device" not in texts(figure)
    alone = fab.alpha_beta("all_reduce", 1, [2**10, 2**20], alpha_s=1e-5, beta=1e9)
    assert draw_busbw(runs.findings(tmp_path / "alone", "collectives", alone)) is None
    axes = panel(figure, "all-reduce: bus bandwidth")
    behind = marked(axes, color=marks.PALE)
    table = published.read("allreduce_busbw").frame
    assert [line.get_label() for line in behind] == ["8 A100", "8 H200", "8 B200", "4 nodes of 8 B200"]
    for line, name in zip(behind, table.columns[1:], strict=True):
        assert line.get_linestyle() == ":" and line.get_markerfacecolor() == "white"
        assert list(line.get_xdata()) == list(table["bytes"]) and np.allclose(line.get_ydata(), table[name])
    assert "Machine Learning Engineering Open Book" in texts(figure) and "not measured here" in texts(figure)
    assert not marked(panel(figure, "all-gather"), color=marks.PALE)


def test_alpha_beta_shows_the_fit_and_what_it_leaves_over(tmp_path: Path) -> None:
    found = runs.findings(tmp_path, "collectives")
    figure = drawn(draw_alpha_beta, found)
    above, below = figure.axes[0], figure.axes[2]
    fit = next(f for f in found.lines if f.point.op == "all_reduce" and f.point.devices == 2 and f.point.mesh == "2")
    fits = [line for line in joined(above) if len(line.get_xdata()) == 100]
    assert any(np.allclose(line.get_ydata(), fit.seconds_at(np.asarray(line.get_xdata()))) for line in fits)
    shown = [list(line.get_ydata()) for line in joined(below)]
    assert [100 * residual for _, residual in fit.residuals] in shown and "measured - line, %" in texts(figure)


def test_too_many_pairs_are_thinned_and_it_says_so(tmp_path: Path) -> None:
    figure = drawn(draw_alpha_beta, runs.findings(tmp_path, "transfer"))
    assert "device to device: 2 of 12 groups, from the slowest to the fastest" in texts(figure)
    assert "GPU 1 → GPU 3" in texts(figure), "the slowest is one of them"


def test_slow_pairs_are_framed_and_named(tmp_path: Path) -> None:
    figure = drawn(draw_transfer, runs.findings(tmp_path, "transfer", runs.transfer(5)))
    heat = panel(figure, "GB/s, largest payload")
    assert [t.get_text() for t in heat.get_yticklabels()] == ["host", *(f"GPU {i}" for i in range(5))]
    (frame,) = [patch for patch in heat.patches if isinstance(patch, Rectangle)]
    assert (round(frame.get_x() + 0.46), round(frame.get_y() + 0.46)) == (4, 2), "from gpu:1 to gpu:3"
    assert "framed: below 75 % of the median of its kind: GPU 1 → GPU 3 (3" in texts(figure)
    numbers = [t.get_text() for t in heat.texts]
    assert len(numbers) == 30 and any(n.startswith("2") for n in numbers)


def test_lines_are_the_pairs_with_the_most_payloads(tmp_path: Path) -> None:
    every = runs.transfer(2)
    kept = [m for m in every if m.record.payload_bytes == 2**28 or "gpu:0" in (m.record.source, m.record.target)]
    figure = drawn(draw_transfer, runs.findings(tmp_path, "transfer", kept))
    legend = [t.get_text() for t in figure.legends[0].get_texts()]
    assert legend == ["host → GPU 0", "GPU 0 → host", "GPU 0 → GPU 1", "GPU 1 → GPU 0"]


def test_a_refused_pair_is_a_cross_and_not_slow(tmp_path: Path) -> None:
    made = [fab.transfer("host_to_device", 2**28, "host", f"gpu:{i}", call_s=0.01, **runs.GPU) for i in range(3)]
    made[0] = fab.transfer("host_to_device", 2**28, "host", "gpu:0", call_s=0.05, fixed_s=20.0, **runs.GPU)
    found = runs.findings(tmp_path, "transfer", made)
    assert [row.gate for row in found.rows] == ["refused", "passed", "passed"]
    figure = drawn(draw_transfer, found)
    bars = panel(figure, "GB/s at 256 MiB")
    assert len(bars.patches) == 2 and notes.REFUSED in texts(figure) and "slow:" not in texts(figure)
    many = [fab.transfer("host_to_device", 2**28, "host", f"gpu:{i}", call_s=0.01, **runs.GPU) for i in range(7)]
    many[0] = fab.transfer("host_to_device", 2**28, "host", "gpu:0", call_s=0.05, fixed_s=20.0, **runs.GPU)
    heat = panel(drawn(draw_transfer, runs.findings(tmp_path / "many", "transfer", many)), "GB/s, largest payload")
    assert sorted(t.get_text() for t in heat.texts)[-1] == "x" and not heat.patches


def test_a_known_cache_and_the_memory_plateau_are_marked(tmp_path: Path) -> None:
    figure = drawn(draw_stream, runs.findings(tmp_path, "stream"))
    assert "cache 32 MiB" in texts(figure) and "4 x cache" in texts(figure)
    (axes,) = figure.axes
    assert {32 * 2**20, 128 * 2**20} <= xs([line for line in joined(axes) if line.get_color() == marks.GREY])
    (plateau,) = [line for line in axes.lines if line.get_label() == "_guide"]
    assert plateau.get_ydata()[0] == pytest.approx(9, rel=0.05) and plateau.get_xdata()[0] > 64 * 2**20
    assert "GB/s from memory" in axes.get_title(loc="left")
    figure = drawn(draw_stream, runs.findings(tmp_path / "unknown", "stream", manifest={"cache_bytes": None}))
    assert "cache" not in texts(figure)


def test_launch_bound_sizes_claim_no_bandwidth(tmp_path: Path) -> None:
    """Below 1 MiB launch time dominates a call; the line rose as if caches were slow there."""
    made = runs.stream()
    made[0] = fab.stream("copy", 2**10, bytes_per_s=2e9, loop_s=1e-7)
    found = runs.findings(tmp_path, "stream", made)
    (bound,) = [row for row in found.rows if row.launch_bound]
    figure = drawn(draw_stream, found)
    (axes,) = figure.axes
    (points,) = [line for line in axes.get_lines() if line.get_color() == marks.PALE and len(line.get_xdata())]
    assert list(points.get_xdata()) == [bound.point.bytes_moved] and points.get_linestyle() == "None"
    assert bound.point.bytes_moved not in xs(joined(axes)) and "launch-bound" in texts(figure)
    assert "launch-bound" not in texts(drawn(draw_stream, runs.findings(tmp_path / "none", "stream")))


def test_a_line_that_misses_is_not_drawn(tmp_path: Path) -> None:
    sizes = [2**e for e in (10, 14, 18, 22, 26)]
    line = fab.alpha_beta("all_reduce", 2, sizes, alpha_s=2e-5, beta=4e9, cores=2)
    bent = [*line[:-1], fab.collective("all_reduce", sizes[-1], 2, call_s=3 * sizes[-1] / 4e9, cores=2)]
    for name, made, panels in (("right", line, 2), ("bent", bent, 1)):
        figure = drawn(draw_alpha_beta, runs.findings(tmp_path / name, "collectives", made))
        fits = [each for each in figure.axes[0].get_lines() if len(each.get_xdata()) == 100]
        assert len(fits) == panels - 1 and len(figure.axes) == panels, "residuals of no line have no panel"
        assert ("no line alpha + S / beta comes within 25 %" in texts(figure)) is (panels == 1)


def test_squares_are_a_curve_under_the_peak_and_other_shapes_are_bars(tmp_path: Path) -> None:
    figure = drawn(draw_matmul, runs.findings(tmp_path, "matmul", machine=fab.card()))
    left, right = panel(figure, "FLOP/s"), panel(figure, "other shapes: FLOP/s")
    assert {256, 512, 1024} <= xs(joined(left))
    assert not [line for line in joined(left) if line.is_dashed()], "a peak measured here is the best of these products"
    names = [t.get_text() for t in right.get_yticklabels()]
    assert len(names) == MATMUL_LIMIT and "64x32x32x32" in names and names[0] == "2560x64x64", "fastest of each kind"
    assert f"{MATMUL_LIMIT} of 21 other shapes" in texts(figure)
    assert "catalogued peak" not in texts(figure)


def test_bars_begin_at_zero_unless_times_differ_too_much_and_a_refused_one_is_a_cross(tmp_path: Path) -> None:
    near = drawn(draw_dispatch, runs.findings(tmp_path / "near", "dispatch")).axes[0]
    assert near.get_xscale() == "linear" and near.get_xlim()[0] == 0
    far = drawn(draw_dispatch, runs.findings(tmp_path / "far", "dispatch", runs.dispatch(slowest_s=3e-3))).axes[0]
    assert far.get_xscale() == "log" and far.get_xlim()[1] > 3e-3
    assert [t.get_text() for t in far.get_yticklabels()] == ["empty, pipelined", "empty, sync", "tiny, sync"]
    made = [*runs.dispatch()[:2], runs.removed(runs.dispatch(slowest_s=3e-3)[2])]
    figure = drawn(draw_dispatch, runs.findings(tmp_path / "refused", "dispatch", made))
    assert notes.REFUSED in texts(figure) and len([p for p in figure.axes[0].patches if p.get_width() > 0]) == 2


def test_fusion_shows_time_bytes_and_the_speedup(tmp_path: Path) -> None:
    figure = drawn(draw_fusion, runs.findings(tmp_path, "fusion"))
    assert "chain, 1M: time" in texts(figure) and "bytes that must move" in texts(figure)
    assert "64.0 MB" in texts(figure) and "8.00 MB" in texts(figure)
    speedups = panel(figure, "speed-up over op by op")
    (fused,) = [line for line in joined(speedups) if line.get_color() == marks.COLOURS[2]]
    assert np.allclose(fused.get_ydata(), 4, rtol=0.05) and "fused" in texts(speedups)


def test_linalg_shows_how_the_others_compare_with_jit(tmp_path: Path) -> None:
    figure = drawn(draw_linalg, runs.findings(tmp_path, "linalg"))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title for title in titles if title] == ["lu", "qr", "cholesky", "svd", "eigh"]
    ratios = [axes for axes in figure.axes if not axes.get_title(loc="left")]
    assert len(ratios) == 5
    for axes in ratios:
        (numpy,) = [line for line in joined(axes) if line.get_linestyle() == "-"]
        assert np.allclose(numpy.get_ydata(), 2, rtol=0.05)


def test_versus_shows_latency_and_throughput_over_numpy_and_published_ones_of_such_a_model(tmp_path: Path) -> None:
    found = runs.findings(tmp_path, "versus")
    figure = drawn(draw_versus, found)
    latency, throughput = figure.axes
    assert "0.001 x" in texts(latency) and "0.5 x" in texts(latency) and "4 x" in texts(throughput)
    assert "boosted trees" not in texts(figure) and "ResNet" not in texts(figure), "of a model of another kind"
    trees = [dataclasses.replace(m, record=dataclasses.replace(m.record, op="gbdt")) for m in runs.versus()]
    with_trees = drawn(draw_versus, runs.findings(tmp_path / "trees", "versus", trees))
    assert "boosted trees, Ryzen 7 2700 vs 1080 Ti" in texts(with_trees) and "2.9 x" in texts(with_trees.axes[1])
    headline, how = found.headlines
    assert headline.startswith("mlp: shortest time for 1 row: ") and " µs (numpy on" in headline
    assert re.search(r"; highest rate: 2.*Mrows/s.* with 4,096 rows at a time \(jit on [^()]*\)\.$", headline)
    assert how == "Some rounds chose the fastest of all ways, and the others measured it."


def test_a_large_speedup_has_no_exponent(tmp_path: Path) -> None:
    faster = {"jit": 50}
    made = [
        dataclasses.replace(m, call_s=m.call_s / by, loop_s=m.loop_s and m.loop_s / by)
        for m in runs.versus()
        for by in [faster.get(m.record.impl, 1)]
    ]
    figure = drawn(draw_versus, runs.findings(tmp_path, "versus", made))
    assert "200 x" in texts(figure) and "e+0" not in texts(figure)


def test_a_call_is_split_and_trainings_have_times_and_speedups(tmp_path: Path) -> None:
    found = runs.findings(tmp_path, "versus")
    figure = drawn(draw_call_split, found)
    one, most = (panel(figure, title) for title in ("1 row: latency", "4,096 rows: throughput"))
    widths = [patch.get_width() for patch in one.patches]
    assert np.allclose(widths, [40, 10, 50], atol=4) and "µs" in texts(one)
    assert "it may take no time" in texts(figure) and most.patches[0].get_facecolor()[:3] == (1, 1, 1)
    _, second = found.sentences()["Where the time goes"]
    assert "transfer cannot tell (-" in second
    none = runs.findings(tmp_path / "none", "versus", runs.versus()[:3])
    assert draw_call_split(none) is None
    figure = drawn(draw_ways_to_target, found)
    times, ratios = figure.axes
    assert "mlp: jit on 1 core" in texts(times) and "2 x" in texts(ratios) and "n = 3 seeds" in texts(figure)
    assert len(found.sentences()["Training to a target"]) == 2
    assert draw_ways_to_target(none) is None


@pytest.mark.parametrize("view", list(runs.VIEWS))
def test_hostile_names_are_text_and_stay_inside_the_figure(tmp_path: Path, view: str) -> None:
    hostile = r"my$\bad$<x>" + "y" * 80
    made = [
        dataclasses.replace(m, record=dataclasses.replace(m.record, op=hostile, impl=m.record.impl or "x"))
        for m in runs.VIEWS[view]()[:6]
    ]
    found = runs.findings(tmp_path, view, made)
    with canvas.style():
        for module in build.figures_of(found).values():
            figure = module.draw(found)
            if figure is not None:
                figure.draw_without_rendering()
                for axes in figure.axes:
                    box = axes.get_window_extent()
                    assert box.width > 100 and box.x1 <= figure.bbox.width, "names do not flatten the panels"


# The roofline: ceilings from the profile, every kernel and training step below them.


GPU_CARD = fab.card()
GPU_CARD["machine"] |= runs.GPU
GPU_CARD["peaks"] = [
    fab.peak("flop_per_s", 2, 3.5e14, op="matmul", platform="gpu"),
    fab.peak("bytes_per_s", 2, 4e12, op="triad", level="memory", platform="gpu"),
]


def spot(**facts: Any) -> Spot:
    rate = Estimate(value=facts.pop("value", 1e10))
    common: dict[str, Any] = dict(label="gelu", at=1.0, platform="cpu", value=rate)
    return Spot(**{**common, **facts})


def drawn_roofline(spots: list[Spot], card: dict[str, Any] | None = None, dtype: str = "float32") -> Figure:
    with canvas.style():
        figure = roofline.under(spots, profile=card or fab.card(), title="x", dtype=dtype)
    assert figure is not None
    return figure


def ceilings(figure: Figure) -> list[Line2D]:
    return [line for line in figure.axes[0].lines if len(line.get_xdata()) == 2]


def test_ceilings_are_those_of_the_card_on_all_cores() -> None:
    figure = drawn_roofline([spot()])
    flat = [line for line in ceilings(figure) if line.get_ydata()[0] == line.get_ydata()[1]]
    assert [line.get_ydata()[0] for line in flat] == [1.9e11], "two cores, not one"
    slopes = {round(line.get_ydata()[0] / line.get_xdata()[0]) for line in ceilings(figure) if line not in flat}
    assert slopes == {15_000_000_000, 110_000_000_000}
    for said in ("float32 190 GFLOP/s", "memory 15.0 GB/s", "cache 110 GB/s"):
        assert said in texts(figure)


def test_the_ceiling_of_the_rows_dtype_is_the_heavy_one() -> None:
    card = fab.card()
    card["peaks"].append(fab.peak("flop_per_s", 2, 9e10, op="matmul", dtype="float64"))
    for dtype, heavy in (("float32", 1.9e11), ("float64", 9e10)):
        lines = [(*line.get_ydata(), line.get_linewidth()) for line in ceilings(drawn_roofline([spot()], card, dtype))]
        widths = {low: width for low, high, width in lines if low == high}
        assert max(widths, key=lambda value: widths[value]) == heavy and len(set(widths.values())) == 2


def test_catalogue_peaks_are_dashed() -> None:
    figure = drawn_roofline([spot(platform="gpu", value=1e12)], GPU_CARD)
    assert len([line for line in ceilings(figure) if line.get_linestyle() == "--"]) == 2
    assert "float32 peak" in texts(figure) and "memory peak 4.80 TB/s" in texts(figure)


def test_without_a_bandwidth_there_is_no_roofline() -> None:
    card = fab.card()
    card["peaks"] = [peak for peak in card["peaks"] if peak["quantity"] == "flop_per_s"]
    assert roofline.under([spot()], profile=card, title="x", dtype="float32") is None


def test_each_platform_has_its_own_panel_and_ceilings() -> None:
    card = fab.card()
    card["peaks"] += GPU_CARD["peaks"]
    figure = drawn_roofline([spot(), spot(platform="gpu", value=1e12)], card)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["cpu", "gpu"]


def test_marks_say_what_a_spot_is() -> None:
    kinds = (dict(state="refused"), dict(state="wrong"), dict(kind="kernel"))
    figure = drawn_roofline([spot(at=i + 1.0, **kind) for i, kind in enumerate(kinds)] + [spot(state="hollow")])
    (axes,) = figure.axes
    styles = {line.get_xdata()[0]: line for line in axes.lines if len(line.get_xdata()) == 1}
    assert (styles[1.0].get_marker(), styles[2.0].get_marker(), styles[3.0].get_marker()) != ("o", "o", "o")
    assert any(line.get_markerfacecolor() == "white" for line in axes.lines)
    for said in (notes.REFUSED, notes.WRONG, notes.HOLLOW):
        assert said in texts(figure)


def test_kernels_stand_at_their_intensity(tmp_path: Path) -> None:
    found = runs.findings(tmp_path, "matmul")
    spots = of_cases(found.rows)
    assert len(spots) == len(found.rows)
    assert {s.label for s in spots} == {"matmul"}
    n = 512
    at = next(s for s, row in zip(spots, found.rows, strict=True) if row.point.elements == n)
    assert at.at == pytest.approx(2 * n**3 / (12 * n * n)) and at.value.value == pytest.approx(9e10, rel=0.05)


def test_small_sizes_far_below_the_roof_are_counted_not_drawn() -> None:
    figure = drawn_roofline([spot(), spot(value=1e3), spot(value=2e3)])
    assert "2 of small sizes" in texts(figure)
    assert figure.axes[0].get_ylim()[0] > 1e4


def training(path: Path, *, moved: float | None = 4e8, machine: dict[str, Any] | None = None, **facts: Any) -> Path:
    """A training run of this machine with `moved` bytes per step, counted by the compiler."""
    fabricate.run_folder(path, devices=(1, 2), rounds=3, **facts)
    counted = {"compiler_bytes_per_step": moved}
    fabricate.edit(path, lambda line: line["compile_report"].update(counted) if line["kind"] == "point" else None)
    manifest = json.loads((path / store.MANIFEST).read_text())
    store.write_json(path / store.MANIFEST, {**manifest, **fab.card()["machine"]})
    if machine is not None:
        store.write_json(path / "machine.json", machine)
    return path


def test_training_steps_are_placed_where_the_machine_has_a_card(tmp_path: Path) -> None:
    build.write(training(tmp_path / "with", machine=fab.card()))
    html = (tmp_path / "with" / "report.html").read_text()
    assert (tmp_path / "with/figures/roofline.svg").is_file()
    assert html.index("scaling figure") < html.index("roofline figure")
    build.write(training(tmp_path / "without"))
    build.write(training(tmp_path / "uncounted", moved=None, machine=fab.card()))
    for name in ("without", "uncounted"):
        assert not (tmp_path / name / "figures/roofline.svg").exists()
        assert "roofline figure" not in (tmp_path / name / "report.html").read_text()


def test_a_card_of_another_machine_is_not_used_and_it_says_so(tmp_path: Path) -> None:
    card = fab.card()
    card["machine"]["cpu_model"] = "Another CPU"
    build.write(training(tmp_path, machine=card))
    assert not (tmp_path / "figures/roofline.svg").exists()
    said = "machine profile in the folder is not used: it is from another machine"
    assert said in (tmp_path / "report.html").read_text()


@runs.undrawn()
def test_a_training_step_on_accelerators_is_per_device(tmp_path: Path) -> None:
    path = training(tmp_path / "cnn")
    manifest = json.loads((path / store.MANIFEST).read_text())
    manifest["platform"] = "gpu"
    for point in manifest["plan"]["points"]:
        point["platform"] = "gpu"
    fabricate.edit(path, lambda line: line.update(platform="gpu") if line["kind"] == "point" else None)
    store.write_json(path / store.MANIFEST, manifest)
    rows = [row for row in run_report.find(RunFolder(path)).rows if row.point.devices == 2]
    (one,) = {round(row.use.flop_per_s / 2) for row in rows if row.point.scaling == "strong"}
    (found,) = of_training(rows)
    assert found.platform == "gpu" and found.value.value == pytest.approx(one)
    assert found.at == pytest.approx(rows[0].use.flops_per_step / 4e8)


@runs.undrawn()
def test_each_strategy_has_one_spot_on_the_most_devices_with_a_core_each(tmp_path: Path) -> None:
    path = fabricate.run_folder(tmp_path, devices=(1, 2, 8), rounds=3, cores=2, strategies=("jit_auto", "pmap"))
    counted = {"compiler_bytes_per_step": 4e8}
    fabricate.edit(path, lambda line: line["compile_report"].update(counted) if line["kind"] == "point" else None)
    rows = run_report.find(RunFolder(path)).rows
    assert {spot.label for spot in of_training(rows)} == {"jit_auto", "pmap"}
    assert len(of_training(rows)) == 2 and all(spot.state == "solid" for spot in of_training(rows))
