# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of training runs: losses, processes and hosts, and losses across examples: numbers in the artists."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
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

from jaxbench.analysis import points, run_rows
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.core import schema, store
from jaxbench.core.store import RunFolder
from jaxbench.features.ablations.figures import draw_waterfall, remarks
from jaxbench.report import run_report, views
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.figures.memory import FLAT, draw_contrastive
from jaxbench.report.figures.rounds import draw_ranks
from jaxbench.report.figures.training import draw_hosts
from jaxbench.report.run_report import RunReport

LOSSES = {n: Loss(share=1 - 0.02 * n, machine=1 - 0.03 * n, communication=0.92) for n in (2, 4, 8)}


def waterfall_found(path: Path, **facts: Any) -> RunReport:
    return run_report.find(RunFolder(fabricate_losses.folder(path, facts.pop("losses", LOSSES), **facts)))


def waterfall_draw(run: RunReport) -> Figure:
    with canvas.style():
        figure = draw_waterfall(run)
    assert figure is not None
    return figure


def test_the_note_counts_the_rounds_of_factors_and_of_the_efficiency(tmp_path: Path) -> None:
    path = fabricate_losses.folder(tmp_path, {2: LOSSES[2]}, rounds=12, blocks=1)
    whole = remarks(run_report.find(RunFolder(path)).waterfalls)[0]
    assert "n = 12 blocks in 12 rounds" in whole and "factors" not in whole
    lines = [json.loads(line) for line in (path / "records.jsonl").read_text().splitlines()]
    kept = [
        line for line in lines if not (line["kind"] == "round" and line["point"].count("/") > 2 and line["round"] > 5)
    ]
    assert len(kept) < len(lines)
    (path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    note = remarks(run_report.find(RunFolder(path)).waterfalls)[0]
    assert re.search(r"n = 6 blocks in 6 rounds of \d+ process\w* for the factors, 12 blocks in 12 rounds", note), note


def bars(axes: Axes) -> list[tuple[float, float]]:
    """(bottom, top) of each, from left to right."""
    return [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in axes.patches]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text)]


def test_the_steps_go_from_100_to_the_efficiency(tmp_path: Path) -> None:
    run = waterfall_found(tmp_path, losses={2: LOSSES[2]}, noise=0.0005)
    figure = waterfall_draw(run)
    (axes,) = figure.axes
    steps = bars(axes)
    assert steps[0][1] == 100 and [one[0] for one in steps[:-1]] == pytest.approx([one[1] for one in steps[1:]])
    assert steps[-1] == pytest.approx((0, 100 * LOSSES[2].efficiency), abs=0.2)
    assert {"−4", "−6", "−7", "83 %", "2 devices"} <= set(texts(figure))
    assert all(bar.get_hatch() for bar in axes.patches[:-1]), "colours survive black and white by their hatches"


def test_a_gain_in_one_panel_is_not_cut_off_by_the_other(tmp_path: Path) -> None:
    weak = {2: Loss(machine=0.75)}
    figure = waterfall_draw(
        waterfall_found(tmp_path, losses={2: Loss(share=1.3, machine=0.7)}, weak=weak, scalings=("strong", "weak"))
    )
    for axes in figure.axes:
        assert axes.get_ylim()[1] > 130 > max(top for _, top in bars(figure.axes[1]))


def test_strong_and_weak_stand_side_by_side_and_strategies_below_each_other(tmp_path: Path) -> None:
    names = ("shard_map", "fsdp", "zero1", "pmap")
    figure = waterfall_draw(waterfall_found(tmp_path, strategies=names, scalings=("strong", "weak")))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [f"{name}, {scaling}" for name in names[:3] for scaling in ("strong", "weak")]
    assert "3 of 4 strategies, in the order of the table; the table has all" in "\n".join(texts(figure))


def test_a_gain_goes_up_and_what_is_unclear_has_a_question_mark(tmp_path: Path) -> None:
    figure = waterfall_draw(waterfall_found(tmp_path / "gain", losses={2: Loss(share=1.04, machine=0.8)}, noise=0.001))
    assert bars(figure.axes[0])[0] == pytest.approx((100, 104), abs=0.5) and "+4" in texts(figure)
    unclear = waterfall_draw(
        waterfall_found(tmp_path / "unclear", losses={2: Loss(machine=0.8)}, noise=0.05, drift=0.0)
    )
    assert "?" in texts(unclear) and any("?: the interval contains 0" in text for text in texts(unclear))


def test_unmeasured_points_are_named(tmp_path: Path) -> None:
    figure = waterfall_draw(waterfall_found(tmp_path, without=("shard_map/strong/4/alone",)))
    assert any("shard_map, strong, 4 devices, alone (build: no such part)" in text for text in texts(figure))


def test_it_stands_below_the_scaling_figure_and_only_where_something_explains(tmp_path: Path) -> None:
    run = waterfall_found(tmp_path, losses={2: LOSSES[2]}, peak=True)
    names = list(views.of(run))
    assert names.index("waterfall") == names.index("scaling") + 1
    sections = {section.heading: section.sentences for section in run.sections()}
    assert sections["Why not 100 %"][0].startswith("2 devices: 83")
    assert "Communication" in sections and sections["What would help"]
    assert "of a large product's rate here" in sections["Utilisation"][0]
    assert not any("No MFU" in sentence for sentence in sections["Utilisation"])
    assert [row["point"] for row in _lines(run)] == ["shard_map/strong/1", "shard_map/strong/2"]
    assert not run.shortfalls()


def _lines(run: RunReport) -> list[dict[str, Any]]:
    return [{"point": row.point.point} for row in run.rows]


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
    assert "hosts" in views.of(run)
    with canvas.style():
        drawn = draw_hosts(run)
    return [] if drawn is None else drawn.axes


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


def ranks_draw(run: RunReport) -> Figure:
    with canvas.style():
        figure = draw_ranks(run)
    assert figure is not None
    return figure


@pytest.mark.parametrize("count", [2, 8])
def test_the_row_of_a_slow_process_is_dark(tmp_path: Path, count: int) -> None:
    slower = (1.0, 1.3, *(1.0,) * (count - 2))
    run = ranks_found(tmp_path, slower)
    assert "ranks" in views.of(run)
    step, local = ranks_draw(run).axes
    assert step.get_title(loc="left") == f"shard_map, strong, {count} devices, whole step"
    assert local.get_title(loc="left").startswith("without communication: 1 is slow, 1.")
    for axes in (step, local):
        assert axes.collections[0].get_array().shape == (count, 10)
    shades = local.collections[0].get_array()
    assert shades[1].min() > 0.1 > max(shades[other].max() for other in range(count) if other != 1)
    assert {int(line.get_ydata()[0]) for line in local.lines if line.get_marker() == "o"} == {1}


def test_starts_are_marked_and_many_processes_fit(tmp_path: Path) -> None:
    figure = ranks_draw(ranks_found(tmp_path, (1.0,) * 40, starts=2, local=False))
    (axes,) = figure.axes
    assert [line.get_xdata()[0] for line in axes.lines if line.get_marker() != "o"] == [5.5]
    assert "vertical line: the processes were restarted" in "\n".join(texts(figure))
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
    passport = fabricate.passport(product_flops_per_step=1e9 * n * n, temp_bytes=2 * n * MB, collectives=sent)
    return dataclasses.replace(point, record=dataclasses.replace(point.record, passport=passport))


def contrastive_draw(made: RunReport) -> Figure:
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
    work, sent, scratch, time = contrastive_draw(material(tmp_path)).axes
    assert values(work, filled=True) == {n: 1e9 * n for n in (1, 2, 4, 8)}
    assert values(sent, filled=True) == {1: 0, 2: 2, 4: 4, 8: 8}
    assert values(scratch, filled=True) == {n: 2 * n * MB for n in (1, 2, 4, 8)}
    assert set(values(time, filled=True)) == {1, 2} and set(values(time, filled=False)) == {4, 8}
    assert flat(work) == [{1e9}] and flat(sent) == [{0}] and flat(scratch) == [{2 * MB}]
    assert flat(time) == [{values(time)[1]}]


def test_it_says_what_is_hollow_exact_and_wrong(tmp_path: Path) -> None:
    figure = contrastive_draw(material(tmp_path, wrong=("shard_map/weak/2",)))
    said = "\n".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))
    assert notes.HOLLOW in said and notes.WRONG in said and FLAT in said and "FLOP and bytes" in said
    assert 2 not in values(figure.axes[0])


def test_strong_scaling_has_no_such_figure(tmp_path: Path) -> None:
    assert draw_contrastive(material(tmp_path, scalings=("strong",))) is None
