# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figures of ZeRO, tensor and context parallelism: the numbers in the artists, and omitted points."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import fabricate
import matplotlib
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis import studies
from jaxbench.core import schema, store
from jaxbench.core.store import RunFolder
from jaxbench.report import run_report
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.drawing.families import received_bytes
from jaxbench.report.figures import memory
from jaxbench.report.figures.memory import draw_zero
from jaxbench.report.figures.model_parallel import draw_context, draw_tensor
from jaxbench.report.run_report import RunReport

PARAMETERS = 1_000
LONGEST = {
    "schema": 1,
    "limit_bytes": 1_000_000,
    "limit_source": "config.search_bytes",
    "rows": [
        {"devices": 1, "longest": 64, "tried": [[32, 300_000], [64, 900_000], [128, 2_000_000]]},
        {"devices": 2, "longest": 120, "tried": [[64, 500_000], [120, 980_000]]},
        {"devices": 4, "longest": 240, "tried": [[64, 200_000], [240, 990_000]]},
    ],
}


def change(path: Path, edit: Any) -> RunReport:
    """The run's findings after `edit` replaced each point record. edit: (record) -> record."""
    lines = [json.loads(line) for line in (path / store.RECORDS).read_text().splitlines()]
    found = [schema.from_json(line) for line in lines]
    made = [schema.to_json(edit(each) if isinstance(each, schema.PointRecord) else each) for each in found]
    (path / store.RECORDS).write_text("".join(f"{json.dumps(each)}\n" for each in made))
    return run_report.find(RunFolder(path))


def zero_material(path: Path, *, precision: str = "mixed", gradients: bool = True, **facts: Any) -> RunReport:
    """Every strategy holds exactly the bytes of its formula."""
    strategies = ("jit_auto", "zero1", "zero2", "fsdp")
    fabricate.run_folder(path, strategies=strategies, scalings=("weak",), **facts)

    def edit(record: schema.PointRecord) -> schema.PointRecord:
        share = 1 / record.devices
        state = {"zero1": 2 + 12 * share, "zero2": 2 + 12 * share, "fsdp": 14 * share}.get(record.strategy, 14.0)
        grads = 2 * (share if record.strategy in ("zero2", "fsdp") else 1)
        held = {"state_bytes": state * PARAMETERS} | ({"held_gradient_bytes": grads * PARAMETERS} if gradients else {})
        passport = dataclasses.replace(record.passport, parameters=PARAMETERS)
        return dataclasses.replace(record, facts=held, passport=passport)

    made = change(path, edit)
    rows = [
        dataclasses.replace(row, point=dataclasses.replace(row.point, levers={"precision": precision}))
        for row in made.rows
    ]
    return dataclasses.replace(made, rows=rows)


def spread_material(path: Path, *, strategy: str = "tensor", **facts: Any) -> RunReport:
    """Every device receives 2 MB per step and device, in two collectives."""
    fabricate.run_folder(path, strategies=(strategy,), noise=0, drift=0, **facts)

    def edit(record: schema.PointRecord) -> schema.PointRecord:
        half = record.devices * 1_000_000
        parts = tuple(schema.Collective(kind=kind, count=1, bytes=half) for kind in ("all-reduce", "all-gather"))
        sent = parts if record.devices > 1 else ()
        return dataclasses.replace(record, passport=dataclasses.replace(record.passport, collectives=sent))

    return change(path, edit)


def context_material(path: Path, *, search: bool = True, **facts: Any) -> RunReport:
    fabricate.run_folder(path, strategies=("context",), scalings=("strong",), **facts)
    if search:
        store.write_json(path / studies.LONGEST, LONGEST)
    return change(path, lambda record: record)


def draw(module: Any, material: RunReport) -> Figure:
    with canvas.style():
        figure = module.draw(material)
    assert figure is not None
    return figure


def texts(figure: Figure) -> str:
    return "\n".join(t.get_text() for t in figure.findobj(matplotlib.text.Text))


def marked(axes: Axes, style: int) -> dict[float, float]:
    """x -> y of our points in this style, in one panel."""
    return {x: y for line in _marked(axes, style) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}


def _marked(axes: Axes, style: int) -> list[Line2D]:
    return [
        line
        for line in axes.lines
        if line.get_color() == marks.series_style(style)[0]
        and line.get_marker() == marks.series_style(style)[1]
        and len(line.get_xdata())
    ]


def hollow(axes: Axes, style: int = 0) -> set[float]:
    return {x for line in _marked(axes, style) if line.get_markerfacecolor() == "white" for x in line.get_xdata()}


def published_points(axes: Axes) -> list[list[float]]:
    """The y of each published series in one panel."""
    theirs = [line for line in axes.lines if line.get_color() == marks.PALE and line.get_marker() in marks.MARKERS]
    assert all(line.get_markerfacecolor() == "white" for line in theirs)
    return [[round(float(y), 3) for y in line.get_ydata()] for line in theirs]


def test_zero_has_the_bytes_of_the_formulas(tmp_path: Path) -> None:
    axes = draw(draw_zero, zero_material(tmp_path, cores=2)).axes[0]
    for style, stage in enumerate(memory.STAGES):
        assert marked(axes, style) == pytest.approx({n: stage.per_parameter(n) for n in (1, 2, 4, 8)})
        assert not hollow(axes, style), "bytes are exact on fake devices too"
    assert [stage.formula for stage in memory.STAGES] == ["16", "4 + 12/N", "2 + 14/N", "16/N"]


def test_zero_overlays_the_table_in_bytes_a_parameter(tmp_path: Path) -> None:
    figure = draw(draw_zero, zero_material(tmp_path))
    theirs = published_points(figure.axes[0])
    assert theirs[0] == [16.0, 7.0, 4.747, 4.187, 4.053, 4.013] and theirs[2][-1] == 0.016
    said = texts(figure)
    assert "Rajbhandari et al., 2020" in said and "P_os+g: 2 + 14/N" in said and "P_os+g: zero2" in said
    assert notes.HOLLOW not in said and "within 0 % of the formulas" in said


def test_zero_of_another_precision_has_no_published_lines(tmp_path: Path) -> None:
    figure = draw(draw_zero, zero_material(tmp_path, precision="float32"))
    assert not published_points(figure.axes[0]) and "Rajbhandari" not in texts(figure)
    assert marked(figure.axes[0], 3)[8] == 2


def test_zero_says_how_far_from_the_formulas(tmp_path: Path) -> None:
    made = zero_material(tmp_path)
    assert memory.worst(made.rows) == pytest.approx(0, abs=1e-12)
    one = next(row for row in made.rows if row.point.strategy == "fsdp" and row.point.devices == 4)
    assert one.point.record is not None
    one.point.record.facts["state_bytes"] += 40
    assert memory.worst(made.rows) == pytest.approx(0.01)


def test_zero_without_gradients_is_no_figure(tmp_path: Path) -> None:
    assert draw_zero(zero_material(tmp_path, gradients=False)) is None


def test_model_parallel_strategies_have_no_stage() -> None:
    assert memory.stage("tensor") is None and memory.stage("shard_map") is memory.DP
    assert memory.stage("fsdp") is memory.PARAMETERS


def test_tensor_has_percents_speedups_and_bytes(tmp_path: Path) -> None:
    made = spread_material(tmp_path, cores=2)
    weak, strong, sent = draw(draw_tensor, made).axes
    law = fabricate.amdahl(0.05)
    assert marked(weak, 0) == pytest.approx({n: 100 * law("weak", n) / n for n in (1, 2, 4, 8)})
    assert marked(strong, 0) == pytest.approx({n: law("strong", n) for n in (1, 2, 4, 8)})
    assert marked(sent, 0) == {1: 0, 2: 4, 4: 8, 8: 16}
    assert hollow(weak) == hollow(strong) == {4, 8} and not hollow(sent)
    assert {received_bytes(row) for row in made.rows if row.point.devices == 8} == {16e6}


def test_tensor_overlays_megatron(tmp_path: Path) -> None:
    figure = draw(draw_tensor, spread_material(tmp_path))
    weak, strong, sent = figure.axes
    assert published_points(weak) == [[100, 95, 82, 77], [96, 83, 79, 74]]
    assert published_points(strong) == [[1, 1.64, 2.34, 2.98]] and not published_points(sent)
    assert "Shoeybi et al., 2019" in texts(figure) and "n = 10 blocks in 5 rounds" in texts(figure)


def test_published_speedups_are_over_one_device(tmp_path: Path) -> None:
    figure = draw(draw_tensor, spread_material(tmp_path, devices=(2, 4)))
    assert not published_points(figure.axes[1]) and "these over 2 devices" in texts(figure)


def test_tensor_leaves_out_what_was_not_timed(tmp_path: Path) -> None:
    figure = draw(draw_tensor, spread_material(tmp_path, scalings=("strong",)))
    assert [axes.get_title(loc="left")[:6] for axes in figure.axes] == ["strong", "MB rec"]
    bytes_alone = draw(draw_tensor, spread_material(tmp_path / "untimed", rounds=0))
    assert len(bytes_alone.axes) == 1 and "Shoeybi" not in texts(bytes_alone)
    none = spread_material(tmp_path / "none")
    assert draw_tensor(dataclasses.replace(none, rows=[])) is None


def test_a_wrong_point_is_a_cross(tmp_path: Path) -> None:
    figure = draw(draw_tensor, spread_material(tmp_path, wrong=("tensor/strong/8",)))
    assert 8 not in marked(figure.axes[1], 0) and notes.WRONG in texts(figure)


def test_context_has_lengths_memory_and_times(tmp_path: Path) -> None:
    figure = draw(draw_context, context_material(tmp_path, devices=(1, 2, 4), cores=2))
    lengths, memory, times = figure.axes
    assert [marked(lengths, style) for style in range(3)] == [{1: 64}, {2: 120}, {4: 240}]
    guide = next(line for line in lengths.lines if list(line.get_ydata()) == [64, 128, 256])
    assert guide.get_linestyle() != "-"
    assert marked(memory, 1) == {64: 500_000, 120: 980_000}
    assert any(list(line.get_ydata()) == [1_000_000] * 2 for line in memory.lines), "the limit"
    assert hollow(times, 2) == {4} and not hollow(times, 0) and not hollow(lengths, 2)
    said = texts(figure)
    assert "1,000,000 bytes per device (config.search_bytes)" in said and "limit 1 MB" in said


def test_context_times_are_the_medians(tmp_path: Path) -> None:
    made = context_material(tmp_path, search=False, devices=(1, 2, 4), noise=0, drift=0)
    (times,) = draw(draw_context, made).axes
    law = fabricate.amdahl(0.05)
    for style, n in enumerate((1, 2, 4)):
        assert marked(times, style) == pytest.approx({n: 0.0123 / law("strong", n)})


def test_context_leaves_out_panels_without_data(tmp_path: Path) -> None:
    searched = context_material(tmp_path, rounds=0, devices=(1, 2, 4))
    assert len(draw(draw_context, searched).axes) == 2
    (tmp_path / studies.LONGEST).unlink()
    assert draw_context(searched) is None
