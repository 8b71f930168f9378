# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figures of ZeRO, tensor and context parallelism: the numbers in the artists, and omitted points."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import fabricate
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from report.runs import bars_of, drawn, texts

from jaxbench.analysis import studies, waterfall
from jaxbench.catalog import published
from jaxbench.core import schema, store
from jaxbench.core.store import RunFolder
from jaxbench.levers import SCHEDULE
from jaxbench.report import run_report
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.series import received_bytes
from jaxbench.report.figures import memory, model_parallel
from jaxbench.report.figures.memory import draw_zero
from jaxbench.report.figures.model_parallel import (
    draw_context,
    draw_hybrid,
    draw_moe,
    draw_pipeline,
    draw_tensor,
    ranked,
)
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
        compile_report = dataclasses.replace(record.compile_report, parameters=PARAMETERS)
        return dataclasses.replace(record, facts=held, compile_report=compile_report)

    made = change(path, edit)
    of = {"precision": precision}
    rows = [dataclasses.replace(row, point=dataclasses.replace(row.point, levers=of)) for row in made.rows]
    return dataclasses.replace(made, rows=rows)


def spread_material(path: Path, *, strategy: str = "tensor", **facts: Any) -> RunReport:
    """Every device receives 2 MB per step and device, in two collectives."""
    fabricate.run_folder(path, strategies=(strategy,), noise=0, drift=0, **facts)

    def edit(record: schema.PointRecord) -> schema.PointRecord:
        half = record.devices * 1_000_000
        parts = tuple(schema.Collective(kind=kind, count=1, bytes=half) for kind in ("all-reduce", "all-gather"))
        sent = parts if record.devices > 1 else ()
        return dataclasses.replace(record, compile_report=dataclasses.replace(record.compile_report, collectives=sent))

    return change(path, edit)


def context_material(path: Path, *, search: bool = True, **facts: Any) -> RunReport:
    fabricate.run_folder(path, strategies=("context",), scalings=("strong",), **facts)
    if search:
        store.write_json(path / studies.LONGEST, LONGEST)
    return change(path, lambda record: record)


def marked(axes: Axes, style: int) -> dict[float, float]:
    """x -> y of our points in this style, in one panel."""
    return {x: y for line in _marked(axes, style) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}


def _marked(axes: Axes, style: int) -> list[Line2D]:
    colour, marker = marks.series_style(style)[:2]
    ours = [line for line in axes.lines if (line.get_color(), line.get_marker()) == (colour, marker)]
    return [line for line in ours if len(line.get_xdata())]


def hollow(axes: Axes, style: int = 0) -> set[float]:
    return {x for line in _marked(axes, style) if line.get_markerfacecolor() == "white" for x in line.get_xdata()}


def published_points(axes: Axes) -> list[list[float]]:
    """The y of each published series in one panel."""
    theirs = [line for line in axes.lines if line.get_color() == marks.PALE and line.get_marker() in marks.MARKERS]
    assert all(line.get_markerfacecolor() == "white" for line in theirs)
    return [[round(float(y), 3) for y in line.get_ydata()] for line in theirs]


def test_zero_has_the_bytes_of_the_formulas(tmp_path: Path) -> None:
    axes = drawn(draw_zero, zero_material(tmp_path, cores=2)).axes[0]
    for style, stage in enumerate(memory.STAGES):
        assert marked(axes, style) == pytest.approx({n: stage.per_parameter(n) for n in (1, 2, 4, 8)})
        assert not hollow(axes, style), "bytes are exact on fake devices too"
    assert [stage.formula for stage in memory.STAGES] == ["16", "4 + 12/N", "2 + 14/N", "16/N"]


def test_zero_overlays_the_table_in_bytes_a_parameter(tmp_path: Path) -> None:
    figure = drawn(draw_zero, zero_material(tmp_path))
    theirs = published_points(figure.axes[0])
    assert theirs[0] == [16.0, 7.0, 4.747, 4.187, 4.053, 4.013] and theirs[2][-1] == 0.016
    said = texts(figure)
    assert "Rajbhandari et al., 2020" in said and "P_os+g: 2 + 14/N" in said and "P_os+g: zero2" in said
    assert notes.HOLLOW not in said and "within 0 % of the formulas" in said


def test_zero_of_another_precision_has_no_published_lines_and_without_gradients_no_figure(tmp_path: Path) -> None:
    figure = drawn(draw_zero, zero_material(tmp_path, precision="float32"))
    assert not published_points(figure.axes[0]) and "Rajbhandari" not in texts(figure)
    assert marked(figure.axes[0], 3)[8] == 2
    assert draw_zero(zero_material(tmp_path / "none", gradients=False)) is None


def test_zero_says_how_far_from_the_formulas(tmp_path: Path) -> None:
    made = zero_material(tmp_path)
    assert memory.worst(made.rows) == pytest.approx(0, abs=1e-12)
    one = next(row for row in made.rows if row.point.strategy == "fsdp" and row.point.devices == 4)
    assert one.point.record is not None
    one.point.record.facts["state_bytes"] += 40
    assert memory.worst(made.rows) == pytest.approx(0.01)


def test_model_parallel_strategies_have_no_stage() -> None:
    assert memory.stage("tensor") is None and memory.stage("shard_map") is memory.DP
    assert memory.stage("fsdp") is memory.PARAMETERS


def test_tensor_has_percents_speedups_and_bytes(tmp_path: Path) -> None:
    made = spread_material(tmp_path, cores=2)
    weak, strong, sent = drawn(draw_tensor, made).axes
    law = fabricate.amdahl(0.05)
    assert marked(weak, 0) == pytest.approx({n: 100 * law("weak", n) / n for n in (1, 2, 4, 8)})
    assert marked(strong, 0) == pytest.approx({n: law("strong", n) for n in (1, 2, 4, 8)})
    assert marked(sent, 0) == {1: 0, 2: 4, 4: 8, 8: 16}
    assert hollow(weak) == hollow(strong) == {4, 8} and not hollow(sent)
    assert {received_bytes(row) for row in made.rows if row.point.devices == 8} == {16e6}


def test_tensor_overlays_megatron_and_its_speedups_only_over_one_device(tmp_path: Path) -> None:
    figure = drawn(draw_tensor, spread_material(tmp_path))
    weak, strong, sent = figure.axes
    assert published_points(weak) == [[100, 95, 82, 77], [96, 83, 79, 74]]
    assert published_points(strong) == [[1, 1.64, 2.34, 2.98]] and not published_points(sent)
    assert "Shoeybi et al., 2019" in texts(figure) and "n = 10 blocks in 5 rounds" in texts(figure)
    figure = drawn(draw_tensor, spread_material(tmp_path / "two", devices=(2, 4)))
    assert not published_points(figure.axes[1]) and "these over 2 devices" in texts(figure)


def test_tensor_leaves_out_what_was_not_timed(tmp_path: Path) -> None:
    figure = drawn(draw_tensor, spread_material(tmp_path, scalings=("strong",)))
    assert [axes.get_title(loc="left")[:6] for axes in figure.axes] == ["strong", "MB rec"]
    bytes_alone = drawn(draw_tensor, spread_material(tmp_path / "untimed", rounds=0))
    assert len(bytes_alone.axes) == 1 and "Shoeybi" not in texts(bytes_alone)
    none = spread_material(tmp_path / "none")
    assert draw_tensor(dataclasses.replace(none, rows=[])) is None


def test_a_wrong_point_is_a_cross(tmp_path: Path) -> None:
    figure = drawn(draw_tensor, spread_material(tmp_path, wrong=("tensor/strong/8",)))
    assert 8 not in marked(figure.axes[1], 0) and notes.WRONG in texts(figure)


def test_context_has_lengths_memory_and_times(tmp_path: Path) -> None:
    figure = drawn(draw_context, context_material(tmp_path, devices=(1, 2, 4), cores=2))
    lengths, memory, times = figure.axes
    assert [marked(lengths, style) for style in range(3)] == [{1: 64}, {2: 120}, {4: 240}]
    guide = next(line for line in lengths.lines if list(line.get_ydata()) == [64, 128, 256])
    assert guide.get_linestyle() != "-"
    assert marked(memory, 1) == {64: 500_000, 120: 980_000}
    assert any(list(line.get_ydata()) == [1_000_000] * 2 for line in memory.lines), "the limit"
    assert hollow(times, 2) == {4} and not hollow(times, 0) and not hollow(lengths, 2)
    said = texts(figure)
    assert "1,000,000 bytes per device (config.search_bytes)" in said and "limit 1 MB" in said


def test_context_says_how_exact_the_search_was(tmp_path: Path) -> None:
    made = context_material(tmp_path, devices=(1, 2, 4), cores=2)
    assert "known to within 1/8" in texts(drawn(draw_context, made)), "of a run that does not say"
    store.write_json(made.path / studies.LONGEST, {**LONGEST, "sharpness": 1})
    assert "only doubled the length (search_sharpness=1)" in texts(drawn(draw_context, made))


def test_context_times_are_the_medians(tmp_path: Path) -> None:
    made = context_material(tmp_path, search=False, devices=(1, 2, 4), noise=0, drift=0)
    (times,) = drawn(draw_context, made).axes
    law = fabricate.amdahl(0.05)
    for style, n in enumerate((1, 2, 4)):
        assert marked(times, style) == pytest.approx({n: 0.0123 / law("strong", n)})


def test_context_leaves_out_panels_without_data(tmp_path: Path) -> None:
    searched = context_material(tmp_path, rounds=0, devices=(1, 2, 4))
    assert len(drawn(draw_context, searched).axes) == 2
    (tmp_path / studies.LONGEST).unlink()
    assert draw_context(searched) is None


# The figures of pipelines, hybrid meshes and experts: the numbers in the artists, and omitted points.


WHITE = (1.0, 1.0, 1.0, 1.0)
ROUNDS = 3


def made(path: Path, entries: list[dict[str, Any]], *, rounds: int = ROUNDS) -> RunReport:
    """A run of points given as fields of their records, plus step_s, and failed: the reason of a failure."""
    plan, records = [], []
    for entry in entries:
        entry = dict(entry)
        step_s, failed = entry.pop("step_s", 0.01), entry.pop("failed", "")
        record = fabricate.point_record(**entry)
        asked = {name: getattr(record, name) for name in ("strategy", "scaling", "devices", "global_batch", "arm")}
        name = "/".join(filter(None, (record.strategy, record.scaling, str(record.devices), record.arm)))
        plan.append({"point": name, **asked, "levers": record.levers, "oversubscribed": record.oversubscribed})
        if failed:
            records.append(schema.FailureRecord(point=name, experiment="gpt", stage="build", reason=failed, **asked))
            continue
        records.append(fabricate.point_record(**entry, point=name))
        times = [(r, 10 * step_s * (1 + 0.01 * r)) for r in range(rounds)]
        records += [
            schema.RoundRecord(
                point=name, round=r, steps=10, block_s=(t, t), double_block_s=(2 * t,), warmup_block_s=(t,),
                settled=True, compilations=0, worker="session0/w0",
            )
            for r, t in times
        ]  # fmt: skip
    fabricate.write(path, plan=plan, records=records, rounds=rounds)
    return run_report.find(RunFolder(path))


def stages(k: int, m: int, name: str = "gpipe", *, cores: int = 2, **changes: Any) -> dict[str, Any]:
    """A pipeline with the theoretical idle share, and the throughput that follows from it."""
    share = waterfall.idle_share(k, m, SCHEDULE.read(name).chunks)
    facts: dict[str, Any] = dict(
        strategy="pipeline", devices=k, arm=f"accumulate={m}, schedule={name}", oversubscribed=k > cores,
        levers={"accumulate": str(m), "schedule": name}, facts={"busy_share": 1 - share},
        compile_report=fabricate.compile_report(temp_bytes=1_000_000 * (m if name == "gpipe" else k)),
        step_s=0.1 / k / (1 - share),
    )  # fmt: skip
    return {**facts, **changes}


def mesh(name: str, step_s: float, megabytes: float, **changes: Any) -> dict[str, Any]:
    sent = (schema.Collective(kind="all-reduce", count=1, bytes=int(megabytes * 1e6)),)
    facts: dict[str, Any] = dict(
        strategy="hybrid", devices=4, arm=f"mesh={name}", levers={"mesh": name}, facts={"state_bytes": 2e6},
        compile_report=fabricate.compile_report(peak_bytes=5_000_000, collectives=sent), step_s=step_s,
    )  # fmt: skip
    return {**facts, **changes}


def experts(strategy: str, devices: int, sent: dict[str, float], **changes: Any) -> dict[str, Any]:
    found = tuple(schema.Collective(kind=kind, count=1, bytes=int(1e6 * size)) for kind, size in sent.items())
    facts: dict[str, Any] = dict(
        strategy=strategy, scaling="weak", devices=devices, oversubscribed=devices > 2,
        facts={"state_bytes": 8e6 / devices, "dropped": 0.01 * devices},
        compile_report=fabricate.compile_report(collectives=found),
    )  # fmt: skip
    return {**facts, **changes}


PIPELINES = [stages(k, m, name) for k in (1, 2, 4, 8) for m in (1, 4) for name in ("gpipe", "1f1b")]
MESHES = [mesh("data=4", 0.02, 9), mesh("data=2,tensor=2", 0.01, 12), mesh("stage=4", 0.03, 3)]
MOES = [
    experts("expert", 1, {}),
    experts("expert", 2, {"all-to-all": 3, "all-reduce": 1}),
    experts("expert", 4, {"all-to-all": 5, "all-reduce": 1}),
    experts("fsdp", 4, {"all-gather": 7, "reduce-scatter": 2}),
]
RUNS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "pipeline": (draw_pipeline, PIPELINES),
    "hybrid": (draw_hybrid, MESHES),
    "moe": (draw_moe, MOES),
}


def marked__parts(axes: Axes, marker: str) -> list[tuple[float, float, bool]]:
    """(x, y, filled) of our points with that marker, in the order of x."""
    found = [line for line in axes.lines if line.get_marker() == marker and line.get_color() in marks.COLOURS]
    return sorted(
        (float(x), float(y), line.get_markerfacecolor() != "white")
        for line in found
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    )


@pytest.mark.parametrize("kind", RUNS)
def test_nothing_compiled_is_no_figure(tmp_path: Path, kind: str) -> None:
    module, entries = RUNS[kind]
    assert module.draw(made(tmp_path, [{**entry, "failed": "no"} for entry in entries])) is None
    assert module.draw(made(tmp_path / "empty", [])) is None


@pytest.mark.parametrize("kind", RUNS)
def test_without_rounds_or_facts_there_is_still_what_was_compiled(tmp_path: Path, kind: str) -> None:
    module, entries = RUNS[kind]
    drawn(module, made(tmp_path, [{**entry, "facts": {}} for entry in entries], rounds=0))


@pytest.mark.parametrize("kind", RUNS)
def test_a_wrong_point_is_crossed_out(tmp_path: Path, kind: str) -> None:
    module, entries = RUNS[kind]
    figure = drawn(module, made(tmp_path, [*entries[:-1], {**entries[-1], "ok": False}]))
    assert notes.WRONG in texts(figure)
    assert any(line.get_marker() == "x" for axes in figure.axes for line in axes.lines)


def test_the_idle_share_is_on_the_line_of_theory_and_scratch_memory_that_of_the_most_stages(tmp_path: Path) -> None:
    idle, _, scratch = drawn(draw_pipeline, made(tmp_path, PIPELINES)).axes
    found = marked__parts(idle, "s")  # M = 4
    assert [y for _, y, _ in found[::2]] == pytest.approx([0, 20, 100 * 3 / 7, 100 * 7 / 11])
    assert all(filled for *_, filled in found)
    assert waterfall.idle_share(4, 4, 2) == pytest.approx(3 / 11)
    assert marked__parts(scratch, "v") == [(1, 1e6, True), (4, 4e6, True)]  # gpipe
    assert marked__parts(scratch, "P") == [(1, 8e6, True), (4, 8e6, True)]  # 1f1b
    assert "K = 8" in scratch.get_title(loc="left")


def test_throughput_is_over_two_stages_and_one_micro_batch(tmp_path: Path) -> None:
    entries = [entry for entry in PIPELINES if entry["levers"]["schedule"] == "gpipe"]
    figure = drawn(draw_pipeline, made(tmp_path, entries, rounds=5))  # fewer give no ratio
    found = marked__parts(figure.axes[1], "s")
    theory = published.read("gpipe_analytic").frame.set_index("M").loc[4, ["K2", "K4", "K8"]]
    assert [x for x, *_ in found] == [1, 2, 4, 8]
    assert [y for _, y, _ in found[1:]] == pytest.approx(list(theory), rel=1e-3)
    assert [filled for *_, filled in found] == [True, True, False, False]
    dashed = [list(line.get_ydata()) for line in figure.axes[1].lines if line.get_color() == marks.PALE]
    assert dashed == [[1, 1.07, 1.3], [1.7, 3.2, 4.8], [1.8, 3.4, 6.3]]
    assert "Huang et al., M = 32" in texts(figure) and "not measured here" in texts(figure)


def test_without_its_base_there_is_no_throughput(tmp_path: Path) -> None:
    figure = drawn(draw_pipeline, made(tmp_path, [stages(4, 4), stages(8, 4)]))
    assert "throughput, K = 2, M = 1 is 1" not in texts(figure) and "Huang" not in texts(figure)


def test_meshes_are_ranked_by_time(tmp_path: Path) -> None:
    material = made(tmp_path, MESHES)
    assert [model_parallel.mesh(row) for row in ranked(material.rows)] == ["data=2, tensor=2", "data=4", "stage=4"]
    figure = drawn(draw_hybrid, material)
    assert [bar.get_width() for bar in bars_of(figure.axes[0])] == pytest.approx([10.1, 20.2, 30.3])
    assert [bar.get_width() for bar in bars_of(figure.axes[1])] == pytest.approx([2, 3] * 3), "state, then the rest"
    assert [bar.get_width() for bar in bars_of(figure.axes[2])] == pytest.approx([12, 9, 3])
    assert "sorted by time" in texts(figure) and notes.HOLLOW not in texts(figure)


def test_oversubscribed_meshes_are_ranked_by_bytes(tmp_path: Path) -> None:
    figure = drawn(draw_hybrid, made(tmp_path, [{**entry, "oversubscribed": True} for entry in MESHES]))
    assert [bar.get_width() for bar in bars_of(figure.axes[2])] == pytest.approx([3, 9, 12])
    assert all(bar.get_facecolor() == WHITE for bar in bars_of(figure.axes[0]))
    assert not any(bar.get_facecolor() == WHITE for axes in figure.axes[1:] for bar in bars_of(axes))
    assert "sorted by bytes received" in texts(figure) and notes.HOLLOW in texts(figure)


def test_a_mesh_that_failed_is_named_with_its_reason(tmp_path: Path) -> None:
    reason = "heads do not divide over tensor=3 " * 9
    more = [mesh("tensor=3", 1, 1, failed=reason), mesh("stage=2,data=2", 0.01, 2, facts={"busy_share": 0.8})]
    said = texts(drawn(draw_hybrid, made(tmp_path, [*MESHES, *more])))
    assert "not drawn: tensor=3: heads do not divide" in said and "…" in said
    assert "meshes with stages leave 20 % of their schedule idle" in said


def test_the_state_of_experts_and_what_travels(tmp_path: Path) -> None:
    figure = drawn(draw_moe, made(tmp_path, MOES))
    state, sent = figure.axes
    ours = [line for line in state.lines if line.get_marker() == "o"]
    assert [list(line.get_ydata()) for line in ours] == [[8e6, 4e6, 2e6]]
    assert [bar.get_height() for bar in bars_of(sent)] == pytest.approx([3, 1, 5, 1, 7, 2])
    assert [bar.get_y() for bar in bars_of(sent)] == pytest.approx([0, 3, 0, 5, 0, 7])
    assert [tick.get_text() for tick in sent.get_xticklabels()] == ["2", "4", "4"]
    assert "expert 1.0 to 4.0 %, fsdp 4.0 %" in texts(figure).replace("\n", " ")
