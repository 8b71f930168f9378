# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether an experiment is a user's own step, and which settings such a step refuses."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench import discovery, levers
from jaxbench.config import Settings
from jaxbench.core.schema import OWN
from jaxbench.errors import UserError
from jaxbench.levers import COMPILER
from jaxbench.machine.start import reset_jax_settings
from jaxbench.workloads.own_step import StepWorkload


def load(config: ConfigDict, experiment: str) -> StepWorkload | None:
    """The user's step; None if the experiment is a model. Raises UserError, also for settings that a step refuses."""
    workload = discovery.build(experiment, config)
    reset_jax_settings()  # the experiment's file has run, and may have changed JAX's settings
    if not isinstance(workload, StepWorkload):
        return None
    called = f"build(config) of '{experiment}'"
    if not isinstance(workload.batch, int) or workload.batch < 1:
        raise UserError(f"{called} gives batch={workload.batch!r}: give a number of examples, such as 8.")
    if workload.units_per_example != 1 and workload.unit != "tokens":
        raise UserError(
            f"{called} gives units_per_example={workload.units_per_example} and unit={workload.unit!r}: only tokens "
            "are counted inside of an example, so leave it out."
        )
    return workload


def settle(config: ConfigDict, experiment: str) -> tuple[str, ...]:
    """(OWN,) if the experiment is a user's step; its config then says so. Else (). Raises UserError for settings of a
    model."""
    if config.get("measures") or not (workload := load(config, experiment)):
        return ()
    # A step says itself how it uses the devices. A setting without effect would be measured as if it had one.
    default = Settings.__dataclass_fields__["strategies"].metadata["field"].default
    if config.strategy not in (default, "all", OWN):  # a preset may ask for all
        raise UserError(
            f"--config.strategy={config.strategy}: '{workload.name}' is your own step, which has a mesh of its own: "
            "leave it out."
        )
    for arm in levers.arms(config.lever):
        for name, value in arm.levers.items():
            if name != COMPILER.name and value != levers.DEFAULTS[name]:  # the suite compiles, so its options apply
                raise UserError(
                    f"--config.lever.{name}={value} changes a model, and '{workload.name}' is your own step: change it "
                    "in make(devices, batch)."
                )
    for field, none in (("search", ""), ("depths", ""), ("weak", "batch")):
        if config[field] != none:
            raise UserError(f"--config.{field}={config[field]} needs a model, and '{workload.name}' is your own step.")
    with config.unlocked():
        config.strategy, config.batch, config.accelerator_batch = OWN, workload.batch, 0
    return (OWN,)
