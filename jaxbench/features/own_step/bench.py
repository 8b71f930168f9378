# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One point of a step that somebody else wrote, in one process. `Bench` measures it; this builds and checks it.

To run its collectives alone with their payloads, it reads them from the text of the compiled step. A step that somebody
else compiled has no jaxpr in which its collectives are written: the compiler places them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import types
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh

from jaxbench import discovery
from jaxbench.core.clock import Timer
from jaxbench.core.program import Program
from jaxbench.core.schema import COLLECTIVES, StepWork, Verdict
from jaxbench.digits import size
from jaxbench.errors import Unsupported, UserError, of_kind, present
from jaxbench.features.ablations.bench import AblationBench
from jaxbench.features.ablations.points import COMMUNICATION, LOCAL, PEAK
from jaxbench.features.ablations.programs import CollectiveLoop, CompiledCall, Item, sending
from jaxbench.features.own_step import compare, one_device, reference, settle
from jaxbench.features.own_step import program as programs
from jaxbench.features.own_step.program import OwnProgram
from jaxbench.features.own_step.reference import OwnReference
from jaxbench.hlo import collective_counts
from jaxbench.hlo.module import Instruction, Module, parse
from jaxbench.levers import PART
from jaxbench.measure import check, first_step, memory, step_work
from jaxbench.measure.arm import require_options
from jaxbench.measure.bench import PreparedStep
from jaxbench.measure.compile_report import CompiledStep, StatedWork, compile_step
from jaxbench.measure.point import Point
from jaxbench.parallel import multihost
from jaxbench.parallel.step import keep_barriers
from jaxbench.processes import messages
from jaxbench.processes.group import ProcessGroup
from jaxbench.processes.messages import Explained, Fields, Request, Same
from jaxbench.processes.server import stage
from jaxbench.records.documents import decode
from jaxbench.workloads.own_step import PyTree

_DIMENSION = re.compile(r"(?:dimensions|split_dimension)=\{?(\d+)")
# XLA's names of types, where they differ from NumPy's by more than the letter: bf16, f32, s32, u8, pred, f8e4m3fn.
_LETTERS = {"f": "float", "s": "int", "u": "uint", "bf": "bfloat", "c": "complex"}


def dtype_of(name: str) -> PyTree:
    """ "f32" -> float32. A truth value travels as a byte."""
    letters, digits, more = re.fullmatch(r"([a-z]+)(\d*)(.*)", name).groups()  # type: ignore[union-attr]
    if letters == "pred":  # a sum of truth values would be another operation
        return jnp.dtype("uint8")
    return jnp.dtype(f"{_LETTERS[letters]}{digits}{'_' + more if more else ''}")


def communication(module: Module, mesh: Mesh) -> Program:
    """The Program that sends what the compiled module sends. Raises Unsupported for what it cannot send."""
    # The same devices and axes, without the types that a user's mesh may give to its axes.
    mesh = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))
    items, _ = _items(module, module.entry, mesh)
    return Program(mesh=mesh, put=lambda batch: {}, disabled_passes=keep_barriers(mesh), **sending(items, mesh))


def _items(module: Module, computation: str, mesh: Mesh) -> tuple[list[Item], int]:
    """(the collectives of a computation, how many of them follow each other)."""
    items: list[Item] = []
    rank: dict[str, int] = {}
    for line in module.lines(computation):
        # A collective that needs the result of another one must follow it here, too: both at once would be faster.
        before = max((rank[name] for name in line.references if name in rank), default=0)
        rank[line.name] = before
        if line.kind in COLLECTIVES and not collective_counts.continued(line):
            items.append(_call(line, module, mesh, before))
            rank[line.name] = before + 1
        elif line.opcode == "while":
            inside, _ = _items(module, line.body, mesh)
            if inside:
                items.append(CollectiveLoop(tuple(inside), module.trip_count(line) or 1, before))
                rank[line.name] = before + 1
        elif line.opcode in ("call", "conditional"):
            branches = [_items(module, name, mesh) for name in line.called if name in module.computations]
            # Which branch runs is not in the text, so the one that sends most counts.
            if branches and (most := max(branches, key=lambda branch: len(branch[0])))[0]:
                items += [dataclasses.replace(item, rank=item.rank + before) for item in most[0]]
                rank[line.name] = before + most[1]
    return items, max(rank.values(), default=0)


def _call(line: Instruction, module: Module, mesh: Mesh, rank: int) -> CompiledCall:
    groups = collective_counts.replica_groups(line.rest, mesh.size)
    axis = collective_counts.axes_of(groups, dict(mesh.shape), pairs=line.kind == "collective-permute")
    if not axis and line.kind != "collective-permute":
        raise Unsupported(f"it has a {line.kind} over devices that are no axes of its mesh")
    arrays = [a for name in line.operands if name in module.instructions for a in module.instructions[name].arrays]
    avals = [jax.ShapeDtypeStruct(a.shape, dtype_of(a.dtype)) for a in arrays]
    if line.kind == "all-to-all" and len(avals) > 1:  # XLA passes one operand for each device of a group
        first = avals[0]
        avals = [jax.ShapeDtypeStruct((len(avals) * math.prod(first.shape),), first.dtype)]
    axes, found = tuple(axis.split("+")), _DIMENSION.search(line.rest.split("), ", 1)[-1])
    dimension = int(found[1]) if found else 0
    by_kind: dict[str, Callable[[jax.Array], jax.Array]] = {
        "all-gather": lambda x: jax.lax.all_gather(x, axes, axis=dimension, tiled=True),
        "reduce-scatter": lambda x: jax.lax.psum_scatter(x, axes, scatter_dimension=dimension, tiled=True),
        "all-to-all": lambda x: jax.lax.all_to_all(x, axes, dimension, dimension, tiled=True),
        "collective-permute": lambda x: jax.lax.ppermute(x, mesh.axis_names, [(a, b) for a, b in groups or ()]),
    }
    if line.kind == "all-reduce":  # one call for all arrays: XLA has combined them into one message
        return CompiledCall(avals, rank, lambda payload: [*jax.lax.psum(payload, axes)])
    if line.kind not in by_kind:
        raise Unsupported(f"it has a {line.kind}, which is not measured alone")
    return CompiledCall(avals, rank, lambda payload: [*map(by_kind[line.kind], payload)])


VISIT = 3  # steps of a visit in `try`, which times nothing
NOT_JUDGED = "your own step: collectives are listed, not judged"


class OwnProof:
    """Judges the points of a user's step, with the interface of `Proof`.

    reference: {"file": of an OwnReference, "devices": that it has}, or {"why": there is none}.
    """

    def __init__(self) -> None:
        self.reference: dict[str, PyTree] = {"why": "no run on one device was asked for"}
        self._of: dict[str, dict[str, PyTree]] = {}  # the reference of each point that was judged

    def expected(self, point: str = "") -> OwnReference | None:
        """The reference of a judged point, or the one given last; None if there is none."""
        about = self._of.get(point, self.reference)
        return OwnReference.load(Path(about["file"])) if "file" in about else None

    def verdicts(
        self, point: Point, devices: Sequence[jax.Device], program: OwnProgram, compiled: CompiledStep
    ) -> PyTree:
        inputs = present(compiled.inputs)
        self._of[point.point], expected = self.reference, self.expected()
        programs.require_same_each_time(program)  # first: the comparison below would fail with a worse reason
        if expected is None:
            results: tuple[Verdict, ...] = (check.unchecked(self.reference["why"]),)
        # The reference itself would agree with itself. On one device that is worth a check: its second run must agree.
        elif expected.devices == program.mesh.size > 1:
            results = (check.unchecked(f"fewer than {expected.devices} devices cannot hold the step"),)
        else:
            results = compare.judge(program, compiled.call, expected)
        collectives = compiled.report.collectives
        listed = [f"{c.count} {c.kind} over '{c.axis or 'unknown'}' ({c.bytes:,} bytes)" for c in collectives]
        return (
            *results,
            check.judge_host_calls(compiled.host_calls),
            check.judge_devices(devices[: point.devices], None, *inputs, collectives),
            check.judge_inputs(dict(jax.tree.map(multihost.on_host, program.batch_of(0)))),
            Verdict(name="collectives", ok=True, reason=f"{NOT_JUDGED}: {', '.join(listed) or 'there are none'}"),
        )

    def after_round(
        self, point: Point, grown: int, program: OwnProgram, call: PyTree, batch: PyTree, state: PyTree
    ) -> tuple[tuple[Verdict, ...], float | None]:
        """The verdict on one more step of the timed state, which it donates."""
        if (expected := self.expected(point.point)) is None:
            return (), None  # which makes the point unchecked already
        return (compare.judge_timed(program, call, state, expected),), None


class OwnBench(AblationBench):
    """Measures points of a user's step on the devices of this process."""

    def load(self, experiment: str, *, keep: bool) -> None:
        with self.config.unlocked():
            self.step = present(settle.load(self.config, experiment))
        self._texts: dict[str, tuple[str, Mesh]] = {}  # of compiled steps, by point: their ablations are read from them
        self.proof: PyTree = OwnProof()

    def carry_out(self, request: Request) -> Same | Explained | None:
        """Also takes the reference that a request brings."""
        if reference := getattr(request, "reference", None):
            file = Path(reference.get("file", ""))
            members = ProcessGroup.of(self.devices[: decode(Point, request.point).devices])  # type: ignore[attr-defined]
            if not members.all(file.exists()):  # one process that lacks it would leave the others in a collective
                reference = {"why": f"not all hosts see '{file}': give a --workdir in a folder that they share"}
            self.proof.reference = reference
        match request:
            case messages.Refer():
                return self.refer(request.point, request.file, runs=request.runs)
            case messages.Explain():
                return self.explain(request.point)
        return None

    def workload_and_program(self, point: Point, *, accepted: bool) -> tuple[PyTree, Program]:
        with stage("build"):
            require_options(point.levers, self.devices[0])
            part, batch, none = point.levers.get(PART.name), point.global_batch, StatedWork()
            if point.explains and part == PEAK:
                return none, self.peak(point)
            if point.explains and part == COMMUNICATION:
                module, mesh = self._step_of(point)
                return none, communication(module, mesh)
            if point.explains and part == LOCAL:
                share = self.proof.expected()
                if share is None or share.one is None:
                    raise Unsupported(share.why if share else self.proof.reference["why"])
                return none, one_device.program(share.one, self.devices[: point.devices])
            devices = self.devices[: point.devices]
            absent = devices[0].platform != jax.default_backend()
            # For absent hardware, fake CPU devices hold what `make` places, and the step is exported from there.
            program = programs.build(self.step, jax.devices()[: len(devices)] if absent else devices, batch)
            flops = self.step.flops_per_example
            work = StatedWork(parameters=programs.parameters(program), flops=None if flops is None else flops * batch)
            return work, one_device.elsewhere(program, devices) if absent else program

    def executable(
        self, workload: PyTree, program: Program, point: Point, options: dict[str, PyTree], *, accepted: bool
    ) -> tuple[Program, CompiledStep]:
        how: dict[str, PyTree] = {"options": options, "asked": point.devices}
        if not isinstance(program, OwnProgram):
            return program, compile_step(workload, program, point.global_batch, **how)
        try:
            with discovery.explaining(hint=programs.hint):
                compiled = compile_step(workload, program, point.global_batch, **how)
        except (UserError, ValueError) as error:
            if "compiler_options" in str(error):  # JAX takes them at the outermost jit only, which is the suite's
                raise UserError(
                    f"the step of {program.place} has a jax.jit with compiler_options inside: leave them out, and "
                    "give them with --config.lever.compiler=OPTION=VALUE."
                ) from error
            if not isinstance(error.__cause__, programs.NEEDS_VALUE) or not program.state_leaves.numbers:
                raise
            # Python decides by a number of the state, such as a flag: it stays a constant of the step.
            devices, batch = [*program.mesh.devices.flat], point.global_batch
            rebuilt = programs.build(self.step, devices, batch, numbers=False)
            return self.executable(workload, rebuilt, point, options, accepted=accepted)
        placed, again = programs.settled(program, compiled.call)
        if again:  # with the layout that the first compilation chose for arrays that init does not place
            compiled = compile_step(workload, placed, point.global_batch, **how)
            placed, again = programs.settled(placed, compiled.call)
        self._texts[point.point] = compiled.hlo, placed.mesh
        return placed, dataclasses.replace(compiled, inputs=present(placed.avals)())

    def _step_of(self, point: Point) -> tuple[Module, Mesh]:
        """(the compiled text, the mesh) of the step that a point explains. A run that goes on may lack it here."""
        if point.explains not in self._texts:
            levers = {**point.levers, PART.name: PART.default}
            whole = dataclasses.replace(point, point=point.explains, explains="", levers=levers)
            self.compile(whole, accepted=True)
        text, mesh = self._texts[point.explains]
        return parse(text), mesh

    def refer(self, placed: Fields, file: str, *, runs: bool = True) -> Same:
        """Writes the reference for other device counts into a file, as `Refer` says. Raises StageError."""
        _, compiled_program, compiled = self.compile(decode(Point, placed), accepted=True)
        program = of_kind(OwnProgram, compiled_program)
        with stage("check"):
            memory.require(compiled.call, self.device.platform)
            reference.reference(program, compiled.call if runs else None).save(Path(file))
            memory.give_back()  # the point itself needs it next
        return Same(same=True)

    def explain(self, placed: Fields) -> Explained:
        """What `jaxbench try` shows of a point. Raises StageError."""
        point = decode(Point, placed)
        workload, compiled_program, compiled = self.compile(point)
        program = of_kind(OwnProgram, compiled_program)
        checks = self._as_run(PreparedStep(point, workload, program, compiled, 1))
        with stage("check"):
            work = self.work_of(point, program, compiled, {})
            checks += step_work.judge(work)
        report, leaves, (state, batch) = compiled.report, program.state_leaves, present(compiled.inputs)
        arrays = {**state.params, **state.opt_state}
        compared, others = state.params, state.opt_state
        largest = sorted(compared, key=lambda path: -compared[path].size)[:3]
        aside = ", ".join(map(repr, [*leaves.constants][:3]))  # a library's state may have hundreds
        here = sum(math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in arrays.values())
        facts = [
            ("state", f"{len(arrays)} arrays, {size(sum(x.size * x.dtype.itemsize for x in arrays.values()))}"),
            ("parameters", f"{report.parameters:,} in {len(compared)} arrays; largest: {', '.join(largest)}"),
            ("compared", what_is_compared(compared, others)),
            ("constants", f"{len(leaves.constants)} leaves that are no arrays: {aside}" if aside else "none"),
            ("donated", "the state, by jaxbench" if program.own.donate else "nothing (donate=False)"),
            ("batch", ", ".join(f"{path} {x.dtype}{list(x.shape)}" for path, x in [*batch.items()][:4])),
            ("each step", "another batch" if callable(program.own.batch) else "the same batch"),
            ("work", f"{report.flops_per_step:,.0f} FLOPs of a step"),
        ]
        listed = [f"{c.count} {c.kind} over {c.axis or '?'}, {size(c.bytes)}" for c in report.collectives]
        cells = {
            "state": specs([programs.spec(x.sharding) for x in arrays.values()]),
            "batch": specs([programs.spec(x.sharding) for x in batch.values()]),
            "collectives": "; ".join(listed) or "none",
            "state_bytes": size(here),
            "peak": size(report.peak_bytes),
        }
        return Explained(
            name=self.step.name, examples=point.global_batch, facts=tuple(facts), cells=cells, checks=checks,
            flops=report.flops_per_step, work=work,
        )  # fmt: skip

    def _as_run(self, ready: PreparedStep) -> tuple[Verdict, ...]:
        """The checks that a run makes of a point: before the first round, and of the state after it. Raises StageError.

        They call what a run calls, such as `init` after a step has donated its state.
        """
        point, program, compiled = ready.point, ready.program, ready.compiled
        with stage("check"):
            _, _, outputs = self._first_run(program, compiled, {})
            checks = self.verdicts(point, ready.workload, program, compiled, {}, outputs)
        with stage("measure"):
            for check in (True, False):  # a run visits a point several times
                with self.running(ready) as (call, state, supply):
                    for _ in range(VISIT):
                        state, _ = jax.block_until_ready(call(state, supply))
                    after, _ = self._after_round(ready, state, VISIT, check=check)
                del state
                checks += after
        return checks

    def facts_of(self, workload: PyTree) -> dict[str, float]:
        units = self.step.units_per_example
        return {"tokens": float(units)} if units > 1 else {}

    def verdicts(
        self, point: Point, workload: PyTree, program: Program, compiled: CompiledStep, batch: PyTree, out: PyTree
    ) -> tuple[Verdict, ...]:
        if point.explains:
            return super().verdicts(point, workload, program, compiled, batch, out)
        own = of_kind(OwnProgram, program)
        checks = self.proof.verdicts(point, self.devices, own, compiled)
        loss = out if isinstance(out, dict) or len(out) != 1 else {"loss": out[0]}
        if first_step.finite(loss):
            return checks
        first, *others = checks
        reason = f"the loss is not finite at the first step of {own.place}"
        return dataclasses.replace(first, ok=False, unchecked=False, reason=reason), *others

    def timer_of(self, ready: PreparedStep) -> Timer:
        """The timer of a point, which also waits for what `batch` starts."""
        timer = super().timer_of(ready)
        return dataclasses.replace(timer, fence=fence_of(jax.local_devices())) if self.fed(ready.point) else timer

    def work_of(self, point: Point, program: Program, compiled: CompiledStep, batch: PyTree) -> StepWork:
        if point.explains:
            return compiled.work
        own = of_kind(OwnProgram, program)
        work = step_work.with_effect(own, compiled.call, None, own.batch_of(0), compiled.work)
        return step_work.watch(own, compiled.call, None, own.batch_of, work)

    def sent_checks(self, *about: PyTree) -> tuple[Verdict, ...]:
        return ()  # listed, not judged

    def outcome(self, workload: PyTree, program: Program, point: Point) -> dict[str, float]:
        return {}

    def fed(self, point: Point) -> bool:
        ready = self.prepared.get(point.point)
        return ready is not None and isinstance(ready.program, OwnProgram) and callable(ready.program.own.batch)

    def feed(self, ready: PreparedStep) -> PyTree:
        batches = map(of_kind(OwnProgram, ready.program).batch_of, itertools.count())
        return types.SimpleNamespace(next=lambda: next(batches), close=lambda: None)  # as an input pipeline has

    def batch(self, point: Point) -> PyTree:
        """Nothing: a program of a user's step has its batch."""
        return {}

    def about_model(self) -> dict[str, PyTree]:
        unit = self.step.unit if self.step.units_per_example == 1 else "examples"
        return {"unit": unit, "loss": "", "annotations": ""}


def what_is_compared(parameters: Mapping[str, PyTree], others: Mapping[str, PyTree]) -> str:
    """ "the movement of these 2 arrays and of 4 others, and 1 array of whole numbers exactly"."""
    arrays = {**parameters, **others}
    whole = {path for path, x in arrays.items() if not jnp.issubdtype(x.dtype, jnp.inexact)}
    mine, more = len(parameters.keys() - whole), len(others.keys() - whole)
    of_others = f" and of {more} other{'s' if more > 1 else ''}" if more else ""
    exact = f", and {len(whole)} array{'s' if len(whole) > 1 else ''} of whole numbers exactly" if whole else ""
    return f"the movement of {'these ' if mine == len(parameters) else ''}{mine} arrays{of_others}{exact}"


def fence_of(devices: Sequence[jax.Device]) -> Callable[[PyTree], PyTree]:
    """A fence that waits for all work of these devices: a `batch` may start some that it does not return."""
    mark = jax.jit(lambda x: x + 1)
    marks = [jax.device_put(jnp.zeros(()), device) for device in devices]
    jax.block_until_ready(list(map(mark, marks)))  # compiles now, and not while the clock runs

    def fence(tree: PyTree) -> PyTree:
        # A device does what one thread sends in order. What other threads send is known only by its results.
        jax.block_until_ready([x for x in jax.live_arrays() if not x.is_deleted()])
        jax.block_until_ready(list(map(mark, marks)))
        return jax.block_until_ready(tree)

    return fence


def specs(shardings: list[str]) -> str:
    """ "12 as PartitionSpec(), 2 as PartitionSpec('fsdp',)"."""
    return ", ".join(f"{count} as {text}" for text, count in Counter(shardings).most_common(4))
