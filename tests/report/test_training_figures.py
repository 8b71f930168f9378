# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of training runs: losses, processes and hosts, and losses across examples: numbers in the artists."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fabricate
import fabricate_losses
import fabricate_ranks
import matplotlib
import pytest
from fabricate_losses import Loss
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from report.runs import drawn, texts
from thin import thin

from jaxbench.analysis import points, run_rows
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.run_rows import Row
from jaxbench.catalog import published
from jaxbench.core import schema, store
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.features.ablations.figures import draw_waterfall, remarks
from jaxbench.report import build, run_report
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.drawing.axes import round_ticks
from jaxbench.report.figures.memory import FLAT, draw_contrastive
from jaxbench.report.figures.rounds import draw_ranks
from jaxbench.report.figures.training import draw_hosts, draw_scaling, of_rows
from jaxbench.report.run_report import RunReport, find

LOSSES = {n: Loss(share=1 - 0.02 * n, machine=1 - 0.03 * n, communication=0.92) for n in (2, 4, 8)}


def waterfall_found(path: Path, **facts: Any) -> RunReport:
    return run_report.find(RunFolder(fabricate_losses.folder(path, facts.pop("losses", LOSSES), **facts)))


def test_the_note_counts_the_rounds_of_factors_and_of_the_efficiency(tmp_path: Path) -> None:
    path = fabricate_losses.folder(tmp_path, {2: LOSSES[2]}, rounds=12, blocks=1)
    whole = remarks(run_report.find(RunFolder(path)).waterfalls)[0]
    assert "n = 12 blocks in 12 rounds" in whole and "factors" not in whole
    explains = lambda line: line["kind"] == "round" and line["point"].count("/") > 2  # noqa: E731
    fabricate.edit(path, lambda line: not (explains(line) and line["round"] > 5))
    note = remarks(run_report.find(RunFolder(path)).waterfalls)[0]
    assert re.search(r"n = 6 blocks in 6 rounds of \d+ process\w* for the factors, 12 blocks in 12 rounds", note), note


def bars(axes: Axes) -> list[tuple[float, float]]:
    """(bottom, top) of each, from left to right."""
    return [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in axes.patches]


def test_the_steps_go_from_100_to_the_efficiency(tmp_path: Path) -> None:
    run = waterfall_found(tmp_path, losses={2: LOSSES[2]}, noise=0.0005)
    figure = drawn(draw_waterfall, run)
    (axes,) = figure.axes
    steps = bars(axes)
    assert steps[0][1] == 100 and [one[0] for one in steps[:-1]] == pytest.approx([one[1] for one in steps[1:]])
    assert steps[-1] == pytest.approx((0, 100 * LOSSES[2].efficiency), abs=0.2)
    assert {"−4", "−6", "−7", "83 %", "2 devices"} <= set(texts(figure).split("\n"))
    assert all(bar.get_hatch() for bar in axes.patches[:-1]), "colours survive black and white by their hatches"


def test_a_gain_in_one_panel_is_not_cut_off_by_the_other(tmp_path: Path) -> None:
    weak = {2: Loss(machine=0.75)}
    figure = drawn(
        draw_waterfall,
        waterfall_found(tmp_path, losses={2: Loss(share=1.3, machine=0.7)}, weak=weak, scalings=("strong", "weak")),
    )
    for axes in figure.axes:
        assert axes.get_ylim()[1] > 130 > max(top for _, top in bars(figure.axes[1]))


def test_strong_and_weak_stand_side_by_side_and_strategies_below_each_other(tmp_path: Path) -> None:
    names = ("shard_map", "fsdp", "zero1", "pmap")
    figure = drawn(draw_waterfall, waterfall_found(tmp_path, strategies=names, scalings=("strong", "weak")))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [f"{name}, {scaling}" for name in names[:3] for scaling in ("strong", "weak")]
    assert "3 of 4 strategies, in the order of the table; the table has all" in texts(figure)


def test_a_gain_goes_up_and_what_is_unclear_has_a_question_mark(tmp_path: Path) -> None:
    figure = drawn(
        draw_waterfall, waterfall_found(tmp_path / "gain", losses={2: Loss(share=1.04, machine=0.8)}, noise=0.001)
    )
    assert bars(figure.axes[0])[0] == pytest.approx((100, 104), abs=0.5) and "+4" in texts(figure).split("\n")
    unclear = drawn(
        draw_waterfall, waterfall_found(tmp_path / "unclear", losses={2: Loss(machine=0.8)}, noise=0.05, drift=0.0)
    )
    assert "?" in texts(unclear).split("\n") and "?: the interval contains 0" in texts(unclear)


def test_unmeasured_points_are_named(tmp_path: Path) -> None:
    figure = drawn(draw_waterfall, waterfall_found(tmp_path, without=("shard_map/strong/4/alone",)))
    assert "shard_map, strong, 4 devices, alone (build: no such part)" in texts(figure)


def test_it_stands_below_the_scaling_figure_and_only_where_something_explains(tmp_path: Path) -> None:
    run = waterfall_found(tmp_path, losses={2: LOSSES[2]}, peak=True)
    names = list(build.figures_of(run))
    assert names.index("waterfall") == names.index("scaling") + 1
    sections = {section.heading: section.sentences for section in run.sections()}
    assert sections["Why not 100 %"][0].startswith("2 devices: 83")
    assert "Communication" in sections and sections["What would help"]
    assert "of a large product's rate here" in sections["Utilisation"][0]
    assert not any("No MFU" in sentence for sentence in sections["Utilisation"])
    assert [row.point_id for row in run.rows] == ["shard_map/strong/1", "shard_map/strong/2"]
    assert not run.shortfalls()


def panels(path: Path, *, processes: Callable[[int], int], hosts: int = 1, **facts: Any) -> list[Axes]:
    """The panels of a run with `processes(devices)` processes per point, on up to `hosts` hosts."""
    made = {"law": fabricate.amdahl(0.1), "devices": (1, 2, 4), "noise": 0.001, "drift": 0.0, "rounds": 5, **facts}
    fabricate.run_folder(path, **made)
    lines, workers = [], {}
    for line in map(json.loads, (path / store.RECORDS).read_text().splitlines()):
        if line["kind"] == "point":
            line["processes"] = processes(line["devices"])
            line["worker"] = f"session0/cpu{line['devices']}"
            names = [f"h{process * hosts // line['processes']}" for process in range(line["processes"])]
            workers[line["worker"]] = {"hosts": names} if len(set(names)) > 1 else {}
        lines.append(json.dumps(line))
    (path / store.RECORDS).write_text("\n".join(lines) + "\n")
    manifest = json.loads((path / store.MANIFEST).read_text())
    store.write_json(path / store.MANIFEST, {**manifest, "workers": workers})
    run = run_report.find(RunFolder(path))
    assert "hosts" in build.figures_of(run)
    with canvas.style():
        figure = draw_hosts(run)
    return [] if figure is None else figure.axes


def names(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_xticklabels()]


def test_ideal_and_measured_stand_side_by_side_and_the_efficiency_above(tmp_path: Path) -> None:
    strong, weak = panels(tmp_path, processes=lambda devices: devices)
    assert names(strong) == ["1 process", "2 processes", "4 processes"]
    ideal, measured = ([bar.get_height() for bar in strong.patches[half::2]] for half in (0, 1))
    assert ideal == pytest.approx([ideal[0], 2 * ideal[0], 4 * ideal[0]])
    shares = [m / i for m, i in zip(measured, ideal, strict=True)]
    assert shares == pytest.approx([1, 1 / 1.1, 1 / 1.3], rel=0.02)
    assert [text.get_text() for text in strong.texts] == [f"{100 * share:.0f} %" for share in shares]
    assert strong.get_ylabel() == "images/s" and weak.get_title(loc="left") == "shard_map, weak scaling"
    for text in strong.texts:
        assert text.xy[1] >= max(ideal[round(text.xy[0])], measured[round(text.xy[0])])


def test_hosts_are_named_where_there_are_several(tmp_path: Path) -> None:
    strong, _ = panels(tmp_path, processes=lambda devices: min(devices, 2), hosts=2)
    assert names(strong) == ["1 host", "2 hosts", "2 hosts\n4 devices"]


def test_one_process_has_no_such_figure(tmp_path: Path) -> None:
    assert panels(tmp_path, processes=lambda devices: 1) == []


def ranks_found(path: Path, slower: tuple[float, ...], **facts: Any) -> RunReport:
    return run_report.find(RunFolder(fabricate_ranks.folder(path, slower, **facts)))


@pytest.mark.parametrize("count", [2, 8])
def test_the_row_of_a_slow_process_is_dark(tmp_path: Path, count: int) -> None:
    slower = (1.0, 1.3, *(1.0,) * (count - 2))
    run = ranks_found(tmp_path, slower)
    assert "ranks" in build.figures_of(run)
    step, local = drawn(draw_ranks, run).axes
    assert step.get_title(loc="left") == f"shard_map, strong, {count} devices, whole step"
    assert local.get_title(loc="left").startswith("without communication: 1 is slow, 1.")
    for axes in (step, local):
        assert axes.collections[0].get_array().shape == (count, 10)
    shades = local.collections[0].get_array()
    assert shades[1].min() > 0.1 > max(shades[other].max() for other in range(count) if other != 1)
    assert {int(line.get_ydata()[0]) for line in local.lines if line.get_marker() == "o"} == {1}


def test_starts_are_marked_and_many_processes_fit(tmp_path: Path) -> None:
    figure = drawn(draw_ranks, ranks_found(tmp_path, (1.0,) * 40, starts=2, local=False))
    (axes,) = figure.axes
    assert [line.get_xdata()[0] for line in axes.lines if line.get_marker() != "o"] == [5.5]
    assert "vertical line: the processes were restarted" in texts(figure)
    assert axes.get_title(loc="left").endswith("whole step: none is last")
    assert len(axes.get_yticks()) <= 16 and not axes.texts, "numbers do not fit"


def test_one_process_has_no_figure(tmp_path: Path) -> None:
    folder = fabricate_losses.folder(tmp_path, {2: fabricate_losses.Loss()})
    assert draw_ranks(run_report.find(RunFolder(folder))) is None


def test_the_page_says_who_is_slow_and_the_file_has_it(tmp_path: Path) -> None:
    run = ranks_found(tmp_path, (1.3, 1.0, 1.0))
    (section,) = (section for section in run.sections() if section.heading == "Stragglers")
    assert section.definition == "stragglers" and "process 0 of 3 is slow" in section.sentences[0]
    base, row = csv.DictReader(io.StringIO(run.csv()))
    assert row["slow_process"] == "0", "process 0 is not an empty cell"
    assert base["slow_process"] == base["slowest_over_median"] == base["local_slowest_over_median"] == ""
    assert float(row["local_slowest_over_median_lo"]) > 1.2 > 1.01 > float(row["slowest_over_median"]) > 1


MB = 1_000_000


def material(path: Path, *, wrong: tuple[str, ...] = (), scalings: tuple[str, ...] = ("weak",)) -> RunReport:
    """n devices on 2 cores: each does n GFLOP, gathers n MB, receives 9 MB of other data, and holds 2 n MB."""
    fabricate.run_folder(path, scalings=scalings, cores=2, wrong=wrong, noise=0, drift=0, rounds=3)
    made = [_edited(point) for point in points.load(RunFolder(path))]
    return dataclasses.replace(run_report.find(RunFolder(path)), rows=run_rows.analyse(made, config={}))


def _edited(point: MeasuredPoint) -> MeasuredPoint:
    assert point.record is not None
    n = point.devices
    sizes = {"all-gather": n * MB, "reduce-scatter": 4 * MB, "all-reduce": 5 * MB}
    sent = tuple(schema.Collective(kind=kind, count=1, bytes=size) for kind, size in sizes.items())
    compile_report = fabricate.compile_report(
        product_flops_per_step=1e9 * n * n, temp_bytes=2 * n * MB, collectives=sent
    )
    return dataclasses.replace(point, record=dataclasses.replace(point.record, compile_report=compile_report))


def values(axes: Axes, *, filled: bool | None = None) -> dict[float, float]:
    """x -> y of our points; of the filled ones or of the hollow ones only, if asked."""
    colour, marker = marks.series_style(0)[:2]
    ours = [line for line in axes.lines if (line.get_color(), line.get_marker()) == (colour, marker)]
    chosen = [line for line in ours if filled is None or (line.get_markerfacecolor() != "white") == filled]
    return {x: y for line in chosen for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}


def flat(axes: Axes) -> list[set[float]]:
    return [set(line.get_ydata()) for line in axes.lines if line.get_color() == marks.DASHES["color"]]


def test_each_panel_has_the_numbers_of_one_device(tmp_path: Path) -> None:
    work, sent, scratch, time = drawn(draw_contrastive, material(tmp_path)).axes
    assert values(work, filled=True) == {n: 1e9 * n for n in (1, 2, 4, 8)}
    assert values(sent, filled=True) == {1: 0, 2: 2, 4: 4, 8: 8}
    assert values(scratch, filled=True) == {n: 2 * n * MB for n in (1, 2, 4, 8)}
    assert set(values(time, filled=True)) == {1, 2} and set(values(time, filled=False)) == {4, 8}
    assert flat(work) == [{1e9}] and flat(sent) == [{0}] and flat(scratch) == [{2 * MB}]
    assert flat(time) == [{values(time)[1]}]


def test_it_says_what_is_hollow_exact_and_wrong(tmp_path: Path) -> None:
    figure = drawn(draw_contrastive, material(tmp_path, wrong=("shard_map/weak/2",)))
    said = texts(figure)
    assert notes.HOLLOW in said and notes.WRONG in said and FLAT in said and "FLOP and bytes" in said
    assert 2 not in values(figure.axes[0])


def test_strong_scaling_has_no_such_figure(tmp_path: Path) -> None:
    assert draw_contrastive(material(tmp_path, scalings=("strong",))) is None


# The figure: three formats, reproducible bytes, drawn as in its docstring.


def rows_of(path: Path, **facts: Any) -> list[Row]:
    return find(RunFolder(fabricate.run_folder(path, **facts))).rows


TABLE = published.overlays()[0]
P100 = (TABLE, ["InceptionV3", "ResNet-50", "ResNet-152", "AlexNet", "VGG16"])


def draw(rows: list[Row], **options: Any) -> Figure:
    with canvas.style():
        return of_rows(rows, title="cnn", **options)


def rendered(rows: list[Row], **options: Any) -> dict[str, bytes]:
    return canvas.render(lambda: of_rows(rows, title="cnn", **options))


def markers(figure: Figure, face: str) -> list[int]:
    """Device counts (nearest) of the markers with this `face` ("white" or "filled") in the speed-up panel."""
    found = []
    for line in figure.axes[1].lines:
        hollow = line.get_markerfacecolor() == "white"
        if line.get_marker() in marks.MARKERS and hollow == (face == "white"):
            found += [round(x) for x in line.get_xdata()]
    return sorted(found)


def test_only_oversubscribed_points_are_hollow_and_explained(tmp_path: Path) -> None:
    figure = draw(rows_of(tmp_path, cores=2, scalings=("strong",)))
    assert markers(figure, "white") == [4, 8] and markers(figure, "filled") == [1, 2]
    assert notes.HOLLOW in texts(figure)
    figure = draw(rows_of(tmp_path / "enough", cores=8, scalings=("strong",)))
    assert markers(figure, "white") == [] and notes.HOLLOW not in texts(figure)


@pytest.mark.parametrize(("rounds", "refused"), [(4, False), (5, True)])
def test_without_a_base_or_an_interval_only_times_are_drawn(tmp_path: Path, rounds: int, refused: bool) -> None:
    """If its base were refused, a point on 2 devices would become its own base, at 100 %."""
    path = fabricate.run_folder(tmp_path, rounds=rounds, devices=(1, 2), scalings=("strong",), noise=0.002)
    if refused:
        shrunk = lambda line: line.update(double_block_s=line["block_s"][:2])  # noqa: E731
        base = lambda line: line["kind"] == "round" and line["point"] == "shard_map/strong/1"  # noqa: E731
        fabricate.edit(path, lambda line: shrunk(line) if base(line) else None)
    found = find(RunFolder(path))
    (rate,) = draw(found.rows).axes
    assert [line for line in rate.lines if line.get_marker() in marks.MARKERS], "others have no data"
    headings = [column.title for column in found.table().columns]
    assert ("efficiency %" in headings) == refused and "ms per step" in headings
    if refused:
        at = headings.index("efficiency %")
        assert [line.cells[at] for line in found.table().lines] == ["no base"] * 2
    assert found.table().note.startswith("Medians with 95 %" if refused else "Medians without confidence intervals")
    assert not (found.waterfalls or found.controls)


def test_wrong_points_are_crossed_out(tmp_path: Path) -> None:
    assert notes.WRONG in texts(draw(rows_of(tmp_path, wrong=("shard_map/strong/2",))))


def test_speedups_have_the_ticks_of_devices(tmp_path: Path) -> None:
    _, speed, _ = draw(rows_of(tmp_path, cores=8)).axes
    assert {1, 2, 4} <= {*speed.get_yticks()} <= {2.0**power for power in range(-2, 5)}


def test_strong_and_weak_differ_without_colour(tmp_path: Path) -> None:
    figure = draw(rows_of(tmp_path))
    handles = figure.legends[0].legend_handles
    styles = {(h.get_marker(), h.get_linestyle()) for h in handles}
    assert len(styles) == len(handles) == 3


@pytest.mark.parametrize(("strategies", "panels"), [(1, 3), (2, 3), (4, 6)])
def test_many_strategies_get_a_row_for_each_scaling(tmp_path: Path, strategies: int, panels: int) -> None:
    names = [f"strategy_{i}" for i in range(strategies)]
    figure = draw(rows_of(tmp_path, strategies=names))
    assert len(figure.axes) == panels
    assert all(name in texts(figure) for name in names)


def test_the_overlay_is_on_the_speedup_panel_and_cited(tmp_path: Path) -> None:
    rows = rows_of(tmp_path)
    plain, overlaid = draw(rows), draw(rows, overlaid=P100)
    for name in ("AlexNet", "VGG16", "ResNet-50", "InceptionV3", "ResNet-152", "TensorFlow benchmarks"):
        assert name in texts(overlaid) and name not in texts(plain)
    more = [len(b.lines) - len(a.lines) for a, b in zip(plain.axes, overlaid.axes, strict=True)]
    assert more == [0, 5, 0]


def speedup_panels(figure: Figure) -> list[tuple[str, int]]:
    """(title, how many grey lines with markers: the published ones) of each speed-up panel."""
    found = []
    for panel in figure.axes[1::3]:
        published = [line for line in panel.lines if line.get_color() == "#8a8a8a"]
        found.append((panel.get_title(loc="left"), len(published)))
    return found


def test_published_speedups_are_not_drawn_over_another_base(tmp_path: Path) -> None:
    figure = draw(rows_of(tmp_path, devices=(2, 4, 8)), overlaid=P100)
    assert speedup_panels(figure) == [("speed-up over 2 devices", 0)]
    assert "these are over 2 devices" in texts(figure) and notes.PUBLISHED not in texts(figure)
    (ideal,) = [line for line in figure.axes[1].lines if line.get_label() == "_guide"]
    assert list(ideal.get_xdata()) == [2, 4, 8] and list(ideal.get_ydata()) == [1, 2, 4]


def mixed(path: Path) -> list[Row]:
    """Two strategies: weak starts at 1 device, strong of one of them at 2."""
    rows = rows_of(path, strategies=("pmap", "shard_map"), devices=(1, 2, 4))
    points = [r.point for r in rows if r.point_id != "pmap/strong/1"]
    return run_rows.analyse(points, config={})


def test_a_series_over_another_base_is_left_out_of_the_speedup_panel(tmp_path: Path) -> None:
    rows = mixed(tmp_path)
    figure = draw(rows)
    assert speedup_panels(figure) == [("speed-up over 1 device", 0)]
    assert "one base: pmap strong (base 2 devices)" in texts(figure)
    rate, speed, share = (len(panel.lines) for panel in figure.axes)
    assert rate < share and speed < share
    assert all(round(y) != 2 or round(x) != 4 for line in figure.axes[1].lines for x, y in line.get_xydata()[1:2])


@pytest.mark.parametrize(("devices", "in_margin"), [((1, 2, 4), True), ((1, 2, 4, 8), True), ((1, 4, 16, 512), False)])
def test_published_names_are_in_the_margin_or_in_the_legend(
    tmp_path: Path, devices: tuple[int, ...], in_margin: bool
) -> None:
    figure = draw(rows_of(tmp_path, devices=devices, cores=512), overlaid=P100)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [t.get_text() for t in figure.axes[1].texts].count("VGG16") == in_margin
    assert legend.count("VGG16") == (not in_margin)


NAMES = [r"my$\bad$x", "a" * 300, "$", "/long/path" * 30, "_", "{}", "x\ny", "[b]"]


@pytest.mark.parametrize("name", thin(NAMES, 2))
def test_names_are_text_and_stay_inside_the_figure(tmp_path: Path, name: str) -> None:
    rows = rows_of(tmp_path, strategies=(name, "b"), experiment=name)
    with canvas.style():
        figure = of_rows(rows, title=f"{name}: training throughput")
        figure.draw_without_rendering()
        legend = figure.legends[0].get_window_extent()
    panel, dots = figure.axes[0].get_window_extent(), canvas.DPI / 100
    assert legend.x0 >= 0 and legend.x1 <= 700 * dots and panel.width > 80 * dots
    assert panel.height > 110 * dots, "the panels keep their height"
    assert rendered(rows)["svg"]


@pytest.mark.parametrize(
    ("experiment", "overlay", "names"),
    [
        ("resnet18", TABLE, ["ResNet-50", "ResNet-152"]),
        ("my_vgg", TABLE, ["VGG16"]),
        ("mlp", TABLE, []),
        ("cnn", TABLE, []),
        ("gbdt", f"{TABLE}:AlexNet, VGG16", ["AlexNet", "VGG16"]),
        ("resnet50", "", []),
    ],
)
def test_published_curves_are_of_the_same_kind_of_model(
    tmp_path: Path, experiment: str, overlay: str, names: list[str]
) -> None:
    run = fabricate.run_folder(tmp_path, experiment=experiment, config={"report": {"overlay": overlay}})
    said = texts(drawn(draw_scaling, find(RunFolder(run))))
    assert [name for name in P100[1] if name in said.split("\n")] == names
    assert ("P100" in said) == bool(names)


def test_an_overlay_of_an_unknown_model_is_refused() -> None:
    with pytest.raises(UserError, match="names 'VGG-16': did you mean 'VGG16'"):
        published.overlaid(f"{TABLE}:VGG-16")


@pytest.mark.parametrize(
    "facts", [{"rounds": 0}, {"devices": (1,)}, {"devices": (3, 5, 6, 7), "rounds": 2}, {"cores": 0}]
)
def test_odd_runs_can_be_drawn(tmp_path: Path, facts: dict[str, Any]) -> None:
    assert bool(rendered(rows_of(tmp_path, **facts))) == (facts.get("rounds") != 0)


def test_the_users_settings_are_left_alone(tmp_path: Path) -> None:
    before, level = dict(matplotlib.rcParams), logging.getLogger("fontTools").level
    rendered(rows_of(tmp_path))
    assert dict(matplotlib.rcParams) == before and logging.getLogger("fontTools").level == level


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 1.2), (1.0, 2.0), (1800.0, 4200.0), (3.0, 7e6), (0.02, 0.3), (9e5, 1.8e6)]
)
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    ticks = round_ticks(low, high)
    assert 2 <= len(ticks) <= 7
    assert all(low <= tick <= high for tick in ticks)
    # No label on its neighbour's: on a logarithmic axis, two stand at least half of an even distance apart.
    assert min(b / a for a, b in zip(ticks, ticks[1:], strict=False)) >= (high / low) ** (0.5 / 7)
