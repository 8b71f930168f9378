# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From a point's levers to what is measured: the workload they make of the experiment, and its Program."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from jaxbench import discovery, parallel
from jaxbench.errors import UserError
from jaxbench.levers import DEFAULTS
from jaxbench.parallel import axes, parts, reduction
from jaxbench.parallel.program import Program, keep_barriers
from jaxbench.workloads import inspection
from jaxbench.workloads import levers as transforms
from jaxbench.workloads.base import KEY, TrainWorkload
from jaxbench.workloads.levers.freeze import stateful

CHANGES = ("precision", "remat", "accumulate", "freeze", "reduction")  # the levers that a workload depends on
# XLA's fusion passes, by the names that its CPU and GPU compilers know them by.
FUSION_PASSES = (
    *("fusion", "priority-fusion", "multi_output_fusion"),
    *("horizontal_loop_fusion", "horizontal_input_fusion"),
)


def build_workload(config: ConfigDict, experiment: str, *, grown: int = 1) -> TrainWorkload:
    """Loads the experiment (a name or a path) and builds its workload. grown: for how many devices its model is made
    larger, by its own `grow`.

    Raises UserError if it returns another thing than a TrainWorkload, or has no `grow`.
    """
    if grown > 1:
        module = discovery.load_experiment(experiment)
        if not hasattr(module, "grow"):
            raise UserError(f"--config.weak=model: '{experiment}' defines no grow(config, devices): use batch.")
        with discovery.explained(module):
            config = module.grow(copy.deepcopy(config), grown)
    workload = discovery.build(experiment, config)
    if not isinstance(workload, TrainWorkload):
        raise UserError(f"build(config) of '{experiment}' returned {type(workload).__name__}, not a TrainWorkload.")
    return workload


def inspected(config: ConfigDict, experiment: str) -> TrainWorkload:
    """`build_workload`, and a look at what it made. Raises UserError for the first thing that is not as it must be."""
    workload = build_workload(config, experiment)
    inspection.inspect(workload, batch=config.batch)
    return workload


class Arms:
    """The workloads that the arms of one experiment are, each built once."""

    def __init__(self, config: ConfigDict, experiment: str, device: jax.Device):
        """Raises UserError when the experiment's own settings make no workload."""
        self._config, self._experiment, self._device = config, experiment, device
        self._built: dict[str, TrainWorkload] = {}

    def config(self, levers: dict[str, str]) -> ConfigDict:
        """The experiment's config with one value for each lever: the arm's, or the default."""
        config = copy.deepcopy(self._config)
        with config.unlocked():
            config.lever.update({**DEFAULTS, **levers, "ladder": ""})
        return config

    def workload(self, levers: dict[str, str], grown: int = 1) -> TrainWorkload:
        """Raises UserError for a lever that this model or device does not have."""
        key = json.dumps([grown, {name: levers.get(name) for name in CHANGES}], sort_keys=True)
        if key not in self._built:
            workload = build_workload(self.config(levers), self._experiment, grown=grown)
            device = {"platform": self._device.platform, "device_kind": self._device.device_kind}
            self._built[key] = transforms.apply(workload, levers, **device)
        return self._built[key]

    def reference(self, levers: dict[str, str], grown: int = 1, *, draws: bool = False) -> TrainWorkload:
        """The same mathematics without any lever that must not change it: what a correct arm agrees with.

        Micro-batches change nothing but the statistics of a model that has some, as each is normalised by its own, and
        what a loss draws, as each has a key of its own. draws: the loss does.
        """
        plain = self.workload({**levers, "remat": "none", "accumulate": "1"}, grown)
        _, model_state = jax.eval_shape(plain.init, KEY)
        return self.workload({**levers, "remat": "none"}, grown) if draws or stateful(model_state) else plain


def build_program(workload: TrainWorkload, strategy: str, devices: list[jax.Device], levers: dict[str, str]) -> Program:
    """The Program of an arm. Raises UserError for levers that this strategy cannot follow."""
    part, execution = levers.get("part", "step"), levers.get("execution", "donated")
    if part != "step":
        if strategy != "shard_map":
            raise UserError(
                f"--config.lever.part={part} takes a step apart that states its communication itself: use "
                "--config.strategy=shard_map."
            )
        return parts.build(workload, devices, part)
    way = levers.get("reduction", "strategy")
    if way != "strategy" and (strategy != "shard_map" or execution not in ("donated", "unfused")):
        raise UserError(
            f"--config.lever.reduction={way} is another reduction of the strategy shard_map, in a compiled step: use "
            "--config.strategy=shard_map and --config.lever.execution=donated."
        )
    if way != "strategy":
        return reduction.build(workload, devices, way)
    program = parallel.load(strategy).build(workload, devices, **_settings(strategy, len(devices), levers))
    if execution in ("donated", "unfused"):
        return program
    if strategy == "pmap":
        raise UserError(
            f"--config.lever.execution={execution} is not possible under pmap: use --config.strategy=jit_auto."
        )
    outputs: Any = program.state_sharding, NamedSharding(program.mesh, PartitionSpec())
    return dataclasses.replace(program, step=jax.jit(program.step.__wrapped__, out_shardings=outputs))


def _settings(strategy: str, devices: int, levers: dict[str, str]) -> dict[str, Any]:
    """What a strategy is told besides the workload. Raises UserError for a lever that it does not have."""
    sizes = axes.sizes(strategy, devices, levers.get("mesh", "strategy"))
    schedule, sequence = levers.get("schedule", "gpipe"), levers.get("sequence_parallel", "off")
    if schedule != "gpipe" and "stage" not in sizes:
        raise UserError(
            f"--config.lever.schedule={schedule} is of a pipeline: use --config.strategy=pipeline, or a mesh with the "
            "axis stage."
        )
    if sequence != "off" and ("tensor" not in sizes or "stage" in sizes):
        raise UserError(
            f"--config.lever.sequence_parallel={sequence} is of products split over the axis tensor, outside a "
            "pipeline: use --config.strategy=tensor."
        )
    known: dict[str, Any] = {"sizes": sizes, "schedule": schedule, "sequence": sequence == "on"}
    takes = {"pipeline": ("schedule",), "tensor": ("sequence",), "hybrid": tuple(known)}
    return {name: known[name] for name in takes.get(strategy, ())}


def disabled_passes(levers: dict[str, str], program: Program) -> tuple[str, ...]:
    """The compiler's passes that an arm is compiled without, its Program's own among them."""
    passes = program.disabled_passes
    if levers.get("execution") in ("unfused", "eager"):
        passes += FUSION_PASSES
    if levers.get("remat", "none") != "none" or levers.get("accumulate", "1") != "1":
        passes += keep_barriers(program.mesh)
    return passes
