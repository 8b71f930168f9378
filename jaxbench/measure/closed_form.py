# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checks a compiled step's communication: its collective counts against the strategy's expected communication.

The check compares *numbers*, not bytes. The compiler chooses the width of each number (XLA on a CPU sends 16 bits as
32, and on a TPU it sends the operands of products as bfloat16), but not how many numbers must travel.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import jax

from jaxbench.measure import needed
from jaxbench.measure.statistics_sent import Statistics
from jaxbench.parallel.layout import canonical_avals
from jaxbench.parallel.optimizer_need import unused_gradients
from jaxbench.parallel.program import Program
from jaxbench.records.schema import Collective, Passport, Verdict
from jaxbench.workloads.base import KEY, CollectiveBounds, PyTree, TrainWorkload

SUM, GATHER, SCATTER = "all-reduce", "all-gather", "reduce-scatter"
BORDER = 0.06  # share of scattered numbers that a TPU's compiler may send in addition; see `_as_sums`


@dataclass(frozen=True, kw_only=True)
class StepFacts:
    """What `verify` must know of a step in addition to its expected communication.

    devices: the size of the mesh. platform: the one that the step is compiled for. metrics: scalars that the step
    returns, including the loss. fewer: returns the least number of metrics that devices must sum (a metric that depends
    on no example need not be summed); called only when it matters. sums: the number of mesh axes that each metric is
    summed over, one after the other. sizes: of the axes with more than one device. statistics: batch statistics, which
    the step may also reduce. equal: returns how many numbers of the gradient equal other numbers of it, so that the
    compiler need not send them; called only when it matters. widest: bytes of the widest number that may travel.
    weights: additional scalars, by which weighted means are divided.
    """

    devices: int
    platform: str = "cpu"
    metrics: int = 1
    fewer: Callable[[], int] | None = None
    sums: int = 1
    sizes: tuple[int, ...] = ()
    statistics: Statistics = Statistics()
    equal: Callable[[], int] | None = None
    widest: int = 4
    weights: int = 0


def gradient_bytes(params: PyTree, devices: int) -> int:
    """The bytes that data parallelism must reduce: the gradient of each of these parameters once; 0 on one device."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(params)) if devices > 1 else 0


def judge(
    workload: TrainWorkload,
    program: Program,
    passport: Passport,
    global_batch: int,
    *,
    own: bool = True,
    proven: Callable[[], bool] = lambda: False,
    across: bool = False,
    devices: int | None = None,
) -> Verdict:
    """The verdict "collectives" on a compiled step, from the collective counts in its compile report.

    own: the model is one of the suite's own, for which excess communication is an error. proven: returns whether every
    single parameter was shown to be correct; called only when it matters. across: the loss compares examples without
    the suite's helpers, so it is unknown what it needs from other devices. devices: as in `of`.
    """
    bounds, step, single = of(workload, program, passport.metrics, global_batch, devices)
    verdict = verify(passport.collectives, bounds, step, single=single)
    if verdict.ok or own:
        return verdict
    return _excused(verdict, workload, proven=proven, across=across)


def _excused(verdict: Verdict, workload: TrainWorkload, *, proven: Callable[[], bool], across: bool) -> Verdict:
    """Excuses a step that sends more or less than expected if every parameter is correct: an excess costs only time."""
    if verdict.excess_bytes is None or not proven():
        return verdict
    if verdict.excess_bytes == 0:
        return dataclasses.replace(
            verdict, ok=True, reason=f"{verdict.reason}; every parameter is correct nevertheless"
        )
    params, _ = jax.eval_shape(workload.init, KEY)
    # The excess may be a single parameter that is sent twice: its name helps more than a number of bytes.
    path = needed.named(params, verdict.excess_bytes // 4)
    excess = f"{verdict.excess_bytes:,} excess bytes" + (f", the size of '{path}'" if path else "")
    if across:
        excess += ", as expected of a loss across examples"
    return dataclasses.replace(verdict, ok=True, reason=f"{verdict.reason}: {excess}")


def of(
    workload: TrainWorkload, program: Program, metrics: int, global_batch: int, devices: int | None = None
) -> tuple[CollectiveBounds, StepFacts, int]:
    """The arguments of `verify`: (the expected communication, the step's facts, the number of rank-0 parameters).

    devices: the number that the point asked for; None: the size of the mesh. A program on another number of devices
    must send what data parallelism over the requested devices sends, whatever its own expected communication says.
    """
    params, model_state = jax.eval_shape(workload.init, KEY)
    devices = devices or program.mesh.size
    if devices == 1:
        return {}, StepFacts(devices=1), 0
    if program.mesh.size != devices:
        program = dataclasses.replace(program, expected=None)
    step = StepFacts(
        devices=devices,
        platform=program.mesh.devices.flat[0].platform,
        metrics=metrics,
        weights=needed.weights(workload),
        fewer=partial(needed.scalars_of_examples, workload),
        sums=program.sums,
        sizes=tuple(size for size in program.mesh.shape.values() if size > 1),
        statistics=Statistics.of(workload, model_state),
        equal=partial(needed.equal_gradients, workload),
        widest=program.widest,
    )
    sent = workload.reduced(params)
    if workload.sent:
        bounds = data_parallel(sent)
    elif program.expected is None:
        bounds = _unused(data_parallel(params, unused_gradients(workload, canonical_avals(workload))), workload, params)
    else:
        bounds = _unused(program.expected(global_batch), workload, params)
    bounds = _gathered(bounds, workload, program, global_batch)
    return bounds, step, sum(not leaf.shape for leaf in jax.tree.leaves(sent))


def _unused(bounds: CollectiveBounds, workload: TrainWorkload, params: PyTree) -> CollectiveBounds:
    """Lowers the lower bounds by what unused parameters save.

    The gradient of an unused parameter need not be sent, although a program with explicit collectives may send zeros.
    The compiler does not gather an unused parameter either.
    """
    unused = jax.tree.map(lambda leaf, no: leaf.size if no else 0, params, needed.without_gradient(workload))
    # A parameter is gathered at most in the forward and in the backward pass of each micro-batch.
    most = 2 * workload.micro_batches * sum(jax.tree.leaves(unused))
    return {kind: (max(0, least - most), many) for kind, (least, many) in bounds.items()} if most else bounds


def _gathered(
    bounds: CollectiveBounds, workload: TrainWorkload, program: Program, global_batch: int
) -> CollectiveBounds:
    """Adds what a loss gathers from all examples: the features to every device, and the gradients back as a sum.

    A per-device program sends exactly this. In a program for the whole batch the compiler decides, and it may gather
    once more for the backward pass.
    """
    if program.parts == 1 or not (per_device := needed.gathered(workload, global_batch // program.parts)):
        return bounds
    everything, total = per_device * program.parts, dict(bounds)
    by_hand = program.keys is not None  # the loss sees one part of the batch and gathers explicitly
    gathers = 2 if program.disabled_passes or not by_hand else 1
    for kind, least, most in (
        (GATHER, by_hand * everything, gathers * everything),
        (SCATTER, 0, per_device),
        (SUM, 0, 0 if by_hand else 2 * everything),
    ):
        low, high = total.get(kind, (0, 0))
        total[kind] = low + least, high + most
    return total


def data_parallel(params: PyTree, unused: frozenset[int] = frozenset()) -> CollectiveBounds:
    """Expected communication of plain data parallelism: one all-reduce of every parameter's gradient, nothing else.

    unused: the indices of parameters for which the optimizer uses no gradient; their gradients may be left out.
    """
    sizes = [leaf.size for leaf in jax.tree.leaves(params)]
    return {SUM: (sum(size for i, size in enumerate(sizes) if i not in unused), sum(sizes))}


def verify(collectives: Iterable[Collective], bounds: CollectiveBounds, step: StepFacts, *, single: int = 0) -> Verdict:
    """The verdict "collectives". bounds: by kind, the fewest and most numbers in the results on one device.

    single: how many numbers in `bounds` are rank-0 parameters, which on a CPU are counted like metrics.
    """
    if step.devices == 1:  # the compiler may leave in a collective over one device, which sends nothing
        return Verdict(name="collectives", ok=True, reason="one device: nothing to communicate", value=0, limit=0)
    collectives = tuple(each for each in collectives if each.group != 1)  # a group of one device sends nothing
    by_kind = _by_kind(collectives)
    counted = {kind: _numbers(each, step) for kind, each in by_kind.items()}
    allowed = {kind: (float(least), float(most)) for kind, (least, most) in bounds.items()}
    least, most = allowed.get(SUM, (0.0, 0.0))
    if step.platform == "cpu":
        # XLA on a CPU keeps rank-0 arrays separate, so `_numbers` leaves out the metrics and these parameters too.
        least = max(0.0, least - single)
    else:
        least, most = least + _least_metrics(counted, least, step), most + (step.metrics + step.weights) * step.sums
    # Numbers packed in pairs fill whole tiles, and the program's text does not say how much of them is padding.
    padding = by_kind[SUM].packed if SUM in by_kind else 0
    allowed[SUM] = least, most + padding
    rewritten = ""
    if step.platform == "tpu":
        counted, allowed, rewritten = _as_sums(collectives, counted, allowed, step)
    allowed[SUM] = _with_statistics(counted.get(SUM, 0), *allowed[SUM], step)
    sent = _described(by_kind) + rewritten
    beyond = {kind: _beyond(counted.get(kind, 0), *allowed.get(kind, (0, 0))) for kind in {**counted, **allowed}}
    wrong = [
        f"{counted.get(kind, 0):,} numbers by {kind}, but {_range(*allowed.get(kind, (0, 0)))} are expected"
        for kind in sorted(beyond)
        if beyond[kind]
    ]
    # Numbers are counted as float32, whatever width the compiler chose.
    excess: int | None = 4 * int(sum(max(0, numbers) for numbers in beyond.values()))
    wide = next((kind for kind, each in by_kind.items() if _too_wide(each, step)), None)
    if wide and not wrong:
        wrong = [f"{by_kind[wide].bytes:,} bytes by {wide}, which is more than {8 * step.widest} bits per number"]
        excess = None
    reason = f"the compiled step sends {wrong[0] if wrong else f'{sent}, as expected'}"
    if wrong and rewritten:
        reason += f" ({sent})"
    value, limit = sum(counted.values()), _upper(allowed)
    return Verdict(name="collectives", ok=not wrong, reason=reason, value=value, limit=limit, excess_bytes=excess)


def _with_statistics(numbers: float, least: float, most: float, step: StepFacts) -> tuple[float, float]:
    """The bounds on what is summed, including the batch statistics.

    The statistics are summed a whole number of times: the number that fits `numbers`, or once if none fits. Equal
    gradients may be sent only once.
    """
    # `step.equal` traces the gradient, so it is called only if the numbers do not fit without it.
    for fewer in (lambda: 0, step.equal or (lambda: 0)):
        low = max(0.0, least - fewer())
        for extra, scalars in step.statistics.sums(step.platform):
            if low + extra <= numbers <= most + extra + scalars:
                return low + extra, most + extra + scalars
    return least + step.statistics.floats, most + step.statistics.floats


def _beyond(numbers: float, least: float, most: float) -> float:
    """How far the numbers exceed the upper bound; negative: how far they fall short of the lower bound."""
    return max(0.0, numbers - most) + min(0.0, numbers - least)


def _by_kind(collectives: Iterable[Collective]) -> dict[str, Collective]:
    """One entry for each kind, summed over mesh axes."""
    totals: dict[str, Collective] = {}
    for each in collectives:
        if each.kind in totals:
            old = totals[each.kind]
            summed = ("count", "bytes", "elements", "scalar_bytes", "scalars", "wire_bytes", "packed")
            both = {name: getattr(old, name) + getattr(each, name) for name in summed}
            each = dataclasses.replace(each, group=max(old.group, each.group), **both)
        totals[each.kind] = each
    return totals


def _numbers(each: Collective, step: StepFacts) -> int:
    """How many numbers travel.

    On a CPU the rank-0 values of an all-reduce do not count: they are the loss and metrics, which XLA keeps in separate
    arrays. On other platforms they may share an array with the gradients.
    """
    scalars = each.scalars or each.scalar_bytes // 4
    return each.elements + each.packed + (0 if each.kind == SUM and step.platform == "cpu" else scalars)


def _least_metrics(counted: dict[str, int], least: float, step: StepFacts) -> int:
    if not step.sums or step.fewer is None or counted.get(SUM, 0) >= least + step.metrics:
        return step.metrics if step.sums else 0  # enough are sent, so the costly `fewer` does not matter
    return min(step.metrics, step.fewer())


def _as_sums(
    collectives: tuple[Collective, ...],
    counted: dict[str, int],
    allowed: dict[str, tuple[float, float]],
    step: StepFacts,
) -> tuple[dict[str, int], dict[str, tuple[float, float]], str]:
    """(counted, allowed, a note) for a TPU, with all-reduce, all-gather and reduce-scatter compared together as whole
    arrays.

    XLA for a TPU rewrites small all-gathers and one-dimensional reduce-scatters as all-reduces: each device adds its
    part and zeros, or takes its part of the sum.
    """
    sizes = step.sizes or (step.devices,)
    scattered = sum(each.elements * each.group for each in collectives if each.kind == SCATTER)
    whole = {GATHER: (counted.get(GATHER, 0), 1, 1), SCATTER: (scattered, min(sizes), max(sizes))}
    counted, allowed = dict(counted), dict(allowed)
    # A part that does not fill a tile is scattered with the border of the next part, which a permutation then sends on.
    border = BORDER * max(sizes) * allowed.get(SCATTER, (0, 0))[1]
    rewritten = [kind for kind in (GATHER, SCATTER) if counted.get(kind, 0) < allowed.get(kind, (0, 0))[0]]
    for kind, (numbers, smallest, largest) in whole.items():
        least, most = allowed.get(kind, (0, 0))
        if counted.get(kind, 0) > most:
            continue  # more than allowed: reported as this kind
        counted[SUM] = counted.get(SUM, 0) + numbers
        allowed[SUM] = allowed[SUM][0] + smallest * least, allowed[SUM][1] + largest * most
        counted.pop(kind, None)
        allowed.pop(kind, None)
    if border and "collective-permute" not in allowed:
        allowed["collective-permute"] = (0, border)
    return counted, allowed, f"; the compiler wrote all-reduce for {' and '.join(rewritten)}" if rewritten else ""


def _too_wide(each: Collective, step: StepFacts) -> bool:
    scalars = each.scalars or each.scalar_bytes // 4
    return each.bytes - 4 * (scalars + (step.metrics + step.weights) * step.sums) > step.widest * each.elements


def _described(by_kind: dict[str, Collective]) -> str:
    parts = [
        f"{each.elements + each.scalars:,} numbers by {kind} ({each.bytes:,} bytes)" for kind, each in by_kind.items()
    ]
    return " and ".join(parts) or "nothing"


def _range(least: float, most: float) -> str:
    if least == most:
        return f"{least:,.0f}"
    return f"{least:,.0f} or more" if most == math.inf else f"{least:,.0f} to {most:,.0f}"


def _upper(allowed: dict[str, tuple[float, float]]) -> float | None:
    most = sum(most for _, most in allowed.values())
    return most if math.isfinite(most) else None
