# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The answers of a worker to `jaxbench try`: a description of the model, and verdicts on a point without timing."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.machine.start import run_once_options
from jaxbench.measure import first_step
from jaxbench.measure.compile_report import example_flops
from jaxbench.parallel.program import Program
from jaxbench.runner.bench import Bench
from jaxbench.runner.plan import Point
from jaxbench.runner.stages import stage
from jaxbench.workloads import inspection
from jaxbench.workloads.adapters import flax_models
from jaxbench.workloads.base import PyTree, TrainWorkload

NEEDS_A_MESH = "hybrid"
LARGEST = 3  # number of the largest parameters that are listed


def describe(bench: Bench) -> dict[str, Any]:
    """Sizes, the kind of loss, and the strategies that are tried. Raises StageError."""
    plain = bench.plain
    with stage("model"):
        loss, draws = bench.proof.loss_kind.label, bench.proof.draws
    params, model_state = jax.eval_shape(plain.init, bench.key)
    largest = sorted(jax.tree.leaves_with_path(params), key=lambda found: -found[1].size)[:LARGEST]
    return {
        "name": plain.name,
        "unit": plain.unit,
        "parameters": _numbers(params),
        "arrays": len(jax.tree.leaves(params)),
        "largest": [(jax.tree_util.keystr(at, simple=True, separator="/"), _shape(leaf)) for at, leaf in largest],
        "flops_per_example": example_flops(plain),
        "loss": loss,
        "draws": draws,
        "state_numbers": _numbers(model_state),
        "training": _training(plain),
        "notes": [sentence] if (sentence := flax_models.named_axes_sentence(plain.init)) else [],
        "strategies": [name for name in parallel.of_model(plain) if name != NEEDS_A_MESH],
    }


def attempt(bench: Bench, placed: dict[str, Any]) -> dict[str, Any]:
    """The verdicts on a point, compiled without optimization, and the bytes that one device sends and holds.

    Every point starts with the same state, which its program loads. The program's own `init` is traced but never
    compiled: its values come from the model, and `load` gives the same layout. Raises StageError.
    """
    point = Point(**placed)
    workload, program, compiled = bench.compile(point, run_once_options())
    with stage("check"):
        start = bench.proof.start(workload)
        loaded = dataclasses.replace(program, init=lambda key: program.load(start))
        batch = bench.batch(point)
        checks = bench.proof.verdicts(point, 1, loaded, compiled, batch)
        checks = first_step.explained(checks, {}, workload, key=bench.key, batch=batch, device=bench.device)
    return {
        "checks": [dataclasses.asdict(check) for check in checks],
        "sent_bytes": sum(each.wire_bytes for each in compiled.report.collectives),
        "state_bytes": _state_bytes(program, bench.key),
        "peak_bytes": compiled.report.peak_bytes,
    }


def _training(workload: TrainWorkload) -> str:
    """A sentence that says whether the model can also be trained, or what it lacks."""
    try:
        inspection.require_trainable(workload)
    except UserError as error:
        return str(error)
    return f"'{workload.name}' can also be trained: jaxbench train."


def _state_bytes(program: Program, key: jax.Array) -> int:
    """The bytes of parameters and optimizer state on one device."""
    state, shardings = jax.eval_shape(program.init, key), program.state_sharding
    placed = zip(jax.tree.leaves(state), jax.tree.leaves(jax.tree.broadcast(shardings, state)), strict=True)
    return sum(math.prod(sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize for leaf, sharding in placed)


def _numbers(tree: PyTree) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def _shape(leaf: jax.ShapeDtypeStruct) -> str:
    return "x".join(map(str, leaf.shape)) or "one number"
