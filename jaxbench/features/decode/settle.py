# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which settings a run of generation refuses."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench import discovery, levers
from jaxbench.errors import UserError
from jaxbench.levers import BATCH, COMPILER, LEVERS, MESH
from jaxbench.parallel.generation import STRATEGIES
from jaxbench.sweep.generation import MEASURES
from jaxbench.workloads import generation
from jaxbench.workloads.generation import GenerationWorkload

_USED = (BATCH.name, MESH.name, COMPILER.name)  # of the levers that training has, too


def settle(config: ConfigDict, experiment: str) -> tuple[str, ...]:
    """The strategies of generation, if the experiment generates; else (). Raises UserError for settings of a
    training."""
    if config.get("measures") != MEASURES:
        return ()
    made = discovery.build(experiment, config)
    if not isinstance(made, GenerationWorkload):
        raise UserError(f"build(config) of '{experiment}' returned {type(made).__name__}, not a GenerationWorkload.")
    if config.scaling != "strong":
        raise UserError(
            f"--config.scaling={config.scaling}: a batch of requests is shared out over devices: use strong, and "
            "several values of --config.lever.batch."
        )
    for arm in levers.arms(config.lever):
        for name, value in arm.levers.items():
            if name in LEVERS and name not in _USED and value != levers.DEFAULTS[name]:
                raise UserError(
                    f"--config.lever.{name}={value} changes a training, and '{config.experiment}' generates: leave it "
                    "out."
                )
        generation.workload(config, arm.levers)
    for field, none in (("search", ""), ("depths", ""), ("weak", "batch"), ("profile", False)):
        if config[field] != none:
            raise UserError(f"--config.{field}={config[field]} needs a training, and '{config.experiment}' generates.")
    return STRATEGIES
