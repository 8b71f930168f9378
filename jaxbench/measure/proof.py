# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checks that a compiled point computes and communicates what it must. Every record of a point has the verdicts."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from jaxbench import parallel
from jaxbench.core.point import Point
from jaxbench.core.program import Call, Program, TrainState
from jaxbench.core.schema import Verdict
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import KEY, Batch, TrainWorkload
from jaxbench.errors import Unsupported, UserError, present
from jaxbench.levers import MESH, PART
from jaxbench.machine.mesh import on_host
from jaxbench.measure import check, expected_communication, loss_kind, memory, rounding
from jaxbench.measure import reference as references
from jaxbench.measure.arm import Arms
from jaxbench.measure.compile_report import CompiledStep
from jaxbench.measure.loss_kind import (
    ACROSS,
    BACKWARD,
    CONSTANT,
    FIXED,
    HIDDEN,
    MEAN,
    PARTLY,
    SUM,
    UNEVEN,
    WEIGHTED,
    LossKind,
)
from jaxbench.parallel import axes, multihost
from jaxbench.parallel.step import jit_once
from jaxbench.processes.group import ProcessGroup, members_of
from jaxbench.workloads import inspection
from jaxbench.workloads.levers import stateful

MOST_RUNS = 5  # of consecutive examples that a message lists
MAX_CPU_FLOPS = 1e12  # FLOPs of a step; a larger unoptimized program would delay the run


@dataclasses.dataclass
class Draws:
    """Draws synthetic examples: (key, number) -> batch, by one compiled function for each number.

    For accelerators, and for several processes, the host draws them: inside the context of a mesh each device, or each
    process, would hold all of them.
    """

    compiled: Callable[[jax.Array, int], Batch]
    devices: list[jax.Device]

    @classmethod
    def of(cls, plain: TrainWorkload, devices: list[jax.Device]) -> Draws:
        def draw(key: jax.Array, examples: int) -> Batch:
            return plain.synthetic(jax.random.fold_in(key, 2), examples)  # `create_state` folds in 0 and 1

        return cls(jit_once(draw, static_argnums=1), devices)

    def __call__(self, key: jax.Array, examples: int) -> Batch:
        if self.devices[0].platform == "cpu" and ProcessGroup.of(self.devices).alone:
            return self.compiled(key, examples)
        with on_host():
            return jax.device_get(self.compiled(key, examples))


class Proof:
    """Judges the points of one experiment.

    own: the experiment is one of the suite's, which must not communicate more than necessary. keep: keep the references
    (results of one device) of all points, not only of the newest one, if memory allows. batch: the number of examples
    of the config, with which the kind of the loss is found if that can be afforded.
    """

    def __init__(
        self,
        arms: Arms,
        plain: TrainWorkload,
        devices: list[jax.Device],
        key: jax.Array,
        *,
        own: bool,
        keep: bool = False,
        batch: int = loss_kind.EXAMPLES,
    ):
        self.arms, self.plain, self.devices, self.key, self.own, self.keep = arms, plain, devices, key, own, keep
        self.batch, self.device = batch, multihost.first_here(devices)
        self._references: dict[tuple[object, ...], references.Reference] = {}  # by everything that changes the result
        self._timed: dict[tuple[object, ...], references.Reference] = {}  # of all points, without their arrays
        # By identity: `Arms` makes each workload once, and its functions have no other equality.
        self._makers: dict[int, references.StateMaker] = {}
        self._starts: dict[int, TrainState] = {}
        self.draw = Draws.of(plain, devices)
        self._parts: dict[str, check.ExpectedPart] = {}  # by point

    @functools.cached_property
    def loss_kind(self) -> LossKind:
        """The kind of the experiment's loss, which no lever changes. Raises UserError for a loss that is not a mean."""
        # It is not determined on absent devices, for a model that does not fit one device, or if that takes minutes on
        # a CPU. Then only the results show whether a strategy computes the loss incorrectly.
        platform = self.device.platform
        examples = loss_kind.affordable(self.plain, self.batch, platform)
        slow = platform == "cpu" and loss_kind.flops(self.plain, examples) > MAX_CPU_FLOPS
        if slow or self.device not in jax.devices():
            return LossKind(name=loss_kind.UNTRIED)
        try:
            shared = loss_kind.Shared(self.maker(self.plain), self.draw, self.batch)
            kind = loss_kind.find(self.plain, device=self.device, shared=shared, examples=examples)
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            return LossKind(name=loss_kind.UNTRIED)
        require_loss(self.plain, kind)
        return kind

    def take(self, label: str) -> None:
        """Adopts the kind of the loss, by its `label`, from another process that has accepted it."""
        self.loss_kind = LossKind.of(label)

    @property
    def unread(self) -> tuple[str, ...]:
        """The fields of an example that change neither the loss nor its gradient; () if that is unknown."""
        return self.loss_kind.unread

    @functools.cached_property
    def uses_key(self) -> bool:
        """Whether the loss uses its key."""
        return expected_communication.uses_key(self.plain)

    def start(self, workload: TrainWorkload) -> TrainState:
        """The canonical state (host arrays) before the first update, made once."""
        self._starts[id(workload)] = state = self._initial(workload)
        return state

    def maker(self, workload: TrainWorkload) -> references.StateMaker:
        """The compiled function that makes the model's first state, compiled once."""
        if id(workload) not in self._makers:
            self._makers[id(workload)] = references.state_maker(workload)
        return self._makers[id(workload)]

    def _initial(self, workload: TrainWorkload) -> TrainState:
        """The model's first state: kept, or made again."""
        if id(workload) in self._starts:
            return self._starts[id(workload)]
        make = self.maker(workload)
        return references.initial_state(workload, self.key, device=self.device, make=make)

    def verdicts(
        self, point: Point, grown: int, program: Program, compiled: CompiledStep, batch: Batch
    ) -> tuple[Verdict, ...]:
        """The verdicts on a compiled point before its first round."""
        inputs, asked = present(compiled.inputs), self.devices[: point.devices]
        parts = axes.batch_parts(parallel.mesh_sizes(point.strategy, point.devices, MESH.of(point.levers)))
        return (
            *self._results(point, grown, program, compiled, batch),
            check.judge_host_calls(compiled.host_calls),
            check.judge_devices(asked, parts, *inputs, compiled.report.collectives),
            check.judge_inputs(batch),
        )

    def _results(
        self, point: Point, grown: int, program: Program, compiled: CompiledStep, batch: Batch
    ) -> tuple[Verdict, ...]:
        """The verdicts on the results and on the communication of a whole step."""
        part, report = PART.of(point.levers), compiled.report
        workload, layout, about = self._about(point, grown, program, batch)
        if not _updates(point):
            about = {"key": self.key, "batch": batch, "flops": report.flops_per_step, "uses_key": self.uses_key}
            try:
                self._parts[point.point] = check.expected_part(part, program, workload, **about)
            except references.Unfit as error:
                return (dataclasses.replace(check.unchecked(str(error)), name="part"),)
            with jax.set_mesh(program.mesh):
                first = program.init(self.key)  # a new state: the call may donate it
            return (check.judge_part(program, compiled.call, first, batch, self._parts[point.point]),)
        measured = self.arms.workload(point.levers, grown)
        products = check.judge_products(measured, point.levers)
        across = self.loss_kind.name == loss_kind.ACROSS and not self.loss_kind.gathers
        communication = functools.partial(
            expected_communication.judge,
            measured,
            program,
            report,
            point.global_batch,
            own=self.own,
            across=across,
            devices=point.devices,
        )
        key = self._reference_key(workload, point, layout)
        try:
            expected = self._expected(key, workload, batch, layout, members_of(program.mesh), report.flops_per_step)
        except references.Unfit as error:
            return check.unchecked(str(error)), *products, communication()
        memory.give_back()  # the reference's scratch memory, before the program takes its own
        actual = check.train(program, compiled.call, self.key, batch, expected.count)

        def between_references() -> float:
            return references.relative_l2(rounding.rerun(expected, workload, **about).params, expected.end.params)

        # Both are costly, so they are functions that the checks call only for a program that is near its limits.
        def others() -> Iterator[references.TrainedState]:
            by, start = rounding.rounding(workload, self.device.platform), self._initial(workload)
            yield from rounding.perturbed(expected, start, batch, by=by)
            yield from rounding.reordered(expected, start, batch, layout=layout)

        parameters = check.judge(actual, expected, workload, platform=self.device.platform, rounding=between_references)
        state = check.judge_state(actual, expected, others(), limit=parameters.limit or 0)
        parameters = check.judge_each(parameters, actual, expected, others())
        optimizer = check.judge_optimizer(actual, expected)

        def proven() -> bool:
            return parameters.ok and optimizer.ok and check.each_proven(actual, expected, others())

        return parameters, optimizer, *state, *products, communication(proven=proven)

    def after_round(
        self, point: Point, grown: int, program: Program, call: Call, batch: Batch, state: TrainState
    ) -> tuple[tuple[Verdict, ...], float | None]:
        """(the verdicts on one more update of the timed state, the loss before that update). Donates the state.

        For a part that updates nothing, the verdict says whether the timed state still gives the correct loss or
        predictions. call: the timed step.
        """
        if not _updates(point):
            parted = PART.of(point.levers) == "local"  # its devices have states of their own
            if parted or point.point not in self._parts:
                return (), None
            return (check.judge_timed_part(program, call, state, batch, self._parts[point.point]),), None
        workload, layout, about = self._about(point, grown, program, batch)
        reference = self._timed.get(self._reference_key(workload, point, layout))
        if reference is None:
            reason = "there is no result of one device to compare the timed steps with"
            return (dataclasses.replace(check.unchecked(reason), name=check.TIMED_UPDATE),), None

        def again(expected: references.Reference, state: TrainState, count: int) -> references.TrainedState:
            return rounding.rerun(expected, workload, **about, state=state, count=count)

        verdict, loss = check.judge_update(
            program,
            call,
            state,
            batch,
            key=self.key,
            reference=reference,
            workload=workload,
            platform=self.device.platform,
            again=again,
        )
        return (verdict,), loss

    def _about(
        self, point: Point, grown: int, program: Program, batch: Batch
    ) -> tuple[TrainWorkload, references.BatchLayout, dict[str, Any]]:
        """(the workload that one device trains, the program's layout of the batch, arguments of `rerun`)."""
        layout = references.BatchLayout.of(program, uses_key=self.uses_key)
        device = self.device
        about = {"key": self.key, "batch": batch, "device": device, "layout": layout, "platform": device.platform}
        return self.arms.reference(point.levers, grown, uses_key=self.uses_key), layout, about

    def _reference_key(
        self, workload: TrainWorkload, point: Point, layout: references.BatchLayout
    ) -> tuple[object, ...]:
        """A key with everything that changes the result of one device."""
        by_layout: tuple[object, ...] = ()
        if self.uses_key:  # random numbers depend on all of the batch's layout
            by_layout = layout.identity(self.key, point.global_batch)
        elif stateful(_model_state(workload)):  # batch statistics depend on its parts
            by_layout = (layout.parts,)
        return point.global_batch, id(workload), *by_layout

    def _expected(
        self,
        key: tuple[object, ...],
        workload: TrainWorkload,
        batch: Batch,
        layout: references.BatchLayout,
        members: ProcessGroup,
        flops: float,
    ) -> references.Reference:
        """The reference of one device, kept for later points with an equal key. Each process computes it.

        Raises Unfit in all processes if one of them cannot compute it.
        """
        if key not in self._references:
            if not self.keep:
                self._references.clear()  # the arrays of the last point; `_timed` keeps what later rounds need
            memory.give_back()
            made, unfit = None, ""
            try:
                made = references.reference_that_fits(
                    workload,
                    self.key,
                    batch,
                    device=self.device,
                    layout=layout,
                    flops=flops,
                    apart=functools.partial(self._in_parts, workload),
                    make=self.maker(workload),
                )
            except references.Unfit as error:
                unfit = str(error)
            # Free memory differs between processes, but the next programs must not: all agree on the outcome.
            unfit = next(filter(None, members.all_gather(unfit)), "")
            if made is None or unfit:
                raise references.Unfit(unfit)
            self._references[key], self._timed[key] = made, made.without_arrays()
        return self._references[key]

    def _in_parts(self, workload: TrainWorkload) -> bool:
        """Whether one device may compute the reference part by part."""
        # State such as batch statistics depends on all examples, and random numbers on their position in it. Both
        # change if parts are computed one after the other.
        whole = stateful(_model_state(workload)) and not workload.independent
        return self.loss_kind.in_parts and not whole and not self.uses_key


def _updates(point: Point) -> bool:
    """Whether all devices together make an update that one device could make."""
    part = PART.of(point.levers)
    return part == "step" or (part == "local" and point.devices == 1)


def _model_state(workload: TrainWorkload) -> ArrayTree:
    """The shapes of the state that the model keeps besides its parameters."""
    return jax.eval_shape(workload.init, KEY)[1]


def require_loss(workload: TrainWorkload, kind: LossKind) -> None:
    """Raises UserError for a loss that is not a mean over its examples: no strategy can compute it correctly."""
    if kind.name == SUM:
        raise UserError(
            f"the loss of '{workload.name}' is a sum over its examples, so its gradient grows with the batch (2.0 "
            "times for twice the examples). Return the mean: jnp.mean(...) instead of jnp.sum(...)."
        )
    if kind.name == CONSTANT:
        raise UserError(
            f"the loss of '{workload.name}' does not depend on the batch: other values of its fields "
            f"({', '.join(workload.example)}) change neither the loss nor its gradient. Compute it from the argument "
            "`batch`."
        )
    if kind.name == PARTLY:
        raise UserError(
            f"the loss of '{workload.name}' does not depend on all its examples: of {kind.examples} it ignores number "
            f"{numbers(kind.ignored)}. Return the mean over the leading axis of every field of the batch."
        )
    # Other kinds may leave examples out on purpose, such as the easy ones: the label of the kind counts them.
    if kind.never and kind.name in (MEAN, WEIGHTED):
        raise UserError(
            f"{len(kind.never)} of {kind.single} examples have no gradient: the loss of '{workload.name}' is "
            f"{kind.name}, but its gradient is the same for any example as number {numbers(kind.never)} of the batch. "
            "Without a jax.lax.stop_gradient or a mask that depends on the place in the batch, all examples train."
        )


def numbers(indices: Sequence[int]) -> str:
    """Indices, ascending from 0, as numbers from 1: "1, 2, 5 to 9 and 20 more"."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and index == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], index
        else:
            runs.append((index, index))
    shown = [str(a + 1) if a == b else f"{a + 1}, {b + 1}" if b == a + 1 else f"{a + 1} to {b + 1}" for a, b in runs]
    rest = sum(b - a + 1 for a, b in runs[MOST_RUNS:])
    return ", ".join(shown[:MOST_RUNS]) + (f" and {rest} more" if rest else "")


def require_examples(workload: TrainWorkload, program: Program, batch: int) -> None:
    """Raises Unsupported if the model cannot take the number of examples that a device gets at once."""
    parts = 1 if program.keys is None else program.parts
    examples = batch // (parts * workload.micro_batches)
    if workload.least == 1 or examples == batch:
        return
    try:
        inspection.traced(
            workload, "loss", *jax.eval_shape(workload.init, KEY), workload.batch_avals(examples), KEY, batch=examples
        )
    except UserError as error:
        raise Unsupported(
            f"'{workload.name}' takes {batch} examples but not {examples}, which a device gets at once: use a larger "
            f"--config.batch, or --config.strategy=jit_auto ({error})"
        ) from error


def require_micro_batchable(workload: TrainWorkload, program: Program, kind: LossKind) -> None:
    """Raises Unsupported if the mean over parts of the batch differs from the loss of the whole batch."""
    parts = 1 if program.keys is None else program.parts
    count = parts * workload.micro_batches
    if parts > 1 and kind.state:
        raise Unsupported(
            f"the state '{kind.state[0]}' of '{workload.name}' is not a mean over examples (it may be a count, a sum "
            "or a largest value), and each device sees only its part of the batch: compute it from gathered(x), from "
            "jaxbench.workloads, instead of x, or use --config.strategy=jit_auto."
        )
    if count == 1 or kind.name not in (HIDDEN, UNEVEN, FIXED, BACKWARD, ACROSS):
        return
    if kind.name == ACROSS and kind.gathers and workload.micro_batches == 1:
        return
    if kind.name == ACROSS and kind.gathers and stateful(_model_state(workload)):
        return  # batch statistics: the reference on one device also normalises each micro-batch by itself
    pieces = f"{count} micro-batches" if parts == 1 else f"{count} parts"
    if kind.name == HIDDEN:
        raise Unsupported(
            f"the loss of '{workload.name}' divides by the weight of its examples, and the mean of such quotients over "
            f"{pieces} is a different loss: return WeightedMean(total, weight), from jaxbench.workloads, instead of "
            "total / weight. The weight must be the plain sum of the examples' weights, also where that is 0: then a "
            "WeightedMean is 0, so it needs no maximum with 1."
        )
    if kind.name == UNEVEN:
        raise Unsupported(
            f"the WeightedMean of '{workload.name}' has weights that do not add up: the weight of a batch is not the "
            f"sum of the weights of its examples (a maximum with 1?), so {pieces} give a different loss. Return the "
            "plain sum, which may be 0: then a WeightedMean is 0."
        )
    if kind.name == BACKWARD:
        raise Unsupported(
            f"the loss of '{workload.name}' is a mean over examples but its gradient is not: that of {kind.single} "
            "examples is no mean of the gradients of its halves. A stop_gradient may hide weights that come from the "
            f"whole batch, or the backward pass clips, so {pieces} give another gradient: use "
            "--config.strategy=jit_auto."
        )
    if kind.name == FIXED:
        raise Unsupported(
            f"the model of '{workload.name}' takes {kind.examples} examples but not half of them, so it cannot take "
            f"{pieces}: use --config.strategy=jit_auto."
        )
    if kind.gathers:
        raise Unsupported(
            f"the loss of '{workload.name}' compares all examples of a batch with each other, which {pieces} in "
            "sequence cannot do: use --config.lever.accumulate=1."
        )
    if workload.micro_batches > 1:
        raise Unsupported(
            f"the loss of '{workload.name}' looks across examples, but a micro-batch sees only its own: use "
            "--config.lever.accumulate=1."
        )
    raise Unsupported(
        f"the loss of '{workload.name}' looks across examples, but each device sees only its part of the batch: "
        "compare with gathered(x), from jaxbench.workloads, instead of x, or use --config.strategy=jit_auto."
    )
