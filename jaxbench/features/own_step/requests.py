# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The requests that only a bench of a user's step understands: its reference, and what `jaxbench try` shows of it."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp

from jaxbench.core.point import Point
from jaxbench.core.schema import Verdict
from jaxbench.core.workload import Batch
from jaxbench.digits import size
from jaxbench.errors import of_kind, present
from jaxbench.features.own_step import program as programs
from jaxbench.features.own_step import reference
from jaxbench.features.own_step.program import OwnProgram
from jaxbench.features.own_step.recipe import OwnBench
from jaxbench.measure import memory, step_work
from jaxbench.measure.recipe import BuiltStep
from jaxbench.processes import messages
from jaxbench.processes.group import ProcessGroup
from jaxbench.processes.messages import Explained, Fields, Request, Same
from jaxbench.processes.server import stage

VISIT = 3  # steps of a visit in `try`, which times nothing


def carry_out(bench: OwnBench, request: Request) -> Same | Explained | None:
    """The answer to one of these requests; None for all others. Also takes the reference that a request brings."""
    if told := getattr(request, "reference", None):
        file = Path(told.get("file", ""))
        members = ProcessGroup.of(bench.devices[: Point.from_json(request.point).devices])  # type: ignore[attr-defined]
        if not members.all(file.exists()):  # one process that lacks it would leave the others in a collective
            told = {"why": f"not all hosts see '{file}': give a --workdir in a folder that they share"}
        bench.steps.proof.reference = told
    match request:
        case messages.Refer():
            return refer(bench, request.point, request.file, runs=request.runs)
        case messages.Explain():
            return explain(bench, request.point)
    return None


def refer(bench: OwnBench, placed: Fields, file: str, *, runs: bool = True) -> Same:
    """Writes the reference for other device counts into a file, as `Refer` says. Raises StageError."""
    built = bench.compiler.compile(Point.from_json(placed), accepted=True)
    program, compiled = of_kind(OwnProgram, built.program), built.compiled
    with stage("check"):
        memory.require(compiled.call, bench.device.platform)
        reference.reference(program, compiled.call if runs else None).save(Path(file))
        memory.give_back()  # the point itself needs it next
    return Same(same=True)


def explain(bench: OwnBench, placed: Fields) -> Explained:
    """What `jaxbench try` shows of a point. Raises StageError."""
    point = Point.from_json(placed)
    built = bench.compiler.compile(point)
    program, compiled = of_kind(OwnProgram, built.program), built.compiled
    checks = _as_run(bench, built)
    with stage("check"):
        work = bench.steps.work(built, {})
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
        name=bench.steps.step.name,
        examples=point.global_batch,
        facts=tuple(facts),
        cells=cells,
        checks=checks,
        flops=report.flops_per_step,
        work=work,
    )


def _as_run(bench: OwnBench, built: BuiltStep) -> tuple[Verdict, ...]:
    """The checks that a run makes of a point: before the first round, and of the state after it. Raises StageError.

    They call what a run calls, such as `init` after a step has donated its state.
    """
    with stage("check"):
        _, _, outputs = bench.first_run(built, {})
        checks = bench.steps.verdicts(built, {}, outputs)
    with stage("measure"):
        for check in (True, False):  # a run visits a point several times
            with bench.running(built) as (call, state, supply):
                for _ in range(VISIT):
                    state, _ = jax.block_until_ready(call(state, supply))
                after, _ = bench.check_state(built, state, VISIT, check=check)
            del state
            checks += after
    return checks


def what_is_compared(parameters: Batch, others: Batch) -> str:
    """ "the movement of these 2 arrays and of 4 others, and 1 array of whole numbers exactly"."""
    arrays = {**parameters, **others}
    whole = {path for path, x in arrays.items() if not jnp.issubdtype(x.dtype, jnp.inexact)}
    mine, more = len(parameters.keys() - whole), len(others.keys() - whole)
    of_others = f" and of {more} other{'s' if more > 1 else ''}" if more else ""
    exact = f", and {len(whole)} array{'s' if len(whole) > 1 else ''} of whole numbers exactly" if whole else ""
    return f"the movement of {'these ' if mine == len(parameters) else ''}{mine} arrays{of_others}{exact}"


def specs(shardings: list[str]) -> str:
    """ "12 as PartitionSpec(), 2 as PartitionSpec('fsdp',)"."""
    return ", ".join(f"{count} as {text}" for text, count in Counter(shardings).most_common(4))
