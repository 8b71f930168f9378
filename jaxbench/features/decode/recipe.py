# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Points of generation: how a step, a prompt and their parts are built, checked and described."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from jaxbench import discovery
from jaxbench.core.point import Point
from jaxbench.core.program import Program, TrainState
from jaxbench.core.schema import CompileReport, StepWork, Verdict
from jaxbench.core.workload import Batch
from jaxbench.errors import Unsupported, of_kind
from jaxbench.features.decode import proof
from jaxbench.features.decode.proof import Reference
from jaxbench.levers import MESH, PART
from jaxbench.machine import energy
from jaxbench.measure import check
from jaxbench.measure.arm import require_options
from jaxbench.measure.bench import Bench
from jaxbench.measure.check import judge_steps, judge_timed_state
from jaxbench.measure.compile_report import CompiledStep, StatedWork, compile_step
from jaxbench.measure.compiler import Compiler
from jaxbench.measure.recipe import AboutModel, BuiltStep, Feeding
from jaxbench.parallel import generation
from jaxbench.parallel.generation import MESSAGES, PREFILL, SCAN, STEP, TINY, TRIAD, Decoder
from jaxbench.processes.messages import Fields
from jaxbench.processes.server import stage
from jaxbench.workloads.generation import GenerationWorkload, workload

ENERGY_S = 1.0  # of steps between two readings of energy counters, which change a few times in a second
# Values of the lever attention.
KERNELS = {"cpu": ("xla",), "gpu": ("xla", "cudnn", "pallas"), "tpu": ("xla", "pallas")}
LANES, LEAST_PAGE = 128, 16  # of the paged kernel of TPUs: the width of a register, and places of a page


@dataclasses.dataclass(frozen=True)
class GenerationProgram(Program):
    """A Program of a decoder. on: what it is built from."""

    on: Decoder = None  # type: ignore[assignment]


class GenerationSteps:
    """The recipe of all points of generation, whole steps and parts."""

    def __init__(self, workload_of: Callable[[Point], GenerationWorkload], devices: list[jax.Device], key: jax.Array):
        self.workload_of, self.devices, self.key = workload_of, devices, key
        self.references: dict[tuple[object, ...], Reference] = {}
        self.steps: dict[str, BuiltStep] = {}  # compiled steps, by point
        self._ones: dict[tuple[object, ...], BuiltStep] = {}  # on one device, for the timed states

    def build(self, point: Point, *, accepted: bool) -> tuple[StatedWork, Program]:
        with stage("build"):
            devices = self.devices[: point.devices]
            require_options(point.levers, devices[0])
            workload = self.workload_of(point)
            _require_kernel(workload, devices[0].platform)
            sizes = generation.mesh_sizes(point.strategy, point.devices, MESH.of(point.levers))
            on = Decoder.on(workload, devices, sizes, point.global_batch)
            program = program_of(on, point.part)
            fields = {field.name: getattr(program, field.name) for field in dataclasses.fields(Program)}
            stated = StatedWork(parameters=workload.parameters, flops=_flops(on, point.part))
            return stated, GenerationProgram(**fields, on=on)

    def executable(
        self, workload: StatedWork, program: Program, point: Point, options: dict[str, object], *, accepted: bool
    ) -> tuple[Program, CompiledStep]:
        return program, compile_step(workload, program, point.global_batch, options=options, asked=point.devices)

    def report(self, point: Point, report: CompileReport) -> CompileReport:
        """With the name of the attention that runs."""
        form = generation.form_of(self.workload_of(point), self.devices[0].platform, {"tensor": 1})
        return dataclasses.replace(report, attention=form.attention)

    def verdicts(self, built: BuiltStep, batch: Batch, out: object) -> tuple[Verdict, ...]:
        on, part = of_kind(GenerationProgram, built.program).on, built.point.part
        host = check.judge_host_calls(built.compiled.host_calls)
        if part not in (STEP, SCAN, PREFILL):
            return host, *(() if part in (MESSAGES, TINY, TRIAD) else (check.judge_silent(built.compiled.report),))
        facts = proof.judge_cache(on, built.compiled), proof.judge_donated(on, built.compiled.report), host
        if part == PREFILL:
            return proof.judge_prefill(on, built, self._reference(on), self.key), *facts
        sent = proof.judge_sent(on, built.compiled.report, part)
        if part == SCAN:
            return proof.judge_scan(on, built, self._step(built.point), self.key), sent, *facts
        self.steps[built.point.point] = built
        return *proof.judge_step(on, built, self._reference(on), self.key), sent, *facts

    def _reference(self, on: Decoder) -> Reference:
        """The logits of the full forward pass on one device, once for each model and format."""
        key = on.workload.shape, on.workload.lengths, on.weights_form
        if key not in self.references:
            self.references[key] = proof.reference(on, self.devices[0], self.key)
        return self.references[key]

    def _step(self, point: Point) -> BuiltStep:
        """The compiled step of the point that a scan explains. A run that goes on may lack it here."""
        if point.explains not in self.steps:
            levers = {**point.levers, PART.name: STEP}
            self.steps[point.explains] = self._compiled(
                dataclasses.replace(point, point=point.explains, explains="", levers=levers)
            )
        return self.steps[point.explains]

    def _compiled(self, point: Point) -> BuiltStep:
        """Builds and compiles the step of a point for its reference."""
        work, program = self.build(point, accepted=True)
        program, compiled = self.executable(work, program, point, {}, accepted=True)
        return BuiltStep(point, work, program, compiled)

    def _one(self, point: Point) -> BuiltStep | None:
        """The step of a point on one device; None if it has one."""
        if point.devices == 1:
            return None
        levers = {name: value for name, value in point.levers.items() if name != MESH.name}
        key = point.global_batch, tuple(sorted(levers.items()))
        if key not in self._ones:
            one = dataclasses.replace(point, strategy="data", devices=1, levers=levers, processes=1)
            self._ones[key] = self._compiled(one)
        return self._ones[key]

    def work(self, built: BuiltStep, batch: Batch) -> StepWork:
        return built.compiled.work

    def state_verdicts(self, point: Point, state: TrainState, steps: int, *, parameters: bool) -> tuple[Verdict, ...]:
        found = judge_timed_state(state, steps) if parameters else (judge_steps(state, steps),)
        part = point.part
        if part not in (STEP, SCAN):
            return found
        workload = self.workload_of(point)
        tokens = generation.tokens_of(workload, part, point.global_batch, self.devices[0].platform)
        return *found, proof.judge_position(state, workload.lengths, steps * tokens)

    def after_round(self, built: BuiltStep, batch: Batch, state: TrainState) -> tuple[tuple[Verdict, ...], None]:
        """One more step of the timed state against the same step on one device."""
        on = of_kind(GenerationProgram, built.program).on
        return proof.judge_timed(on, built, state, self._one(built.point)), None

    def outcome(self, built: BuiltStep) -> dict[str, float]:
        """Joules of a step where counters answer: {"joules_per_step": all devices of this process}."""
        if built.point.part != STEP or not energy.read():
            return {}
        with built.program.context():
            state = jax.block_until_ready(built.program.init(self.key))
            before, steps, start = energy.read(), 0, time.monotonic()
            while time.monotonic() - start < ENERGY_S:
                for _ in range(16):
                    state, _ = built.compiled.call(state, {})
                jax.block_until_ready(state)
                steps += 16
        used = energy.between(before, energy.read())
        return {"joules_per_step": sum(used.values()) / steps} if used else {}

    def sent_checks(self, built: BuiltStep) -> tuple[Verdict, ...]:
        on, part = of_kind(GenerationProgram, built.program).on, built.point.part
        return (proof.judge_sent(on, built.compiled.report, part),) if part in (STEP, SCAN) else ()

    def facts(self, built: BuiltStep) -> dict[str, float]:
        """Numbers of a point that its times are compared with."""
        on, part = of_kind(GenerationProgram, built.program).on, built.point.part
        lengths, shape = on.workload.lengths, on.workload.shape
        size = jnp.dtype(on.form.dtype).itemsize
        made = {
            "context": lengths.context,
            "input": lengths.input,
            "output": lengths.output,
            "layers": shape.layers,
            "weight_bytes": generation.weight_bytes(on),
            "cache_bytes": on.cache_bytes,
            "message_bytes": on.local_batch * shape.width * size,
            "tensor": on.sizes["tensor"],
            "tokens_per_call": on.tokens_of(part),
        }
        if part == TRIAD:
            made["triad_bytes"] = generation.triad_bytes(on)
        return {name: float(value) for name, value in made.items()}


class GenerationSource:
    """Generation has no batches: each token comes from the one before."""

    fence = staticmethod(jax.block_until_ready)

    def batch(self, point: Point) -> Batch:
        return {}

    def drop(self) -> None:
        pass

    def fed(self, built: BuiltStep) -> bool:
        return False

    def feed(self, built: BuiltStep) -> Feeding:
        raise TypeError("generation has no batches to feed")

    def facts(self, workload: object) -> dict[str, float]:
        return {}

    def about(self) -> AboutModel:
        return AboutModel(unit="tokens")


class GenerationBench(Bench[GenerationSteps]):
    """A bench that adds the facts of generation to the records."""

    def first_run(self, built: BuiltStep, batch: Batch) -> tuple[float, dict[str, float], object]:
        seconds, facts, outputs = super().first_run(built, batch)
        return seconds, facts | self.steps.facts(built), outputs


def program_of(on: Decoder, part: str) -> Program:
    """The program of a part."""
    if part == STEP:
        return generation.step(on)
    if part == SCAN:
        return generation.scan(on)
    if part == PREFILL:
        return generation.prefill(on)
    if part == TRIAD:
        return generation.triad(on)
    return generation.part(on, part)


def bench(config: Fields, experiment: str, devices: list[jax.Device], worker: str) -> GenerationBench:
    """The bench of an experiment of generation. Raises StageError for a model that cannot be built."""
    made = ConfigDict(config)
    built: dict[tuple[tuple[str, str], ...], GenerationWorkload] = {}

    def workload_of(point: Point) -> GenerationWorkload:
        key = tuple(sorted(point.levers.items()))
        if key not in built:
            built[key] = _with_levers(of_kind(GenerationWorkload, discovery.build(experiment, made)), made, point)
        return built[key]

    steps = GenerationSteps(workload_of, devices, jax.random.PRNGKey(made.seed))
    return GenerationBench(made, devices, steps, GenerationSource(), Compiler(made.experiment, devices, steps), worker)


def _with_levers(plain: GenerationWorkload, config: ConfigDict, point: Point) -> GenerationWorkload:
    """The workload with the levers of a point."""
    made = workload(config, point.levers)
    return dataclasses.replace(made, name=plain.name)


def _flops(on: Decoder, part: str) -> float:
    """The FLOPs that a part states; 0 for parts without products."""
    if part == PREFILL:
        return generation.prefill_flops(on.workload, on.batch)
    if part in (MESSAGES, TINY, TRIAD):
        return 0.0
    return generation.flops(on.workload, on.batch, on.tokens_of(part))


def _require_kernel(workload: GenerationWorkload, platform: str) -> None:
    """Raises Unsupported for an attention that the platform does not have."""
    if workload.attention not in KERNELS.get(platform, ()):
        raise Unsupported(
            f"--config.lever.attention={workload.attention} is not possible on a {platform}: use "
            f"{' or '.join(KERNELS.get(platform, ('xla',)))}."
        )
    form = generation.form_of(workload, platform, {"tensor": 1})
    if form.attention != "paged":
        return
    shape, places = workload.shape, workload.lengths.context
    if (form.layout, form.cache) != ("pages", "bfloat16"):  # it multiplies in bfloat16, whatever it reads
        raise Unsupported(
            f"--config.lever.attention=pallas on a tpu reads pages of bfloat16, not {form.cache} in the layout "
            f"{form.layout}: use --config.lever.cache_layout=pages --config.lever.cache=bfloat16."
        )
    if shape.head % LANES or places % LEAST_PAGE:
        raise Unsupported(
            f"--config.lever.attention=pallas on a tpu takes heads of a multiple of {LANES} and a cache of a multiple "
            f"of {LEAST_PAGE} places, not heads of {shape.head} and {places} places: use --config.lever.attention=xla."
        )
