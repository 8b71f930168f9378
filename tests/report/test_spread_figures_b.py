# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figures of pipelines, hybrid meshes and experts: the numbers in the artists, and omitted points."""

from pathlib import Path
from typing import Any

import fabricate
import matplotlib
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from jaxbench.catalog import published
from jaxbench.core import schema
from jaxbench.core.store import RunFolder
from jaxbench.features.ablations import waterfall
from jaxbench.report import run_report
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.figures import model_parallel
from jaxbench.report.figures.model_parallel import draw_hybrid, draw_moe, draw_pipeline, ranked
from jaxbench.report.run_report import RunReport

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
    share = waterfall.idle_share(k, m, waterfall.CHUNKS.get(name, 1))
    facts: dict[str, Any] = dict(
        strategy="pipeline", devices=k, arm=f"accumulate={m}, schedule={name}", oversubscribed=k > cores,
        levers={"accumulate": str(m), "schedule": name}, facts={"busy_share": 1 - share},
        passport=fabricate.passport(temp_bytes=1_000_000 * (m if name == "gpipe" else k)),
        step_s=0.1 / k / (1 - share),
    )  # fmt: skip
    return {**facts, **changes}


def mesh(name: str, step_s: float, megabytes: float, **changes: Any) -> dict[str, Any]:
    sent = (schema.Collective(kind="all-reduce", count=1, bytes=int(megabytes * 1e6)),)
    facts: dict[str, Any] = dict(
        strategy="hybrid", devices=4, arm=f"mesh={name}", levers={"mesh": name}, facts={"state_bytes": 2e6},
        passport=fabricate.passport(peak_bytes=5_000_000, collectives=sent), step_s=step_s,
    )  # fmt: skip
    return {**facts, **changes}


def experts(strategy: str, devices: int, sent: dict[str, float], **changes: Any) -> dict[str, Any]:
    found = tuple(schema.Collective(kind=kind, count=1, bytes=int(1e6 * size)) for kind, size in sent.items())
    facts: dict[str, Any] = dict(
        strategy=strategy, scaling="weak", devices=devices, oversubscribed=devices > 2,
        facts={"state_bytes": 8e6 / devices, "dropped": 0.01 * devices}, passport=fabricate.passport(collectives=found),
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


def drawn(module: Any, material: RunReport) -> Figure:
    with canvas.style():
        figure = module.draw(material)
    assert figure is not None
    return figure


def texts(figure: Figure) -> str:
    return "\n".join(t.get_text() for t in figure.findobj(matplotlib.text.Text))


def marked(axes: Axes, marker: str) -> list[tuple[float, float, bool]]:
    """(x, y, filled) of our points with that marker, in the order of x."""
    found = [line for line in axes.lines if line.get_marker() == marker and line.get_color() in marks.COLOURS]
    return sorted(
        (float(x), float(y), line.get_markerfacecolor() != "white")
        for line in found
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    )


def bars_of(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


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


def test_the_idle_share_is_filled_and_on_the_line_of_theory(tmp_path: Path) -> None:
    axes = drawn(draw_pipeline, made(tmp_path, PIPELINES)).axes[0]
    found = marked(axes, "s")  # M = 4
    assert [y for _, y, _ in found[::2]] == pytest.approx([0, 20, 100 * 3 / 7, 100 * 7 / 11])
    assert all(filled for *_, filled in found)
    assert waterfall.idle_share(4, 4, 2) == pytest.approx(3 / 11)


def test_throughput_is_over_two_stages_and_one_micro_batch(tmp_path: Path) -> None:
    entries = [entry for entry in PIPELINES if entry["levers"]["schedule"] == "gpipe"]
    figure = drawn(draw_pipeline, made(tmp_path, entries, rounds=5))  # fewer give no ratio
    found = marked(figure.axes[1], "s")
    theory = published.read("gpipe_analytic").frame.set_index("M").loc[4, ["K2", "K4", "K8"]]
    assert [x for x, *_ in found] == [1, 2, 4, 8]
    assert [y for _, y, _ in found[1:]] == pytest.approx(list(theory), rel=1e-3)
    assert [filled for *_, filled in found] == [True, True, False, False]
    dashed = [list(line.get_ydata()) for line in figure.axes[1].lines if line.get_color() == marks.PALE]
    assert dashed == [[1, 1.07, 1.3], [1.7, 3.2, 4.8], [1.8, 3.4, 6.3]]
    assert "Huang et al., M = 32" in texts(figure) and "not measured here" in texts(figure)


def test_without_its_base_there_is_no_throughput(tmp_path: Path) -> None:
    figure = drawn(draw_pipeline, made(tmp_path, [stages(4, 4), stages(8, 4)]))
    assert "was not timed" in texts(figure) and "Huang" not in texts(figure)


def test_scratch_memory_is_that_of_the_most_stages(tmp_path: Path) -> None:
    axes = drawn(draw_pipeline, made(tmp_path, PIPELINES)).axes[2]
    assert marked(axes, "v") == [(1, 1e6, True), (4, 4e6, True)]  # gpipe
    assert marked(axes, "P") == [(1, 8e6, True), (4, 8e6, True)]  # 1f1b
    assert "K = 8" in axes.get_title(loc="left")


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
    entries = [
        *MESHES,
        mesh("tensor=3", 1, 1, failed=reason),
        mesh("stage=2,data=2", 0.01, 2, facts={"busy_share": 0.8}),
    ]
    said = texts(drawn(draw_hybrid, made(tmp_path, entries)))
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
