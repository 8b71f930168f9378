# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The curves that panels name: the paper's own, from the catalogue or a formula, and those measured here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from jaxbench.analysis import scaling_laws, waterfall
from jaxbench.analysis.run_rows import Row
from jaxbench.catalog import published
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.marks import Mark, exact, n_of
from jaxbench.report.figures import memory
from jaxbench.statistics.bootstrap import Estimate, over_seeds, student
from jaxbench.suites.papers import paper, readers
from jaxbench.suites.papers.paper import Call, Evidence, NotTestable, arm_of

FUNCTIONS: dict[str, Callable[..., Series | list[Series]]] = {}  # those that a panel may name


@dataclass(frozen=True, kw_only=True)
class PublishedSeries:
    """A series of the paper: from the catalogue, drawn dotted and grey, or a formula, drawn dashed without marks."""

    label: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    formula: bool = False


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A series that was measured here. crosses: what its crossed-out marks mean, if not what they mean elsewhere."""

    label: str
    marks: Sequence[Mark]
    crosses: str = ""


Series = PublishedSeries | Measured
Maker = TypeVar("Maker", bound=Callable[..., Series | list[Series]])


def _in_panels(function: Maker) -> Maker:
    FUNCTIONS[function.__name__] = function
    return function


def make(call: Call, *runs: Evidence) -> list[Series]:
    """The series of one entry of a panel. Raises NotTestable."""
    arguments: dict[str, Any] = dict(call)
    made = FUNCTIONS[arguments.pop("function")](*runs, **arguments)
    return made if isinstance(made, list) else [made]  # most functions make one series


# The paper's own


@_in_panels
def points(label: str, x: list[float], y: list[float], *, formula: bool = False) -> Series:
    return PublishedSeries(label=label, x=x, y=y, formula=formula)


@_in_panels
def table(
    label: str, id: str, y: str, x: str = "gpus", *, per: float = 1, relative: bool = False, first: float = 0
) -> Series:
    """Two columns of a published table. per: divides y. relative: y over its first value. first: y of a point that is
    added at x = 1."""
    frame = published.read(id).frame
    values = frame[y] / (frame[y][0] if relative else per)
    return PublishedSeries(label=label, x=[*[1] * bool(first), *frame[x]], y=[*[first] * bool(first), *values])


@_in_panels
def cells(label: str, of: list[dict[str, str]]) -> Series:
    """Single cells of published tables, at the places 0, 1, ..  A cell: table, key column, key, column."""
    values = (published.read(cell["id"]).frame.set_index(cell["by"])[cell["column"]][cell["row"]] for cell in of)
    return PublishedSeries(label=label, x=list(range(len(of))), y=[float(value) for value in values])


@_in_panels
def bubble_formula(label: str, stages: int) -> Series:
    """Idle slots in %, over micro-batches."""
    parts = [1, 2, 4, 8, 16, 32]  # micro-batches
    return PublishedSeries(label=label, x=parts, y=[100 * waterfall.idle_share(stages, m) for m in parts], formula=True)


@_in_panels
def speedup_law(label: str, name: str, parameters: list[float]) -> Series:
    """A law with round parameters, for its shape: the claims fit it to this machine's curve."""
    n = 2.0 ** np.arange(0, 7)  # 1 to 64 devices: a law bends far beyond those of this machine
    return PublishedSeries(label=label, x=n, y=scaling_laws.predict(name, n, *parameters), formula=True)


# Measured here


@_in_panels
def over_devices(
    runs: Evidence, label: str, run: str, value: str, *, scaling: str = "weak", scale: float = 1
) -> Series:
    """`speedup` or `efficiency` of the rows of one kind of scaling."""
    rows = [row for row in runs.training(run).rows if row.point.scaling == scaling]
    made = marks.of(rows, lambda row: row.point.devices, lambda row: getattr(row, value).times(scale))
    return Measured(label=label, marks=made)


@_in_panels
def tokens(runs: Evidence, label: str, run: str) -> Series:
    """Tokens per second of one device over the batch."""
    rows = [row for row in runs.generation(run).rows if row.point.devices == 1 and row.usable]
    value = "tokens_per_s_device"
    made = marks.of(rows, lambda row: row.point.global_batch, lambda row: row.derived[value])
    return Measured(label=label, marks=made)


@_in_panels
def generation_by_devices(runs: Evidence, label: str, run: str) -> Series:
    """Tokens per second over those of one device."""
    rows = [row for row in runs.generation(run).rows if row.speedup.known]
    made = marks.of(rows, lambda row: row.point.devices, lambda row: row.speedup)
    return Measured(label=label, marks=made)


@_in_panels
def memory_growth(runs: Evidence, run: str, policies: list[str]) -> list[Series]:
    """Scratch memory relative to the fewest blocks, over blocks."""
    return [
        Measured(
            label=f"{law.remat} here", marks=[Mark(at=n, value=exact(size / law.sizes[0][1])) for n, size in law.sizes]
        )
        for law in runs.levers(run).laws
        if law.remat in policies
    ]


@_in_panels
def by_arm(runs: Evidence, label: str, run: str, arms: list[str], value: str) -> Series:
    """A number of several arms at the places 0, 1, ..: `ms` or `rate` of a step, or `extra` time in %."""
    group = runs.group(run)
    chosen = [arm_of(group, name) for name in arms]
    values = {
        "ms": lambda arm: arm.timing.step_s.times(1e3),
        "rate": lambda arm: arm.timing.step_s.under(arm.point.examples),
        "extra": lambda arm: Estimate(**{end: 100 * (getattr(arm.ratio, end) - 1) for end in ("value", "lo", "hi")}),
    }[value]
    return Measured(label=label, marks=[Mark(at=i, value=values(arm), n=n_of(arm)) for i, arm in enumerate(chosen)])


@_in_panels
def pipeline_throughput(runs: Evidence, run: str, stages: list[int]) -> list[Series]:
    """Speed relative to two stages with one micro-batch, over micro-batches."""
    rows = [row for row in readers.pipelines(runs, run) if row.timing.step_s.known]
    base = next((r for r in rows if waterfall.stages(r.point) == 2 and waterfall.micro_batches(r.point) == 1), None)
    if base is None:
        raise NotTestable("Two stages with one micro-batch were not measured.")
    step_s = base.timing.step_s.value
    return by(
        rows,
        _stages_label,
        [f"K = {count}" for count in stages],
        lambda some: marks.of(
            some, lambda r: waterfall.micro_batches(r.point), lambda r: r.timing.step_s.under(step_s)
        ),
    )


@_in_panels
def pipeline_idle(runs: Evidence, run: str, stages: list[int]) -> list[Series]:
    """Idle slots in %, over micro-batches."""
    rows = sorted(readers.pipelines(runs, run), key=lambda row: waterfall.micro_batches(row.point))
    return by(
        rows,
        _stages_label,
        [f"K = {count}" for count in stages],
        lambda some: [
            Mark(at=waterfall.micro_batches(row.point), value=exact(100 * readers.idle(row))) for row in some
        ],
    )


@_in_panels
def model_state(runs: Evidence, run: str) -> list[Series]:
    """Bytes of model state per parameter on a device, over devices."""
    rows = [row for row in runs.training(run).rows if not row.wrong]
    return by(
        rows,
        lambda row: row.point.strategy,
        ("jit_auto", *readers.STAGES),
        lambda some: [Mark(at=row.point.devices, value=exact(memory.per_parameter(row))) for row in some],
    )


def by(
    rows: Sequence[Row],
    key: Callable[[Row], str],
    names: Sequence[str],
    made: Callable[[Sequence[Row]], Sequence[Mark]],
) -> list[Series]:
    """A series for each name, with the marks of the rows that have this key."""
    return [Measured(label=f"{name} here", marks=made([row for row in rows if key(row) == name])) for name in names]


def _stages_label(row: Row) -> str:
    return f"K = {waterfall.stages(row.point)}"


@_in_panels
def all_reduce_times(runs: Evidence, label: str, run: str) -> Series:
    """µs of the all-reduces that `readers.all_reduce_fit` fits, over payload bytes."""
    point = readers.all_reduce_fit(runs, run).point
    names = ("op", "devices", "axis", "mesh", "dtype")
    rows = [r for r in runs.cases(run).rows if all(getattr(r.point, name) == getattr(point, name) for name in names)]
    made = marks.of(rows, lambda r: float(r.point.payload_bytes or 0), lambda r: r.timing.step_s.times(1e6))
    return Measured(label=label, marks=made)


@_in_panels
def all_reduce_line(runs: Evidence, label: str, run: str) -> Series:
    fit = readers.all_reduce_fit(runs, run)
    sizes = np.geomspace(fit.residuals[0][0], fit.residuals[-1][0], 50)
    return PublishedSeries(label=label, x=sizes, y=1e6 * fit.seconds_at(sizes), formula=True)


@_in_panels
def validation_error(runs: Evidence, label: str, rule: str) -> Series:
    """% over the batch; a batch with a diverged training is crossed out."""
    trained = paper.trainings(runs, rule)
    made = [
        Mark(
            at=batch,
            value=student(100 - 100 * each),
            n=(len(each),),
            state="refused" if trained.diverged[batch] else "solid",
        )
        for batch, each in trained.accuracy.items()
    ]
    return Measured(label=label, marks=made, crosses="small grey x: a training of this batch diverged")


@_in_panels
def accuracy_pair(runs: Evidence, label: str, x: str, y: str) -> Series:
    """The accuracy in one precision, in %, over that in another, over seeds."""
    at, values = 100 * student(readers.accuracies(runs, x)).value, 100 * readers.accuracies(runs, y)
    return Measured(label=label, marks=[Mark(at=at, value=student(values), n=(len(values),))])


@_in_panels
def steps(runs: Evidence, label: str, rule: str) -> Series:
    """Steps to the target over the batch."""
    by_batch = readers.steps_to_target(runs, rule)
    made = [Mark(at=batch, value=over_seeds(each), n=(len(each),)) for batch, each in by_batch.items()]
    return Measured(label=label, marks=made)


@_in_panels
def step_laws(runs: Evidence, rule: str) -> list[Series]:
    """1 / batch through the smallest batch, and the fitted curve with its knee."""
    by_batch = readers.steps_to_target(runs, rule)
    batches = np.array(list(by_batch), dtype=float)
    first = float(np.mean(by_batch[int(batches[0])]))
    ends = batches[[0, -1]]
    made: list[Series] = [PublishedSeries(label="1 / batch", x=ends, y=first * batches[0] / ends, formula=True)]
    knee = paper.trainings(runs, rule).knee().value
    if knee > 0:
        curve = first * (1 + knee / batches) / (1 + knee / batches[0])
        label = f"1 + B / batch, knee B = {knee:.0f}"
        made.append(PublishedSeries(label=label, x=batches, y=curve, formula=True))
    return made
