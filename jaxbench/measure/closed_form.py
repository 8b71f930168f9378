# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether a compiled step communicates what its strategy must: the census against a closed form.

Compared are *numbers*, not bytes: how wide a number travels is the compiler's choice (XLA on a CPU sends 16 bits as 32,
on a TPU what goes into a product as bfloat16), how many must travel is not.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import jax

from jaxbench.measure import needed
from jaxbench.parallel.layout import canonical_avals
from jaxbench.parallel.optimizer_need import unused_gradients
from jaxbench.parallel.program import Program
from jaxbench.records.schema import Collective, Passport, Verdict
from jaxbench.workloads.base import KEY, CollectiveBounds, PyTree, TrainWorkload
from jaxbench.workloads.levers.freeze import stateful

SUM, GATHER, SCATTER = "all-reduce", "all-gather", "reduce-scatter"
BORDER = 0.06  # of what is scattered: what a TPU's compiler may send besides, see `_as_sums`


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is known of a step besides its closed form.

    devices: of its mesh. platform: what it is compiled for. metrics: scalars that it returns, the loss among them.
    fewer: how many of them must at least be summed over devices (one that depends on no example need not), asked only
    where it matters. sums: how often each is summed, over one axis of the mesh after the other. sizes: of the axes with
    more than one device. stateful: it may reduce batch statistics too. widest: bytes of the widest number that may
    travel. weights: scalars more, by which means are divided.
    """

    devices: int
    platform: str = "cpu"
    metrics: int = 1
    fewer: Callable[[], int] | None = None
    sums: int = 1
    sizes: tuple[int, ...] = ()
    stateful: bool = False
    widest: int = 4
    weights: int = 0


def gradient_bytes(params: PyTree, devices: int) -> int:
    """What data parallelism must reduce: every parameter's gradient once, on more than one device."""
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
) -> Verdict:
    """The verdict on a compiled step, by the census in its passport.

    own: of the suite's own models, for which more than the closed form is an error. proven: whether every single
    parameter was shown to be right, asked only where that matters. across: the loss looks across examples without a
    helper of ours, so that what it asks of other devices is not known.
    """
    form, step, single = of(workload, program, passport.metrics, global_batch)
    verdict = verify(passport.collectives, form, step, single=single)
    if verdict.ok or own:
        return verdict
    return _excused(verdict, workload, proven=proven, across=across)


def _excused(verdict: Verdict, workload: TrainWorkload, *, proven: Callable[[], bool], across: bool) -> Verdict:
    """More than the closed form costs time and makes nothing wrong; less may be right where every result is."""
    if verdict.excess_bytes is None or not proven():
        return verdict
    if verdict.excess_bytes == 0:
        return dataclasses.replace(verdict, ok=True, reason=f"{verdict.reason}; every parameter is right all the same")
    params, _ = jax.eval_shape(workload.init, KEY)
    path = needed.named(params, verdict.excess_bytes // 4)
    share = f"{verdict.excess_bytes:,} bytes are excess" + (f", as many as '{path}' has" if path else "")
    if across:
        share = f"{verdict.excess_bytes:,} bytes more, as a loss that looks across examples needs"
    return dataclasses.replace(verdict, ok=True, reason=f"{verdict.reason}: {share}")


def of(
    workload: TrainWorkload, program: Program, metrics: int, global_batch: int
) -> tuple[CollectiveBounds, Step, int]:
    """What `verify` is told of a step: its closed form, what else is known of it, its parameters of rank 0."""
    params, model_state = jax.eval_shape(workload.init, KEY)
    if program.mesh.size == 1:
        return {}, Step(devices=1), 0
    step = Step(
        devices=program.mesh.size,
        platform=program.mesh.devices.flat[0].platform,
        metrics=metrics,
        weights=needed.weights(workload),
        fewer=partial(needed.scalars_of_examples, workload),
        sums=program.sums,
        sizes=tuple(size for size in program.mesh.shape.values() if size > 1),
        stateful=stateful(model_state),
        widest=program.widest,
    )
    unused = unused_gradients(workload, canonical_avals(workload)) if program.expected is None else frozenset()
    form = data_parallel(params, unused) if program.expected is None else program.expected(global_batch)
    form = _gathered(_unused(form, workload, params), workload, program, global_batch)
    return form, step, sum(not leaf.shape for leaf in jax.tree.leaves(params))


def _unused(form: CollectiveBounds, workload: TrainWorkload, params: PyTree) -> CollectiveBounds:
    """A parameter that the loss does not use has no gradient to send. Where a program states its communication itself
    it may send zeros all the same; gathered parameters that are not used, the compiler leaves out."""
    unused = jax.tree.map(lambda leaf, no: leaf.size if no else 0, params, needed.without_gradient(workload))
    most = 2 * workload.micro_batches * sum(jax.tree.leaves(unused))
    return {kind: (max(0, least - most), many) for kind, (least, many) in form.items()} if most else form


def _gathered(form: CollectiveBounds, workload: TrainWorkload, program: Program, global_batch: int) -> CollectiveBounds:
    """What a loss gathers of all examples: their features to every device, the gradient of these back as a sum.

    A program written for one device does that as it stands. For one of the whole batch the compiler chooses, also to
    gather once more for the backward pass.
    """
    if program.parts == 1 or not (asked := needed.gathered(workload, global_batch // program.parts)):
        return form
    everything, more = asked * program.parts, dict(form)
    by_hand = program.keys is not None
    again = 2 if program.disabled_passes or not by_hand else 1
    for kind, least, most in (
        (GATHER, by_hand * everything, again * everything),
        (SCATTER, 0, asked),
        (SUM, 0, 0 if by_hand else 2 * everything),
    ):
        low, high = more.get(kind, (0, 0))
        more[kind] = low + least, high + most
    return more


def data_parallel(params: PyTree, unused: frozenset[int] = frozenset()) -> CollectiveBounds:
    """The closed form of plain data parallelism: every parameter's gradient in one all-reduce, and nothing else.

    unused: the parameters, by place, of whose gradients the optimizer makes nothing: those may be left out.
    """
    sizes = [leaf.size for leaf in jax.tree.leaves(params)]
    return {SUM: (sum(size for place, size in enumerate(sizes) if place not in unused), sum(sizes))}


def verify(collectives: Iterable[Collective], form: CollectiveBounds, step: Step, *, single: int = 0) -> Verdict:
    """The verdict "collectives". form: the least and most numbers in the results of each kind on one device.

    single: how many of the numbers in `form` are parameters of rank 0, which a census on a CPU cannot tell from a loss.
    """
    if step.devices == 1:  # a collective among one, if the compiler left one in, moves nothing
        return Verdict(name="collectives", ok=True, reason="one device: nothing to communicate", value=0, limit=0)
    collectives = tuple(collectives)
    found = _by_kind(collectives)
    counted = {kind: _numbers(each, step) for kind, each in found.items()}
    allowed = {kind: (float(least), float(most)) for kind, (least, most) in form.items()}
    least, most = allowed.get(SUM, (0.0, 0.0))
    if step.platform == "cpu":
        least = max(0.0, least - single)
    else:
        least, most = least + _least_metrics(counted, least, step), most + (step.metrics + step.weights) * step.sums
    # What lies two in one lies in whole tiles, and how much of those is filling the text does not tell.
    filling = found[SUM].packed if SUM in found else 0
    allowed[SUM] = least, math.inf if step.stateful else most + filling
    written = ""
    if step.platform == "tpu":
        counted, allowed, written = _as_sums(collectives, counted, allowed, step)
    said = _said(found) + written
    beyond = {kind: _beyond(counted.get(kind, 0), *allowed.get(kind, (0, 0))) for kind in {**counted, **allowed}}
    wrong = [
        f"{counted.get(kind, 0):,} numbers by {kind} where the closed form is {_range(*allowed.get(kind, (0, 0)))}"
        for kind in sorted(beyond)
        if beyond[kind]
    ]
    excess: int | None = 4 * int(sum(max(0, numbers) for numbers in beyond.values()))
    wide = next((kind for kind, each in found.items() if _too_wide(each, step)), None)
    if wide and not wrong:
        wrong = [f"{found[wide].bytes:,} bytes by {wide} in more than {8 * step.widest} bits a number"]
        excess = None
    reason = f"the compiled step moves {wrong[0]}" if wrong else f"the compiled step moves {said}: the closed form"
    if wrong and written:
        reason += f" ({said})"
    value, limit = sum(counted.values()), _most(allowed)
    return Verdict(name="collectives", ok=not wrong, reason=reason, value=value, limit=limit, excess_bytes=excess)


def _beyond(numbers: float, least: float, most: float) -> float:
    """How many more than the most, or, negative, how many fewer than the least."""
    return max(0.0, numbers - most) + min(0.0, numbers - least)


def _by_kind(collectives: Iterable[Collective]) -> dict[str, Collective]:
    """One entry for each kind, over whichever axes."""
    found: dict[str, Collective] = {}
    for each in collectives:
        if each.kind in found:
            old = found[each.kind]
            summed = ("count", "bytes", "elements", "scalar_bytes", "scalars", "wire_bytes", "packed")
            more = {name: getattr(old, name) + getattr(each, name) for name in summed}
            each = dataclasses.replace(each, group=max(old.group, each.group), **more)
        found[each.kind] = each
    return found


def _numbers(each: Collective, step: Step) -> int:
    """How many numbers travel. On a CPU rank-0 values of an all-reduce are left out: they are the loss and metrics, and
    XLA keeps them apart. Elsewhere they may lie in one array with the gradients."""
    scalars = each.scalars or each.scalar_bytes // 4
    return each.elements + each.packed + (0 if each.kind == SUM and step.platform == "cpu" else scalars)


def _least_metrics(counted: dict[str, int], least: float, step: Step) -> int:
    if not step.sums or step.fewer is None or counted.get(SUM, 0) >= least + step.metrics:
        return step.metrics if step.sums else 0
    return min(step.metrics, step.fewer())


def _as_sums(
    collectives: tuple[Collective, ...],
    counted: dict[str, int],
    allowed: dict[str, tuple[float, float]],
    step: Step,
) -> tuple[dict[str, int], dict[str, tuple[float, float]], str]:
    """XLA for a TPU writes small gathers, and scatters of one dimension, as all-reduces: each device puts in its part
    and zeros, or takes its part of the sum. So the three kinds are compared together, as whole arrays."""
    sizes = step.sizes or (step.devices,)
    scattered = sum(each.elements * each.group for each in collectives if each.kind == SCATTER)
    whole = {GATHER: (counted.get(GATHER, 0), 1, 1), SCATTER: (scattered, min(sizes), max(sizes))}
    counted, allowed = dict(counted), dict(allowed)
    # Parts that do not fill a tile are scattered with the border of the next, which is then sent on.
    border = BORDER * max(sizes) * allowed.get(SCATTER, (0, 0))[1]
    written = [kind for kind in (GATHER, SCATTER) if counted.get(kind, 0) < allowed.get(kind, (0, 0))[0]]
    for kind, (numbers, smallest, largest) in whole.items():
        least, most = allowed.get(kind, (0, 0))
        if counted.get(kind, 0) > most:
            continue  # more of it than can be right: said as it is
        counted[SUM] = counted.get(SUM, 0) + numbers
        allowed[SUM] = allowed[SUM][0] + smallest * least, allowed[SUM][1] + largest * most
        counted.pop(kind, None)
        allowed.pop(kind, None)
    if border and "collective-permute" not in allowed:
        allowed["collective-permute"] = (0, border)
    return counted, allowed, f"; the compiler wrote all-reduce for {' and '.join(written)}" if written else ""


def _too_wide(each: Collective, step: Step) -> bool:
    scalars = each.scalars or each.scalar_bytes // 4
    return each.bytes - 4 * (scalars + (step.metrics + step.weights) * step.sums) > step.widest * each.elements


def _said(found: dict[str, Collective]) -> str:
    parts = [
        f"{each.elements + each.scalars:,} numbers by {kind} ({each.bytes:,} bytes)" for kind, each in found.items()
    ]
    return " and ".join(parts) or "nothing"


def _range(least: float, most: float) -> str:
    if least == most:
        return f"{least:,.0f}"
    return f"{least:,.0f} or more" if most == math.inf else f"{least:,.0f} to {most:,.0f}"


def _most(allowed: dict[str, tuple[float, float]]) -> float | None:
    most = sum(most for _, most in allowed.values())
    return most if math.isfinite(most) else None
