# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One point of a step that somebody else wrote, in one process. `Bench` measures it; this builds and checks it."""

from __future__ import annotations

import dataclasses
import itertools
import math
import types
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import jax
from jax.sharding import Mesh

from jaxbench import discovery
from jaxbench.core.bench import PreparedStep
from jaxbench.core.plan import Point
from jaxbench.core.program import Program
from jaxbench.core.schema import Verdict
from jaxbench.digits import size
from jaxbench.errors import Unsupported, UserError
from jaxbench.features.ablations.bench import AblationBench
from jaxbench.features.ablations.points import COMMUNICATION, LOCAL, PEAK
from jaxbench.features.own_step import collectives, reference, settle, shares
from jaxbench.features.own_step import program as programs
from jaxbench.features.own_step.program import OwnProgram
from jaxbench.features.own_step.reference import OwnReference
from jaxbench.hlo.module import Module, parse
from jaxbench.levers import PART
from jaxbench.measure import check, first_step, memory
from jaxbench.measure.arm import require_options
from jaxbench.measure.compile_report import CompiledStep, StepWork, compile_step
from jaxbench.parallel import multihost
from jaxbench.processes import messages
from jaxbench.processes.group import ProcessGroup
from jaxbench.processes.messages import Explained, Fields, Request, Same
from jaxbench.processes.server import stage
from jaxbench.records.documents import decode
from jaxbench.workloads.own_step import PyTree

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
        assert compiled.inputs is not None
        self._of[point.point], expected = self.reference, self.expected()
        programs.require_same_each_time(program)  # first: the comparison below would fail with a worse reason
        if expected is None:
            results: tuple[Verdict, ...] = (check.unchecked(self.reference["why"]),)
        # The reference itself would agree with itself. On one device that is worth a check: its second run must agree.
        elif expected.devices == program.mesh.size > 1:
            results = (check.unchecked(f"fewer than {expected.devices} devices cannot hold the step"),)
        else:
            results = reference.judge(program, compiled.call, expected)
        collectives = compiled.report.collectives
        listed = [f"{c.count} {c.kind} over '{c.axis or 'unknown'}' ({c.bytes:,} bytes)" for c in collectives]
        return (
            *results,
            check.judge_host_calls(compiled.host_calls),
            check.judge_devices(devices[: point.devices], None, *compiled.inputs, collectives),
            check.judge_inputs(dict(jax.tree.map(multihost.on_host, program.batch_of(0)))),
            Verdict(name="collectives", ok=True, reason=f"{NOT_JUDGED}: {', '.join(listed) or 'there are none'}"),
        )

    def after_round(
        self, point: Point, grown: int, program: OwnProgram, call: PyTree, batch: PyTree, state: PyTree
    ) -> tuple[tuple[Verdict, ...], float | None]:
        """The verdict on one more step of the timed state, which it donates."""
        if (expected := self.expected(point.point)) is None:
            return (), None  # which makes the point unchecked already
        return (reference.judge_timed(program, call, state, expected),), None


class OwnBench(AblationBench):
    """Measures points of a user's step on the devices of this process."""

    def load(self, experiment: str, *, keep: bool) -> None:
        with self.config.unlocked():
            loaded = settle.load(self.config, experiment)
        assert loaded is not None
        self.step = loaded
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
            part, batch, none = point.levers.get(PART.name), point.global_batch, StepWork()
            if point.explains and part == PEAK:
                return none, self.peak(point)
            if point.explains and part == COMMUNICATION:
                module, mesh = self._step_of(point)
                return none, collectives.program(module, mesh)
            if point.explains and part == LOCAL:
                share = self.proof.expected()
                if share is None or share.one is None:
                    raise Unsupported(share.why if share else self.proof.reference["why"])
                return none, shares.program(share.one, self.devices[: point.devices])
            devices = self.devices[: point.devices]
            absent = devices[0].platform != jax.default_backend()
            # For absent hardware, fake CPU devices hold what `make` places, and the step is exported from there.
            program = programs.build(self.step, jax.devices()[: len(devices)] if absent else devices, batch)
            flops = self.step.flops_per_example
            work = StepWork(parameters=programs.parameters(program), flops=None if flops is None else flops * batch)
            return work, shares.elsewhere(program, devices) if absent else program

    def executable(
        self, workload: PyTree, program: Program, point: Point, options: dict[str, PyTree]
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
            return self.executable(workload, programs.build(self.step, devices, batch, numbers=False), point, options)
        placed, again = programs.settled(program, compiled.call)
        if again:  # with the layout that the first compilation chose for arrays that init does not place
            compiled = compile_step(workload, placed, point.global_batch, **how)
            placed, again = programs.settled(placed, compiled.call)
        assert placed.avals is not None
        self._texts[point.point] = compiled.hlo, placed.mesh
        return placed, dataclasses.replace(compiled, inputs=placed.avals())

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
        _, program, compiled = self.compile(decode(Point, placed), accepted=True)
        assert isinstance(program, OwnProgram)
        with stage("check"):
            memory.require(compiled.call, self.device.platform)
            reference.reference(program, compiled.call if runs else None).save(Path(file))
            memory.give_back()  # the point itself needs it next
        return Same(same=True)

    def explain(self, placed: Fields) -> Explained:
        """What `jaxbench try` shows of a point. Raises StageError."""
        point = decode(Point, placed)
        _, program, compiled = self.compile(point)
        assert isinstance(program, OwnProgram)
        with stage("check"):
            checks = self.proof.verdicts(point, self.devices, program, compiled)
        assert compiled.inputs is not None
        report, leaves, (state, batch) = compiled.report, program.state_leaves, compiled.inputs
        arrays = {**state.params, **state.opt_state}
        compared, others = state.params, state.opt_state
        largest = sorted(compared, key=lambda path: -compared[path].size)[:3]
        aside = ", ".join(map(repr, [*leaves.constants][:3]))  # a library's state may have hundreds
        here = sum(math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in arrays.values())
        facts = [
            ("state", f"{len(arrays)} arrays, {size(sum(x.size * x.dtype.itemsize for x in arrays.values()))}"),
            ("parameters", f"{report.parameters:,} in {len(compared)} arrays; largest: {', '.join(largest)}"),
            ("compared", f"the movement of these {len(compared)} arrays, and the values of {len(others)} others"),
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
            name=self.step.name, examples=point.global_batch, facts=tuple(facts), cells=cells, checks=checks
        )

    def facts_of(self, workload: PyTree) -> dict[str, float]:
        units = self.step.units_per_example
        return {"tokens": float(units)} if units > 1 else {}

    def verdicts(
        self, point: Point, workload: PyTree, program: Program, compiled: CompiledStep, batch: PyTree, out: PyTree
    ) -> tuple[Verdict, ...]:
        if point.explains:
            return super().verdicts(point, workload, program, compiled, batch, out)
        assert isinstance(program, OwnProgram)
        checks = self.proof.verdicts(point, self.devices, program, compiled)
        loss = out if isinstance(out, dict) or len(out) != 1 else {"loss": out[0]}
        if first_step.finite(loss):
            return checks
        first, *others = checks
        reason = f"the loss is not finite at the first step of {program.place}"
        return dataclasses.replace(first, ok=False, unchecked=False, reason=reason), *others

    def sent_checks(self, *about: PyTree) -> tuple[Verdict, ...]:
        return ()  # listed, not judged

    def outcome(self, workload: PyTree, program: Program, point: Point) -> dict[str, float]:
        return {}

    def fed(self, point: Point) -> bool:
        ready = self.prepared.get(point.point)
        return ready is not None and isinstance(ready.program, OwnProgram) and callable(ready.program.own.batch)

    def feed(self, ready: PreparedStep) -> PyTree:
        assert isinstance(ready.program, OwnProgram)
        batches = map(ready.program.batch_of, itertools.count())
        return types.SimpleNamespace(next=lambda: next(batches), close=lambda: None)  # as an input pipeline has

    def batch(self, point: Point) -> PyTree:
        """Nothing: a program of a user's step has its batch."""
        return {}

    def about_model(self) -> dict[str, PyTree]:
        unit = self.step.unit if self.step.units_per_example == 1 else "examples"
        return {"unit": unit, "loss": "", "annotations": ""}


def specs(shardings: list[str]) -> str:
    """ "12 as PartitionSpec(), 2 as PartitionSpec('fsdp',)"."""
    return ", ".join(f"{count} as {text}" for text, count in Counter(shardings).most_common(4))
