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
from jaxbench.levers.accumulate import ACCUMULATE
from jaxbench.levers.execution import EXECUTION
from jaxbench.levers.mesh import MESH
from jaxbench.levers.part import PART
from jaxbench.levers.reduction import REDUCTION
from jaxbench.levers.remat import REMAT
from jaxbench.levers.schedule import SCHEDULE
from jaxbench.levers.sequence_parallel import SEQUENCE_PARALLEL
from jaxbench.parallel import reduction, step_phases
from jaxbench.parallel.program import Program, keep_barriers
from jaxbench.workloads import inspection
from jaxbench.workloads import levers as transforms
from jaxbench.workloads.base import KEY, TrainWorkload
from jaxbench.workloads.levers.freeze import stateful

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
        key = json.dumps([grown, {name: levers.get(name) for name in transforms.CHANGES}], sort_keys=True)
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
        plain = self.workload({**levers, REMAT.name: REMAT.default, ACCUMULATE.name: ACCUMULATE.default}, grown)
        _, model_state = jax.eval_shape(plain.init, KEY)
        return self.workload({**levers, REMAT.name: REMAT.default}, grown) if draws or stateful(model_state) else plain


def build_program(workload: TrainWorkload, strategy: str, devices: list[jax.Device], levers: dict[str, str]) -> Program:
    """The Program of an arm. Raises UserError for levers that this strategy cannot follow."""
    part, execution, mean = PART.of(levers), EXECUTION.of(levers), REDUCTION.of(levers)
    settings = parallel.settings(
        strategy, len(devices), MESH.of(levers), SCHEDULE.of(levers), sequence=SEQUENCE_PARALLEL.of(levers)
    )
    if mean is not None and (strategy != "shard_map" or part != "step" or execution not in ("donated", "unfused")):
        raise UserError(
            f"--config.lever.reduction={levers[REDUCTION.name]} is another reduction of the strategy shard_map, in a "
            "whole compiled step: use --config.strategy=shard_map, part=step and execution=donated."
        )
    if part != "step":
        if strategy != "shard_map":
            raise UserError(
                f"--config.lever.part={part} takes a step apart that states its communication itself: use "
                "--config.strategy=shard_map."
            )
        return step_phases.build(workload, devices, part)
    if mean is not None:
        return reduction.build(workload, devices, *mean)
    program = parallel.load(strategy).build(workload, devices, **settings)
    if execution in ("donated", "unfused"):
        return program
    if strategy == "pmap":
        raise UserError(
            f"--config.lever.execution={execution} is not possible under pmap: use --config.strategy=jit_auto."
        )
    outputs: Any = program.state_sharding, NamedSharding(program.mesh, PartitionSpec())
    return dataclasses.replace(program, step=jax.jit(program.step.__wrapped__, out_shardings=outputs))


def disabled_passes(levers: dict[str, str], program: Program) -> tuple[str, ...]:
    """The compiler's passes that an arm is compiled without, its Program's own among them."""
    passes = program.disabled_passes
    if EXECUTION.of(levers) in ("unfused", "eager"):
        passes += FUSION_PASSES
    if REMAT.of(levers) != REMAT.default or ACCUMULATE.of(levers) > 1:
        passes += keep_barriers(program.mesh)
    return passes
