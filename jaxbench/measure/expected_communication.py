# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checks a compiled step's communication: its collective counts against the strategy's expected communication.

The check compares *numbers*, not bytes. The compiler chooses the width of each number (XLA on a CPU sends 16 bits as
32, and on a TPU it sends the operands of products as bfloat16), but not how many numbers must travel. The jaxpr of the
loss says which gradients, scalars and examples must travel.

`judge` is the way in. `bounds_of` collects what may travel, `verify` compares, and the functions at the end read it
from jaxprs. Bounds are wide where a compiler has a choice: XLA for the CPU, for GPUs and for TPUs choose differently.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jax.extend import core

from jaxbench.core import weighted
from jaxbench.core.program import Program
from jaxbench.core.schema import Collective, CompileReport, Verdict
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import KEY, Batch, CollectiveBounds, Mean, Scalars, TrainWorkload
from jaxbench.hlo import collective_counts
from jaxbench.parallel.layout import canonical_avals
from jaxbench.parallel.optimizer import unused_gradients
from jaxbench.workloads import sharding_context
from jaxbench.workloads.adapters.pure import zeros
from jaxbench.workloads.jaxprs import equations, numbered, reached
from jaxbench.workloads.levers import not_frozen
from jaxbench.workloads.rng_keys import PARTS

SUM, GATHER, SCATTER = "all-reduce", "all-gather", "reduce-scatter"
BORDER = 0.06  # share of scattered numbers that a TPU's compiler may send in addition; see `_as_sums`


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The counts of the numbers in a model's state, such as batch statistics, which a step may sum over devices.

    floats: floating-point numbers. integers: whole numbers, which a program with explicit collectives reduces once.
    scalars: values of rank 0. repeats: how often the floats are summed at most.
    """

    floats: int = 0
    integers: int = 0
    scalars: int = 0
    repeats: int = 1

    @classmethod
    def of(cls, workload: TrainWorkload, model_state: ArrayTree) -> Statistics:
        """Counts the state of a workload.

        Statistics of each device's own examples are summed once, those of the whole batch in each pass.
        """
        leaves = jax.tree.leaves(not_frozen(model_state))
        floats = sum(leaf.size for leaf in leaves if leaf.ndim and jnp.issubdtype(leaf.dtype, jnp.inexact))
        return cls(
            floats=floats,
            integers=sum(leaf.size for leaf in leaves if leaf.ndim) - floats,
            scalars=sum(not leaf.ndim for leaf in leaves),
            # Forward, backward and a repeated forward pass of each micro-batch, and the state.
            repeats=1 if workload.independent else 1 + 3 * workload.micro_batches,
        )

    def sums(self, platform: str) -> Iterator[tuple[int, int]]:
        """(numbers, at most how many of them are scalars) of each possible sum. On a CPU scalars are not counted."""
        for repeats in range(self.repeats + 1):
            scalars = 0 if platform == "cpu" else self.scalars * max(1, repeats)
            for integers in {0, self.integers}:
                yield repeats * self.floats + integers, scalars


@dataclass(frozen=True, kw_only=True)
class StepFacts:
    """What `verify` must know of a step in addition to its expected communication.

    Attributes:
      devices: the size of the mesh. platform: the one that the step is compiled for.
      metrics: scalars that the step returns, including the loss. weights: further scalars, which divide weighted means.
      least_metrics: returns how many metrics devices must sum: those that depend on examples.
      sums: the number of mesh axes that each metric is summed over, one all-reduce after the other.
      sizes: of the axes with more than one device.
      statistics: batch statistics, which the step may also reduce.
      repeated: returns how many numbers of the gradient repeat other numbers of it. The compiler need not send those.
      widest: bytes of the widest number that may travel.
      divided: numbers that the devices of each TPU slice divide among them before slices sum their parts.

    The two functions trace the loss, so `verify` calls them only when they matter.
    """

    devices: int
    platform: str = "cpu"
    metrics: int = 1
    least_metrics: Callable[[], int] | None = None
    sums: int = 1
    sizes: tuple[int, ...] = ()
    statistics: Statistics = Statistics()
    repeated: Callable[[], int] | None = None
    widest: int = 4
    weights: int = 0
    divided: int = 0


def gradient_bytes(params: ArrayTree, devices: int) -> int:
    """The bytes that data parallelism must reduce: the gradient of each of these parameters once; 0 on one device."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(params)) if devices > 1 else 0


def judge(
    workload: TrainWorkload,
    program: Program,
    report: CompileReport,
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
    the suite's helpers, so it is unknown what it needs from other devices. devices: as in `bounds_of`.
    """
    bounds, step, rank_0 = bounds_of(workload, program, report.metrics, global_batch, devices)
    step = dataclasses.replace(step, divided=collective_counts.divided(report.collectives))
    verdict = verify(collective_counts.flat(report.collectives), bounds, step, rank_0=rank_0)
    if verdict.ok or own or verdict.excess_bytes is None or not proven():
        return verdict
    # A step that sends more or less than expected is excused if every parameter is correct: an excess costs only time.
    excess = "; every parameter is correct nevertheless"
    if verdict.excess_bytes:
        leaves = jax.tree.leaves_with_path(jax.eval_shape(workload.init, KEY)[0])
        paths = [path for path, leaf in leaves if 0 < leaf.size == verdict.excess_bytes // 4]
        excess = f": {verdict.excess_bytes:,} excess bytes"
        if len(paths) == 1:
            excess += f", the size of '{jax.tree_util.keystr(paths[0], simple=True, separator='/')}'"
        if across:
            excess += ", as expected of a loss across examples"
    return dataclasses.replace(verdict, ok=True, reason=verdict.reason + excess)


def bounds_of(
    workload: TrainWorkload, program: Program, metrics: int, global_batch: int, devices: int | None = None
) -> tuple[CollectiveBounds, StepFacts, int]:
    """The arguments of `verify`: (the expected communication, the step's facts, the number of rank-0 parameters).

    devices: the number that the point asked for; None: the size of the mesh. A program with another mesh size ignored
    that number. It is judged as data parallelism over the requested devices, whatever it expects itself.
    """
    params, model_state = jax.eval_shape(workload.init, KEY)
    devices = devices or program.mesh.size
    if devices == 1:
        return {}, StepFacts(devices=1), 0
    if program.mesh.size != devices:
        program = dataclasses.replace(program, expected=None)
    reduced = workload.reduced(params)
    step = StepFacts(
        devices=devices,
        platform=program.mesh.devices.flat[0].platform,
        metrics=metrics,
        weights=weights(workload),
        least_metrics=partial(scalars_of_examples, workload),
        sums=program.sums,
        widest=program.widest,
        sizes=tuple(size for size in program.mesh.shape.values() if size > 1),
        statistics=Statistics.of(workload, model_state),
        repeated=partial(equal_gradients, workload),
    )
    if workload.sent:
        bounds = data_parallel(reduced)
    elif program.expected is None:
        bounds = _unused(data_parallel(params, unused_gradients(workload, canonical_avals(workload))), workload)
    else:
        bounds = _unused(program.expected(global_batch), workload)
    bounds = _gathered(bounds, workload, program, global_batch)
    return bounds, step, sum(not leaf.shape for leaf in jax.tree.leaves(reduced))


def _unused(bounds: CollectiveBounds, workload: TrainWorkload) -> CollectiveBounds:
    """Lowers the lower bounds by what unused parameters save.

    The gradient of an unused parameter need not be sent, although a program with explicit collectives may send zeros.
    The compiler does not gather an unused parameter either.
    """
    # A parameter is gathered at most in the forward and in the backward pass of each micro-batch.
    unused = 2 * workload.micro_batches * without_gradient(workload)
    return {kind: (max(0, least - unused), most) for kind, (least, most) in bounds.items()} if unused else bounds


def _gathered(
    bounds: CollectiveBounds, workload: TrainWorkload, program: Program, global_batch: int
) -> CollectiveBounds:
    """Adds what a loss gathers from all examples: the features to every device, and the gradients back as a sum.

    A per-device program sends exactly this. In a program for the whole batch the compiler decides, and it may gather
    once more for the backward pass.
    """
    if program.parts == 1 or not (per_device := gathered(workload, global_batch // program.parts)):
        return bounds
    all_devices, total = per_device * program.parts, dict(bounds)
    explicit = program.keys is not None  # the loss sees one part of the batch and gathers explicitly
    gathers = 2 if program.disabled_passes or not explicit else 1
    for kind, least, most in (
        (GATHER, explicit * all_devices, gathers * all_devices),
        (SCATTER, 0, per_device),
        (SUM, 0, 0 if explicit else 2 * all_devices),
    ):
        low, high = total.get(kind, (0, 0))
        total[kind] = low + least, high + most
    return total


def data_parallel(params: ArrayTree, unused: frozenset[int] = frozenset()) -> CollectiveBounds:
    """Expected communication of plain data parallelism: one all-reduce of every parameter's gradient, nothing else.

    unused: the indices of parameters for which the optimizer uses no gradient; their gradients may be left out.
    """
    sizes = [leaf.size for leaf in jax.tree.leaves(params)]
    return {SUM: (sum(size for i, size in enumerate(sizes) if i not in unused), sum(sizes))}


def verify(collectives: Iterable[Collective], bounds: CollectiveBounds, step: StepFacts, *, rank_0: int = 0) -> Verdict:
    """The verdict "collectives". bounds: by kind, the fewest and most numbers in the results on one device.

    rank_0: how many numbers in `bounds` are rank-0 parameters, which on a CPU are counted like metrics.
    """
    if step.devices == 1:  # the compiler may leave in a collective over one device, which sends nothing
        return Verdict(name="collectives", ok=True, reason="one device: nothing to communicate", value=0, limit=0)
    collectives = tuple(c for c in collectives if c.group != 1)  # a group of one device sends nothing
    by_kind = _by_kind(collectives)
    counted = {kind: _numbers(collective, step) for kind, collective in by_kind.items()}
    allowed = {kind: (float(least), float(most)) for kind, (least, most) in bounds.items()}
    least, most = allowed.get(SUM, (0.0, 0.0))
    if step.platform == "cpu":
        # XLA on a CPU keeps rank-0 arrays separate, so `_numbers` leaves out the metrics and these parameters too.
        least = max(0.0, least - rank_0)
    else:
        metrics = step.metrics if step.sums else 0
        # A metric that is the same on all devices need not be summed. To know which are, the loss must be traced.
        if metrics and step.least_metrics is not None and counted.get(SUM, 0) < least + metrics:
            metrics = min(metrics, step.least_metrics())
        least, most = least + metrics, most + (step.metrics + step.weights) * step.sums
    # Numbers packed in pairs fill whole tiles, and the program's text does not say how much of them is padding.
    padding = by_kind[SUM].packed if SUM in by_kind else 0
    allowed[SUM] = least, most + padding
    rewritten = ""
    if step.platform == "tpu":
        counted, allowed, rewritten = _as_sums(collectives, counted, allowed, step)
    allowed[SUM] = _with_statistics(counted.get(SUM, 0), *allowed[SUM], step)
    listed = [f"{c.elements + c.packed + c.scalars:,} numbers by {k} ({c.bytes:,} bytes)" for k, c in by_kind.items()]
    sent, faults, excess = (" and ".join(listed) or "nothing") + rewritten, [], 0.0
    for kind in sorted({**counted, **allowed}):
        numbers, (least, most) = counted.get(kind, 0), allowed.get(kind, (0, 0))
        if not least <= numbers <= most:
            faults.append(f"{numbers:,} numbers by {kind}, but {_range(least, most)} are expected")
            excess += max(0.0, numbers - most)
    excess_bytes: int | None = 4 * int(excess)  # as float32, whatever width the compiler chose
    too_wide = next((kind for kind, collective in by_kind.items() if _too_wide(collective, step)), None)
    if too_wide and not faults:
        faults = [
            f"{by_kind[too_wide].bytes:,} bytes by {too_wide}, which is more than {8 * step.widest} bits per number"
        ]
        excess_bytes = None
    reason = f"the compiled step sends {faults[0] if faults else f'{sent}, as expected'}"
    if faults and rewritten:
        reason += f" ({sent})"
    value, upper = sum(counted.values()), sum(most for _, most in allowed.values())
    limit = upper if math.isfinite(upper) else None
    return Verdict(
        name="collectives", ok=not faults, reason=reason, value=value, limit=limit, excess_bytes=excess_bytes
    )


def _with_statistics(numbers: float, least: float, most: float, step: StepFacts) -> tuple[float, float]:
    """The bounds on what is summed, including the batch statistics.

    The statistics are summed a whole number of times: the number that fits `numbers`, or once if none fits. Equal
    gradients may be sent only once.
    """
    # `step.repeated` traces the gradient, so it is called only if the numbers do not fit without it.
    for left_out in (lambda: 0, step.repeated or (lambda: 0)):
        low = max(0.0, least - left_out())
        for extra, scalars in step.statistics.sums(step.platform):
            if low + extra <= numbers <= most + extra + scalars:
                return low + extra, most + extra + scalars
    return least + step.statistics.floats, most + step.statistics.floats


def _by_kind(collectives: Iterable[Collective]) -> dict[str, Collective]:
    """One entry for each kind, summed over mesh axes."""
    totals: dict[str, Collective] = {}
    for collective in collectives:
        if total := totals.get(collective.kind):
            summed = ("count", "bytes", "elements", "scalar_bytes", "scalars", "wire_bytes", "packed")
            sums = {name: getattr(total, name) + getattr(collective, name) for name in summed}
            collective = dataclasses.replace(collective, group=max(total.group, collective.group), **sums)
        totals[collective.kind] = collective
    return totals


def _numbers(collective: Collective, step: StepFacts) -> int:
    """How many numbers travel.

    On a CPU the rank-0 values of an all-reduce do not count: they are the loss and metrics, which XLA keeps in separate
    arrays. On other platforms they may share an array with the gradients.
    """
    scalars = 0 if collective.kind == SUM and step.platform == "cpu" else _scalars(collective)
    return collective.elements + collective.packed + scalars


def _scalars(collective: Collective) -> int:
    """How many rank-0 values a collective sends."""
    return collective.scalars or collective.scalar_bytes // 4  # older records have only the bytes, of float32 values


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
    scattered = sum(c.elements * c.group for c in collectives if c.kind == SCATTER)
    # By kind: the numbers of the whole arrays, and the least and greatest ratio of a whole array to a device's result.
    whole_arrays = {GATHER: (counted.get(GATHER, 0), 1, 1), SCATTER: (scattered, min(sizes), max(sizes))}
    counted, allowed = dict(counted), dict(allowed)
    # A part that does not fill a tile is scattered with the border of the next part, which a permutation then sends on.
    border = BORDER * max(sizes) * allowed.get(SCATTER, (0, 0))[1]
    rewritten = [kind for kind in (GATHER, SCATTER) if counted.get(kind, 0) < allowed.get(kind, (0, 0))[0]]
    for kind, (numbers, smallest, largest) in whole_arrays.items():
        least, most = allowed.get(kind, (0, 0))
        if counted.get(kind, 0) > most:
            continue  # more than allowed: reported as this kind
        counted[SUM] = counted.get(SUM, 0) + numbers
        allowed[SUM] = allowed[SUM][0] + smallest * least, allowed[SUM][1] + largest * most
        counted.pop(kind, None)
        allowed.pop(kind, None)
    least, most = allowed.get("collective-permute", (0, 0))
    if border := BORDER * step.divided + (border if not most else 0):
        allowed["collective-permute"] = (least, most + border)
    return counted, allowed, f"; the compiler wrote all-reduce for {' and '.join(rewritten)}" if rewritten else ""


def _too_wide(collective: Collective, step: StepFacts) -> bool:
    """Whether a collective has more bytes than its numbers may have. Metrics and weights are always float32."""
    scalars = _scalars(collective) + (step.metrics + step.weights) * step.sums
    return collective.bytes - 4 * scalars > step.widest * collective.elements


def _range(least: float, most: float) -> str:
    """A range of counts for people."""
    if least == most:
        return f"{least:,.0f}"
    return f"{least:,.0f} or more" if most == math.inf else f"{least:,.0f} to {most:,.0f}"


def uses_key(workload: TrainWorkload) -> bool:
    """Whether the loss, or anything else that the loss function returns, depends on its random key."""
    params, model_state = jax.eval_shape(workload.init, KEY)
    traced = jax.make_jaxpr(lambda key, params, model_state, batch: workload.loss(params, model_state, batch, key))
    jaxpr = traced(KEY, params, model_state, workload.batch_avals(workload.traceable(2))).jaxpr
    return any(reached(jaxpr, jaxpr.invars[:1]))


def _examples_reach(
    workload: TrainWorkload, function: Callable[..., object]
) -> tuple[core.Jaxpr, list[bool], list[jax.ShapeDtypeStruct]]:
    """(the jaxpr of a function; whether each of its results depends on the examples; the shapes of the parameters).

    function: takes what a loss takes.
    """
    params, model_state = jax.eval_shape(workload.init, KEY)
    batch = workload.batch_avals(workload.traceable(2))
    traced = jax.make_jaxpr(lambda batch, params, key: function(params, zeros(model_state), batch, key))
    jaxpr = traced(batch, params, KEY).jaxpr
    return jaxpr, reached(jaxpr, jaxpr.invars[: len(jax.tree.leaves(batch))]), jax.tree.leaves(params)


def _gradient(workload: TrainWorkload) -> Callable[..., ArrayTree]:
    """The gradient of the mean loss alone."""
    return lambda *args: jax.grad(workload.mean_loss, has_aux=True)(*args)[0]


def without_gradient(workload: TrainWorkload) -> int:
    """The number of elements of parameters that no example's loss depends on.

    Their gradient is the same on all devices, and zero unless the loss has a term of parameters alone.
    """
    _, reaches, params = _examples_reach(workload, _gradient(workload))
    return sum(param.size for param, is_reached in zip(params, reaches, strict=True) if not is_reached)


def equal_gradients(workload: TrainWorkload) -> int:
    """The number of gradient elements that repeat another gradient. A compiler may reduce both as one.

    Example: the results of two normalizations are added, so the gradients of their biases are equal.
    """
    jaxpr, _, params = _examples_reach(workload, _gradient(workload))
    keys = numbered(jaxpr)  # equal keys for results that are computed in the same way
    first = {key: i for i, key in reversed([*enumerate(keys)])}  # reversed: the first of equal keys is kept
    return sum(params[i].size for i, key in enumerate(keys) if first[key] != i)


def scalars_of_examples(workload: TrainWorkload) -> int:
    """The number of a loss's scalars that differ between devices with different examples.

    The compiler may see that the others, such as constants, need not be summed.
    """

    def scalars(params: ArrayTree, model_state: ArrayTree, batch: Batch, key: jax.Array) -> Scalars:
        loss, (_, metrics) = workload.mean_loss(params, model_state, batch, key)
        return {"loss": loss, **metrics}

    jaxpr, reaches, _ = _examples_reach(workload, scalars)
    # By variable: a loss that is also returned as a metric is summed once.
    return len({id(out) for out, is_reached in zip(jaxpr.outvars, reaches, strict=True) if is_reached})


def weights(workload: TrainWorkload) -> int:
    """The number of weighted means that a loss returns; the weight of each travels too."""
    params, model_state = jax.eval_shape(workload.init, KEY)
    batch = workload.batch_avals(workload.traceable(2))
    loss, (_, metrics) = jax.eval_shape(workload.loss, params, model_state, batch, KEY)
    return sum(map(weighted.is_weighted, (loss, *metrics.values())))


def gathered(workload: TrainWorkload, examples_given: int) -> int:
    """The number of elements that a loss gathers from a device with `examples_given` examples."""
    traced = workload.traceable(examples_given)
    with sharding_context.recorded_sizes() as sizes:
        _loss_of_part(workload, traced)
    return sum(sizes) * examples_given // traced


def asks_others(workload: TrainWorkload) -> bool:
    """Whether the loss of one part of the batch communicates with the other parts."""
    return any(PARTS in str(equation.params) for equation in equations(_loss_of_part(workload, workload.traceable(2))))


def _loss_of_part(workload: TrainWorkload, examples_given: int) -> core.Jaxpr:
    """The jaxpr of the loss when other devices hold other parts of the batch."""
    params, model_state = jax.eval_shape(workload.init, KEY)

    def loss(params: ArrayTree, batch: Batch, key: jax.Array) -> Mean:
        with sharding_context.over(axis=PARTS):
            return workload.loss(params, zeros(model_state), batch, key)[0]

    batch = workload.batch_avals(examples_given)
    return jax.make_jaxpr(loss, axis_env=[(PARTS, 2)])(params, batch, KEY).jaxpr
