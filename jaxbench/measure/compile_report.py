# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compiles a step ahead of time, and records what the compiler did in a compile report."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
from jax.extend import core

from jaxbench.core.program import Program, Shardings, TrainState
from jaxbench.core.schema import CompileReport, StepWork
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import KEY, Batch, TrainWorkload
from jaxbench.errors import UserError, present
from jaxbench.hlo import collective_counts, operations
from jaxbench.hlo.module import ALIKE, INSTEAD, ONE_IN, parse
from jaxbench.hlo.operations import ATTENTIONS, UNMASKED
from jaxbench.measure.compile_times import Loaded, loading
from jaxbench.measure.expected_communication import gradient_bytes
from jaxbench.parallel.layout import canonical_avals
from jaxbench.parallel.optimizer import unused_gradients
from jaxbench.processes.group import ProcessGroup
from jaxbench.workloads import flops
from jaxbench.workloads.flops import Products
from jaxbench.workloads.jaxprs import equations

T = TypeVar("T")
# Locations are in the metadata of each instruction and, in newer versions of XLA, in numbered tables before them.
_TABLES = "FileNames|FunctionNames|FileLocations|StackFrames"
_SOURCE_LINES = re.compile(rf', metadata=\{{(?:"[^"]*"|[^}}"])*\}}|^\d+ .*\n|^(?:{_TABLES})\n', re.MULTILINE)
# The scope of a conditional is the last but one part of its name, also if it is a loop; that of a kernel may be any.
_SCOPE = re.compile(rf'({ALIKE}|{INSTEAD}|{ONE_IN}\d+)/(?:cond|while)"|({UNMASKED})/[^"]*pallas_call')


@dataclass(frozen=True)
class CompiledStep:
    """The executable, which cannot retrace, and its compile report (`first_run_s` is still 0).

    hlo: the text of the optimized module. inputs: the shapes and shardings of the state and batch that it takes.
    host_calls: its requests to the host. loaded: what came from the compilation cache, so that compile_s is no compile
    time; None: it was compiled.
    work: what it does, as far as its text and its jaxpr say.
    """

    call: Callable[[Any, Any], tuple[Any, Any]]
    report: CompileReport
    hlo: str = ""
    inputs: tuple[TrainState, Batch] | None = None
    host_calls: tuple[str, ...] = ()
    loaded: Loaded | None = None
    work: StepWork = StepWork()

    @property
    def text(self) -> str:
        """The text of the optimized module without source locations, which depend on the caller of the compiler."""
        return without_source_lines(self.hlo)

    @property
    def sha256(self) -> str:
        """The digest of `text`: equal for equal programs, in any process."""
        return digest_of(self.hlo)


def without_source_lines(hlo: str) -> str:
    """The text without metadata, except for the scopes that say how often a branch runs and what a kernel masks."""
    return _SOURCE_LINES.sub(_scope, hlo)


def _scope(found: re.Match[str]) -> str:
    """The name scope of an instruction's metadata, without paths and lines of the source."""
    scope = _SCOPE.search(found[0])
    return f', metadata={{op_name="{next(filter(None, scope.groups()))}/"}}' if scope else ""


def digest_of(hlo: str) -> str:
    """The digest of an optimized module, without source locations."""
    return hashlib.sha256(without_source_lines(hlo).encode()).hexdigest()


def with_sharding(avals: T, sharding: Shardings) -> T:
    shardings = jax.tree.broadcast(sharding, avals)
    return jax.tree.map(lambda a, s: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s), avals, shardings)


@dataclass(frozen=True, kw_only=True)
class StatedWork:
    """The numbers of a step that no compiler knows. flops: of the global batch; None: those of the compiled products.

    gradient_bytes: that data parallelism must reduce. model: the products of the model. None: unknown.
    """

    parameters: int = 0
    flops: float | None = None
    gradient_bytes: int | None = None
    model: Products | None = None

    @classmethod
    def of(
        cls, workload: TrainWorkload, global_batch: int, devices: int, part: str = "step", *, count: bool = True
    ) -> StatedWork:
        """part: of the step, a value of the lever. count: the model's products, which takes up to seconds; without a
        formula they are counted anyway."""
        params, _ = jax.eval_shape(workload.init, KEY)
        formula, model = workload.flops_per_example is not None, None
        stated = example_flops(workload, global_batch) * global_batch if formula else None
        if count or not formula:
            # Gradients that the optimizer does not use are not computed, as under the lever `freeze`.
            updates = part in ("step", "local")
            unused = unused_gradients(workload, canonical_avals(workload)) if updates else frozenset[int]()
            model = flops.of_workload(workload, global_batch, part, unused=unused, devices=devices)
            if stated and (unused or part in ("forward", "inference")):  # the formula is of a step that trains all
                whole = flops.of_workload(workload, global_batch).total
                stated *= model.total / whole if whole else 1.0
        return cls(
            parameters=sum(leaf.size for leaf in jax.tree.leaves(params)),
            flops=stated,
            gradient_bytes=gradient_bytes(workload.reduced(params), devices),
            model=model,
        )

    def flops_of(self, work: StepWork) -> float:
        """The FLOPs of a step: those that are stated, else those of the model's products that the step has."""
        if self.flops is not None:
            return self.flops
        if self.model is None:
            return sum(work.product_flops.values())
        return self.model.total if work.model_flops is None else work.model_flops


def _avals(workload: TrainWorkload | StatedWork, program: Program, global_batch: int) -> tuple[TrainState, Any]:
    """Shapes and shardings of state and batch."""
    if program.avals is not None:
        return program.avals()
    state = with_sharding(jax.eval_shape(program.init, KEY), program.state_sharding)
    if isinstance(workload, StatedWork):  # a program without a batch
        return state, {}
    batch = jax.eval_shape(program.put, workload.batch_avals(global_batch))  # it may add an axis of devices
    return state, with_sharding(batch, program.batch_sharding)


def compile_step(
    workload: TrainWorkload | StatedWork,
    program: Program,
    global_batch: int,
    *,
    options: dict[str, Any] | None = None,
    asked: int | None = None,
    stated: StatedWork | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> CompiledStep:
    """Traces, lowers and compiles `program.step` for a batch of `global_batch` examples; runs nothing.

    workload: or its numbers, for a program that has its own `avals`. options: compiler options. asked: the number of
    devices of the point; None: the size of the mesh. stated: of the workload, if it is known already. clock: seconds.
    """
    devices = program.mesh.size
    # Outside of the context: with explicit sharding, some operations cannot be traced without a layout.
    if isinstance(workload, StatedWork):
        stated = workload
    elif stated is None:
        stated = StatedWork.of(workload, global_batch, asked or devices)
    with program.context():
        state, batch = _avals(workload, program, global_batch)
        start = clock()  # after the shapes are known: they are no part of tracing
        trace = getattr(program.step, "trace", None)  # a pmapped function cannot be traced separately from its lowering
        traced = trace(state, batch) if trace else None
        traced_at = clock()
        lowered = traced.lower() if traced is not None else program.step.lower(state, batch)
        lowered_at = clock()
        with loading() as loads:
            compiled = lowered.compile(options) if options else lowered.compile()
        compiled_at = clock()
    # Everything below reads the finished executable: none of it is part of the times above.
    memory, hlo = present(compiled.memory_analysis()), present(compiled.as_text())
    module = parse(hlo)
    # XLA's own count omits products that its CPU compiler hands to a library, so the text is counted, too.
    counted = operations.count(module)
    products = None if counted is None else counted * devices  # the text is the program of one device
    work = work_of(None if traced is None else traced.jaxpr.jaxpr, stated, products, devices, batch)
    report = CompileReport(
        trace_s=traced_at - start if trace else None,
        lower_s=lowered_at - traced_at,
        compile_s=compiled_at - lowered_at,
        first_run_s=0.0,  # filled in by the bench, which runs it
        parameters=stated.parameters,
        flops_per_step=stated.flops_of(work),
        compiler_flops_per_step=_counted(compiled, "flops", devices),
        collectives=collective_counts.count(module, program.mesh.shape),
        expected_gradient_bytes=stated.gradient_bytes,
        argument_bytes=memory.argument_size_in_bytes,
        output_bytes=memory.output_size_in_bytes,
        temp_bytes=memory.temp_size_in_bytes,
        alias_bytes=memory.alias_size_in_bytes,
        # What one device holds while the step runs. The compiler's own figure is recorded separately. On the CPU it
        # omits scratch. On a TPU it can be larger or smaller, because scratch reuses the memory of other arrays.
        peak_bytes=peak_bytes(memory),
        compiler_bytes_per_step=_counted(compiled, "bytes accessed", devices),
        product_flops_per_step=products,
        metrics=len(jax.tree.leaves(lowered.out_info[1])),
        compiler_peak_bytes=getattr(memory, "peak_memory_in_bytes", None) or None,  # 0: not computed
        attention="+".join(kind for kind, names in ATTENTIONS.items() if re.search(names, hlo)),
    )
    names = callback_names(traced.jaxpr) if traced is not None else {}
    host_calls = operations.host_calls(module, names, platform=program.mesh.devices.flat[0].platform)
    return CompiledStep(compiled, report, hlo, (state, batch), host_calls, loads.one, work)


def work_of(
    jaxpr: core.Jaxpr | None, stated: StatedWork, products: float | None, devices: int, batch: ArrayTree
) -> StepWork:
    """What a step does according to its jaxpr and its text.

    jaxpr: None for a pmapped step, which has none apart from its model's. products: FLOPs of the products in the
    compiled text, all devices; None: unknown. batch: the last arguments of the step.
    """
    if jaxpr is not None:
        written = flops.products(jaxpr, devices=devices)
    else:
        written = stated.model or Products({})
    total = written.total if products is None else products
    paths = [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in jax.tree.leaves_with_path(batch)]
    read = flops.used_inputs(jaxpr)[-len(paths) :] if paths and jaxpr is not None else [True] * len(paths)
    idle = tuple(path for path, is_read in zip(paths, read, strict=True) if not is_read)
    counted = products is not None and not written.opaque
    model = stated.model.total if stated.model is not None and stated.model.all_counted else None
    if model is not None and counted:  # XLA leaves out a product that is written twice, or has constant factors
        model = min(model, total + written.vectors)
    return StepWork(
        product_flops={dtype: share * total for dtype, share in written.shares.items()},
        all_products_counted=counted,
        vector_flops=written.vectors,
        model_flops=model,
        recomputes=jaxpr is not None and flops.recomputes(jaxpr),
        reads_batch=False if idle and len(idle) == len(paths) else None,
        idle_fields=idle,
    )


def callback_names(closed: core.ClosedJaxpr) -> dict[str, list[str]]:
    """The names of the Python functions that a step calls back, by primitive."""
    names: dict[str, list[str]] = {}
    for equation in equations(closed.jaxpr):
        function = getattr(equation.params.get("callback"), "callback_func", None)
        if function is not None:
            known = names.setdefault(equation.primitive.name, [])
            name = getattr(function, "__name__", type(function).__name__)
            known.extend([name] if name not in known else [])
    return names


def example_flops(workload: TrainWorkload, global_batch: int | None = None) -> float:
    """FLOPs of one example in a batch, by the workload's own formula.

    Without a formula they are counted from the products in the jaxpr of the gradient, without recomputation.
    global_batch: None: the fewest examples that the model can take.
    """
    global_batch = global_batch or workload.least
    if workload.flops_per_example is not None:
        return workload.flops_per_example + global_batch * workload.flops_per_pair
    return flops.of_workload(workload, global_batch).total / global_batch


def peak_bytes(memory: Any) -> int:
    """Arguments, results and scratch of one device, counting shared memory once."""
    buffers = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return buffers - memory.alias_size_in_bytes


def _counted(compiled: Any, what: str, devices: int) -> float | None:
    """XLA's own count for one step on all devices; None if it has none."""
    # It is that of one device's program. A number that is not above 0 is no count.
    cost = compiled.cost_analysis()
    counted = float(cost.get(what, 0)) if cost else 0.0
    return counted * devices if math.isfinite(counted) and counted > 0 else None


def op_by_op(report: CompileReport) -> CompileReport:
    """The compile report without the compiler's numbers, for a step that is never compiled as a whole."""
    return dataclasses.replace(
        report,
        compiler_flops_per_step=None,
        compiler_bytes_per_step=None,
        product_flops_per_step=None,
        temp_bytes=None,
        peak_bytes=None,
    )


def require_one_program(members: ProcessGroup, compiled: CompiledStep) -> None:
    """Raises UserError, in every process, if one has compiled another program: their collectives would not match."""
    first, *others = members.all_gather(compiled.sha256)
    if wrong := [number for number, other in zip(members.processes[1:], others, strict=True) if other != first]:
        raise UserError(
            f"process {wrong[0]} compiled another program of this step than process {members.processes[0]}: use the "
            "same versions, flags and hardware for all processes."
        )
