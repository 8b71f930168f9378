# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of memory and work per device: model state, contrastive losses, rematerialization, the largest batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.typing import LineStyleType

from jaxbench.analysis import studies
from jaxbench.analysis.arms import ArmGroup
from jaxbench.analysis.quantities import scaled
from jaxbench.analysis.run_rows import Row
from jaxbench.analysis.studies import Law
from jaxbench.catalog import published
from jaxbench.errors import present
from jaxbench.records.studies import Search, TriedBatch
from jaxbench.report.drawing import axes as scales
from jaxbench.report.drawing import marks, notes, series, shapes
from jaxbench.report.drawing.axes import bytes_tick, devices_axis, entitle, log_axis, plain
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import COLOURS, exact
from jaxbench.report.drawing.shapes import Chart, Layer, Log, Panel, on
from jaxbench.report.run_report import RunReport
from jaxbench.statistics.bootstrap import Estimate

TABLE, BILLIONS = "zero_table1", 7.5  # the published table, and its model's size in billions of parameters
DEGREES = tuple(2**power for power in range(11))  # the range of the published table

# Strategies that split the model, not only its data, so ZeRO's formulas do not apply. `parallel.axes` has the same
# information, but importing it would start jax, which a report must not need.
_SPLIT_MODELS = ("tensor", "context", "pipeline", "expert", "hybrid")
FLAT = "a mean over examples: flat"
_STYLES: tuple[LineStyleType, ...] = ("-", marks.DASHED, ":", "-.")  # per arm, if there are several strategies
KORTHIKANTI, CHEN = "korthikanti_table4", "chen2016_claims"
_NAMES = {
    "full_recompute": "full (22B)",
    "selective_recompute": "selective (22B)",
    "selective_plus_sequence": "selective + seq.",
}
_OK, _FAIL, _PREDICTED = COLOURS[2], COLOURS[1], COLOURS[0]
Families = Mapping[str, Sequence[Row]]
MOST_FAMILIES = 5  # lines that a reader can tell apart; the table has all


@dataclass(frozen=True, kw_only=True)
class ZeroStage:
    """A ZeRO stage: of 16 bytes per parameter, a device of N keeps `whole + shared / N`."""

    name: str  # as Rajbhandari et al. (2020) write it
    whole: float
    shared: float
    column: str  # the stage's column in the published table; "" if it has none

    def per_parameter(self, devices: float) -> float:
        return self.whole + self.shared / devices

    @property
    def formula(self) -> str:
        parts = (f"{self.whole:g}" if self.whole else "", f"{self.shared:g}/N" if self.shared else "")
        return " + ".join(filter(None, parts))


DP = ZeroStage(name="DP", whole=16, shared=0, column="")  # weights and gradients 2 + 2 bytes, copy and two moments 12
OS = ZeroStage(name="P_os", whole=4, shared=12, column="pos_7.5B")
GRADIENTS = ZeroStage(name="P_os+g", whole=2, shared=14, column="posg_7.5B")
PARAMETERS = ZeroStage(name="P_os+g+p", whole=0, shared=16, column="posgp_7.5B")
STAGES = (DP, OS, GRADIENTS, PARAMETERS)
_OF = {"zero1": OS, "zero2": GRADIENTS, "fsdp": PARAMETERS}  # by strategy; every other data-parallel one is DP


def stage(strategy: str) -> ZeroStage | None:
    """The ZeRO stage of a data-parallel strategy; None for any other strategy."""
    return None if strategy in _SPLIT_MODELS else _OF.get(strategy, DP)


def per_parameter(row: Row) -> float:
    """Bytes of state and gradients on one device divided by the model's parameters; NaN if not measured."""
    if row.point.compile_report is None or not row.point.compile_report.parameters:
        return math.nan
    return (row.point.fact("state_bytes") + row.point.fact("held_gradient_bytes")) / row.point.compile_report.parameters


@plot("zero", views=("training/zero", "levers/zero"), title="model state per device over data-parallel degree (ZeRO)")
def draw_zero(run: RunReport) -> Chart | None:
    """Bytes of model state (parameters, gradients, optimizer state) per parameter on one device, over the data-parallel
    degree. Right axis: the same in GB for a model of 7.5 billion parameters. Measured bytes are the exact sizes of the
    arrays on the first device."""
    rows = [row for row in series.compiled(run.rows) if math.isfinite(per_parameter(row))]
    if not rows:
        return None
    groups = series.families(_once(rows))
    # Only with mixed precision does a parameter take the formulas' 16 bytes.
    overlay = all(row.point.levers.get("precision") == "mixed" for row in rows)
    measured = on(series.lines, groups, lambda row: exact(per_parameter(row)), exact=True)
    counts = sorted({*series.counts(rows), *(DEGREES if overlay else ())})
    panel = Panel(
        title="bytes per parameter and device",
        layers=[measured, *(_published() if overlay else [])],
        axes=[on(_axes, counts)],
    )
    return Chart(
        panels=[[panel]],
        heights=2.7,
        handles=_zero_handles(groups, overlay=overlay),
        remarks=footnotes(rows, overlay=overlay),
    )


def _once(rows: Sequence[Row]) -> list[Row]:
    """One row of each strategy, arm and device count: strong and weak scaling hold the same state."""
    last = {(row.point.strategy, row.point.arm, row.point.devices): row for row in reversed(rows)}
    return [row for row in rows if row is last[row.point.strategy, row.point.arm, row.point.devices]]


def _published() -> list[Layer]:
    """The formulas as dashed lines, and the table's numbers divided by the model's size."""
    frame = published.read(TABLE).frame
    fine, layers = np.geomspace(DEGREES[0], DEGREES[-1], 101), list[Layer]()
    for place, each in enumerate(STAGES):
        layers.append(on(marks.guide, fine, [each.per_parameter(n) for n in fine]))
        if each.column:
            theirs, shape = frame[each.column] / BILLIONS, marks.series_style(place)[1]
            layers.append(on(marks.published, frame["dp"], theirs, shape=shape, joined=False))
    return layers


def _axes(axes: Axes, counts: Sequence[int]) -> None:
    """Labels both sides: GB on the left, bytes per parameter on the right."""
    log_axis(axes, "y", show=plain, max_ticks=8)
    devices_axis(axes, counts, label="data-parallel degree N, devices")
    axes.xaxis.set_ticks(counts)  # all of them: `devices_axis` leaves some out
    scaled_by = (lambda x: np.asarray(x) * BILLIONS, lambda x: np.asarray(x) / BILLIONS)  # and its inverse
    right = axes.secondary_yaxis("right", functions=scaled_by)
    low, high = axes.get_ylim()
    right.set_yscale("log")  # it does not take over the scale and the ticks of the left axis
    right.yaxis.set_major_locator(FixedLocator(scales.round_ticks(low * BILLIONS, high * BILLIONS)))
    right.yaxis.set_minor_locator(NullLocator())
    right.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    right.set_ylabel(f"GB for {BILLIONS:g} billion parameters")
    right.spines["right"].set_visible(True)


def _zero_handles(groups: dict[str, list[Row]], *, overlay: bool) -> list[Line2D]:
    """Legend entries of measured series and published lines; in pairs if both have every stage."""
    ours = []
    for place, (name, members) in enumerate(groups.items()):
        zero_stage = stage(members[0].point.strategy)
        ours.append(marks.handle(place, short(f"{zero_stage.name}: {name}" if zero_stage else name, 24)))
    if not overlay:
        return ours
    theirs = []
    for place, each in enumerate(STAGES):
        marker = marks.series_style(place)[1] if each.column else ""
        theirs.append(marks.guide_handle(f"{each.name}: {each.formula}", **marks.HOLLOW, marker=marker))
    pairs = [entry for pair in zip(ours, theirs, strict=False) for entry in pair]
    return pairs if len(ours) == len(theirs) else [*ours, *theirs]


def worst(rows: Sequence[Row]) -> float:
    """The largest relative error of a measured value against its formula."""
    staged = [(row, zero) for row in rows if (zero := stage(row.point.strategy)) is not None and not row.wrong]
    errors = (abs(per_parameter(row) / zero.per_parameter(row.point.devices) - 1) for row, zero in staged)
    return max(errors, default=0.0)


def footnotes(rows: Sequence[Row], *, overlay: bool) -> list[str]:
    remarks = [f"measured: {notes.EXACT}; on one device nothing is sharded, so all series start at the same point"]
    if overlay:
        source = f"{published.read(TABLE).project}, Table 1: {BILLIONS:g} billion parameters, mixed-precision Adam"
        error = f"measured values are within {100 * worst(rows):.1g} % of the formulas (N does not divide every array)"
        remarks += [notes.cited(source), error]
    else:
        remarks.append("published lines are not drawn: they assume mixed precision, 16 bytes per parameter")
    return remarks + ([notes.WRONG] if any(row.wrong for row in rows) else [])


@plot(
    "contrastive",
    views=("training/contrastive", "levers/contrastive"),
    title="each example against the whole global batch, weak scaling",
)
def draw_contrastive(run: RunReport) -> Chart | None:
    """Weak scaling: every device has the same number of examples. The panels show, for one device, the FLOP of its
    matrix products, the bytes that it all-gathers, its scratch memory, and the time per step. Dashed: the value on the
    fewest devices, which a loss that is a mean over examples (as in cnn) would keep."""
    rows = [row for row in series.compiled(run.rows) if row.point.scaling == "weak"]
    if not rows:
        return None
    every = series.families(rows)
    groups = dict(list(every.items())[:MOST_FAMILIES])
    left_out = notes.rest(len(groups), len(every), "strategies and settings, the first")
    work = _growing(groups, products, "matmul FLOP per device and step", show=scales.si)
    sent = _growing(groups, gathered, "MB gathered per device and step")
    scratch = _growing(groups, lambda row: exact(row.point.temp_bytes), "scratch memory per device", show=bytes_tick)
    time = _growing(groups, lambda row: row.timing.step_s, "time per step", show=scales.seconds_tick, measured=True)
    gradients = "gathering also returns gradients: by a reduce-scatter or, if XLA chooses, an all-reduce"
    return Chart(
        panels=[[work, sent], [scratch, time]],
        handles=[*_contrastive_handles(groups), marks.guide_handle(FLAT)],
        remarks=[f"FLOP and {notes.EXACT}", gradients, *series.remarks(rows, rows), *left_out],
    )


def _styles(groups: Families) -> list[tuple[int, LineStyleType]]:
    """(style index, line style) of each family: by strategy and arm, or by arm alone for one strategy."""
    points = [rows[0].point for rows in groups.values()]
    strategies, arms = (list(dict.fromkeys(getattr(p, name) for p in points)) for name in ("strategy", "arm"))
    if len(strategies) == 1:
        return [(place, "-") for place in range(len(points))]
    return [(strategies.index(p.strategy), _STYLES[arms.index(p.arm) % len(_STYLES)]) for p in points]


def _contrastive_handles(groups: Families) -> list[Line2D]:
    """Legend entries: one per strategy and one per arm, not one per combination."""
    points, styles = [rows[0].point for rows in groups.values()], _styles(groups)
    if len({p.strategy for p in points}) == 1:
        return series.handles(groups)
    strategies = {p.strategy: place for p, (place, _) in zip(points, styles, strict=True)}
    arms = {p.arm: style for p, (_, style) in zip(points, styles, strict=True)}
    entries = [marks.handle(place, short(name, 28)) for name, place in strategies.items()]
    lines = [marks.style_handle(short(arm, 28), linestyle=style) for arm, style in arms.items()]
    return [*entries, *(lines if len(lines) > 1 else [])]


def products(row: Row) -> Estimate:
    """FLOP of one device, recomputation included: counted in the compiled program, else by the workload's formula."""
    compiled = present(row.point.compile_report)
    return exact((compiled.product_flops_per_step or compiled.flops_per_step) / row.point.devices)


def gathered(row: Row) -> Estimate:
    """MB in the results of all-gathers on one device; 0 on a single device, where a gather moves nothing."""
    return exact(series.received(row).get("all-gather", 0.0) / 1e6 if row.point.devices > 1 else 0.0)


def _growing(
    groups: Families,
    value: Callable[[Row], Estimate],
    title: str,
    *,
    show: Callable[[float], str] | None = None,
    measured: bool = False,
) -> Panel:
    """A line per family and its flat reference. show: writes a tick of a logarithmic axis; None: the axis is linear and
    starts at 0. measured: the values are times, so oversubscribed points have no reference."""
    counts, layers = series.counts(row for rows in groups.values() for row in rows), list[Layer]()
    for number, (rows, (place, style)) in enumerate(zip(groups.values(), _styles(groups), strict=True)):
        factor = marks.dodge(number, len(groups))
        made = marks.of(rows, lambda row, by=factor: by * row.point.devices, value, exact=not measured)  # type: ignore[misc]
        layers.append(on(marks.line, made, place=place, between=style))
        known = [row for row in rows if not row.wrong and value(row).known]
        if known and not (measured and known[0].point.oversubscribed):
            layers.append(on(marks.guide, counts, [value(known[0]).value] * len(counts)))
    scale = Log("y", show, max_ticks=5) if show is not None else on(scales.whole_zero)
    return Panel(title=title, layers=layers, axes=[scale, on(devices_axis, counts)])


@plot("remat", views=("levers/remat",))
def draw_remat(run: RunReport) -> Figure | None:
    """Left: scratch memory of the compiled step (mostly activations) and step time; lower left is better, and the line
    joins the Pareto-optimal policies. Middle: extra step time relative to saving all activations, with published costs.
    Right, if several depths were compiled: scratch memory over the number of blocks."""
    if not shapes.any_timed(run.groups):
        return None
    widths = [1.1, 1, 1] if run.laws else [1, 1]
    sheet = Sheet(1, len(widths), widths=widths, heights=2.3)
    panels = sheet.panels[0]
    _pareto(panels[0], run.groups)
    sheet.names(panels[1], _overheads(panels[1], run.groups), abreast=len(run.groups))
    sources = f"{published.read(KORTHIKANTI).project}, Table 4; {published.read(CHEN).project}"
    remarks = [*shapes.arm_remarks(run.groups), notes.cited(sources)]
    if run.laws:
        draw_law(panels[2], run.laws)
        remarks.append("scratch memory includes gradients, which grow with n under every policy; ±: 95 % of the fit")
    return sheet.finish(f"{run.experiment}: memory saved and extra time", shapes.arm_handles(run.groups), remarks)


def _pareto(axes: Axes, everywhere: Sequence[ArmGroup]) -> None:
    """Draws step time over scratch memory, and joins the arms that no other arm beats in both."""
    for number, group in enumerate(everywhere):
        arms = [arm for arm in group.arms if arm.timing.step_s.known and math.isfinite(arm.point.temp_bytes)]
        for arm in arms:
            marks.line(axes, marks.of([arm], _scratch_megabytes, _step_milliseconds), place=number)
        best = front(arms)
        for arm in arms if number == 0 else ():  # names of the first group; the others have the same arms
            _name(axes, arm, below=arm in best)
        x, y = [_scratch_megabytes(arm) for arm in best], [_step_milliseconds(arm).value for arm in best]
        axes.plot(x, y, color=marks.series_style(number)[0], linewidth=0.7, linestyle="--", zorder=1)
    axes.margins(x=0.22, y=0.2)
    axes.set_xlim(left=0)
    entitle(axes, "step time, ms", x="scratch memory per device, MB")


def _name(axes: Axes, arm: Row, *, below: bool) -> None:
    """Writes an arm's name clear of the front's line: below an arm on the front, above any other."""
    value = _step_milliseconds(arm)
    whole = value.has_interval and not arm.point.oversubscribed
    at = (value.lo if below else value.hi) if whole else value.value
    side: marks.Style = dict(xytext=(0, -4), va="top") if below else dict(xytext=(0, 4), va="bottom")
    marks.write(axes, _scratch_megabytes(arm), at, short(arm.label, 16), ha="center", **side)


def front(arms: Sequence[Row]) -> list[Row]:
    """Arms on the Pareto front of scratch memory and median time, sorted by memory."""
    best: list[Row] = []
    for arm in sorted((a for a in arms if a.usable), key=lambda a: (a.point.temp_bytes, a.timing.step_s.value)):
        if not best or arm.timing.step_s.value < best[-1].timing.step_s.value:
            best.append(arm)
    return best


def _scratch_megabytes(arm: Row) -> float:
    return arm.point.temp_bytes / 1e6


def _step_milliseconds(arm: Row) -> Estimate:
    return arm.timing.step_s.times(1e3)


def overhead(arm: Row) -> Estimate:
    """Extra time relative to the baseline, in percent."""
    value = arm.ratio
    return Estimate(value=100 * (value.value - 1), lo=100 * (value.lo - 1), hi=100 * (value.hi - 1))  # shifts both ends


def others() -> list[tuple[str, float]]:
    """(name, extra time in percent) as published."""
    frame = published.read(KORTHIKANTI).frame.set_index("experiment")["overhead_pct"]
    claim = published.read(CHEN).frame.set_index("quantity")["value"]["extra_runtime"]
    return [*((name, float(frame[id])) for id, name in _NAMES.items()), ("sqrt(n), Chen", float(claim))]


def _overheads(axes: Axes, everywhere: Sequence[ArmGroup]) -> list[str]:
    """Draws measured extra times above, published ones below. Returns the names of the rows."""
    base = short(everywhere[0].arms[0].label, 12)
    names = [name for name in shapes.arm_labels(everywhere) if name != everywhere[0].arms[0].label]
    made = shapes.arm_marks(everywhere, overhead, lambda value: f"{value.value:+.0f} %", names=names)
    marks.hbars(axes, made, thick=0.68 / len(everywhere))
    theirs = others()
    marks.published_bars(axes, [(len(names) + i, value, f"{value:.0f} %") for i, (_, value) in enumerate(theirs)])
    low, high = min([0.0, *(mark.value.value for mark in made)]), max([mark.end for mark in made], default=0.0)
    axes.set_xlim(1.15 * low, 1.3 * max(high, *(value for _, value in theirs)))
    axes.axvline(0, color="black", linewidth=0.6)
    entitle(axes, f"extra time over {base}, %")
    return [*(short(name, 16) for name in names), *(name for name, _ in theirs)]


def draw_law(axes: Axes, laws: Sequence[Law]) -> None:
    """Draws scratch memory over blocks with its fitted slope, and guides of slope 1 and 1/2."""
    for number, law in enumerate(laws):
        n, size = np.array(law.sizes).T
        label = f"{law.remat}: n^{law.slope.value:.2f}" if law.slope.known else law.remat
        if law.slope.has_interval:
            label += f" ± {law.slope.hi - law.slope.value:.2f}"
        colour, marker = marks.series_style(number)
        axes.plot(n, size, color=colour, marker=marker, linestyle="none", label=label, zorder=3)
        if law.slope.known:
            axes.plot(n, np.exp(law.intercept) * n**law.slope.value, color=colour, linewidth=0.9, zorder=2)
    fitted, guides = axes.lines[:], _guides(axes, laws)  # a copy, before the guides become lines of the panel, too
    log_axis(axes, "x", base=2, show=plain, max_ticks=6)
    log_axis(axes, "y", show=bytes_tick, max_ticks=5)
    entitle(axes, "scratch memory", x="blocks")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** (0.04 + 0.11 * len(laws)))  # room for the legend, a line for each law
    marks.end_labels(axes, guides, reach=1.15, size=6.5)
    axes.legend(
        handles=[line for line in fitted if line.get_linestyle() == "None"],
        loc="upper left",
        fontsize=6.5,
        frameon=False,
        borderpad=0.1,
        handletextpad=0.2,
    )


def _guides(axes: Axes, laws: Sequence[Law]) -> list[Line2D]:
    """Draws the guides below all points, so that they are not taken for fits."""
    every = [size for law in laws for size in law.sizes]
    first, last = min(n for n, _ in every), max(n for n, _ in every)
    if first == last:
        return []
    start = 0.6 * min(size for _, size in every)
    ends = [(name, start * (last / first) ** slope) for name, slope in (("n", 1.0), ("√n", 0.5))]
    return [marks.guide(axes, [first, last], [start, end], label=name) for name, end in ends]


def found(run: RunReport) -> str:
    """The result of the run's search; "" without one."""
    return "" if run.search is None else studies.search_sentence(run.search)


@plot("search", views=("training", "levers"), order=4, more=found)
def draw_search(run: RunReport) -> Figure | None:
    """Left: predicted memory of a step for every compiled batch, and the batches that were then run. Right: predicted
    and measured memory of the batches that were run."""
    search = run.search
    if search is None or not search.tried:
        return None
    sheet = Sheet(1, 2, widths=[1.3, 1])
    _draw_predictions(sheet.panels[0, 0], search)
    _proofs(sheet.panels[0, 1], search)
    handles = [
        marks.style_handle("predicted by the compiler", color=_PREDICTED, marker="o"),
        marks.style_handle("measured", color=_OK, marker="s", linestyle="none"),
        marks.guide_handle(f"limit, {scaled(search.limit_bytes, 'B')}"),
    ]
    counts = f"{len(search.tried)} batches compiled, {len(search.proven)} run once each"
    remarks = ["✓: ran within the limit; ✗: did not", f"limit: {short(search.limit_source, 90)}. {counts}"]
    return sheet.finish(f"{run.experiment}: the largest batch that fits is {search.largest}", handles, remarks)


def _draw_predictions(axes: Axes, search: Search) -> None:
    axes.plot(*_compiled(search), color=_PREDICTED, marker="o", markersize=3, zorder=2)
    marks.unity(axes, at=search.limit_bytes, along="y")
    by_batch = sorted(search.proven, key=lambda proof: proof.batch)
    fitted, failed = ([proof for proof in by_batch if proof.ok is ok] for ok in (True, False))
    # The largest batch that fitted and the smallest that did not: the limit is between them.
    for proof in (*fitted[-1:], *failed[:1]):
        _verdict(axes, proof.batch, _predicted(search, proof), proof, aside=6)
    log_axis(axes, "x", base=2, show=plain)
    log_axis(axes, "y", show=bytes_tick, max_ticks=6, span=[search.limit_bytes])
    entitle(axes, "memory per device, predicted", x="global batch")


def _verdict(axes: Axes, x: float, y: float, proof: TriedBatch, *, aside: float = 0) -> None:
    """Writes ✓ or ✗ above the measurement; `aside` moves ✓ to the left and ✗ to the right."""
    sign, colour, side = ("✓", _OK, -aside) if proof.ok else ("✗", _FAIL, aside)
    marks.write(axes, x, y, sign, above=True, size=9, xytext=(side, 4), va="baseline", color=colour, weight="bold")


def _predicted(search: Search, proof: TriedBatch) -> float:
    """Predicted memory of a batch, interpolated if that batch was not compiled."""
    return float(np.interp(proof.batch, *_compiled(search))) if proof.peak_bytes is None else proof.peak_bytes


def _compiled(search: Search) -> tuple[list[int], list[float]]:
    """The batches that were compiled, ascending, and their predicted memory."""
    return [each.batch for each in search.tried], [each.peak_bytes for each in search.tried]


def _proofs(axes: Axes, search: Search) -> None:
    """Draws predicted and measured memory of each batch that was tried."""
    proofs = sorted(search.proven, key=lambda proof: proof.batch)
    for place, proof in enumerate(proofs):
        axes.plot([place], [_predicted(search, proof)], color=_PREDICTED, marker="o", linestyle="none", zorder=3)
        if proof.measured_bytes:
            axes.plot([place], [proof.measured_bytes], color=_OK, marker="s", linestyle="none", zorder=3)
        _verdict(axes, place, max(_predicted(search, proof), proof.measured_bytes or 0, search.limit_bytes), proof)
    marks.unity(axes, at=search.limit_bytes, along="y")
    axes.set_xticks(range(len(proofs)), [str(proof.batch) for proof in proofs])
    axes.set_xlim(-0.6, len(proofs) - 0.4)
    axes.grid(False, axis="x")
    low, high = axes.dataLim.y0, axes.dataLim.y1
    if math.isfinite(low) and high > low:
        # Not from 0, so that small differences between prediction and measurement show. Above is room for the verdicts.
        axes.set_ylim(low - 0.2 * (high - low), high + 0.35 * (high - low))
    axes.yaxis.set_major_formatter(lambda value, _: scaled(value, "B"))
    axes.locator_params(axis="y", nbins=5, steps=[1, 2, 5, 10])
    entitle(axes, "predicted and measured", x="batch that was run")
