# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One process of a training: starts its devices, builds model and program, and trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery, native_log, parallel
from jaxbench.errors import UserError
from jaxbench.levers import LEVERS
from jaxbench.machine import start
from jaxbench.parallel import multihost
from jaxbench.parallel.program import Program
from jaxbench.processes.group import ProcessGroup
from jaxbench.runner.arm import Arms, build_program, inspected, require_options
from jaxbench.runner.proof import Proof, require_micro_batchable
from jaxbench.training.session import Session
from jaxbench.training.train import ProcessRole, TrainResult
from jaxbench.training.train import train as train_workload
from jaxbench.workloads.base import TrainWorkload


def take(setup: dict[str, Any], console: Console, part: ProcessRole) -> TrainResult:
    """Starts the devices and trains. Raises UserError, and MoreCollectives when this process needs more threads.

    setup: "platform", "devices", "concurrent_collectives" and "world" as in `worker`; "experiment", "config",
    "workdir"; "machine", "command", "begun_ns": of the `Session`.
    """
    threads, place = setup["concurrent_collectives"], setup.get("world")
    with native_log.aside():
        devices = start.start(setup["platform"], setup["devices"], concurrent_collectives=threads, place=place)
    result = trained(setup, devices, console, part)
    console.print(f"params_sha256: {result.params_sha256}", highlight=False, soft_wrap=True)
    return result


def trained(setup: dict[str, Any], devices: list[jax.Device], console: Console, part: ProcessRole) -> TrainResult:
    """Trains on devices that have started. setup and errors: as in `take`."""
    config, experiment = ConfigDict(setup["config"]), setup["experiment"]
    strategy = str(config.train.strategy)
    levers = levers_of(config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model()))
    part.members, mine = ProcessGroup.of(devices), multihost.first_here(devices)
    require_options(levers, mine)
    session = Session(
        command=setup["command"],
        devices=len(devices),
        processes=len(part.members.processes),
        strategy=strategy,
        levers=levers,
        experiment_file=discovery.experiment_path(experiment).name,
        experiment_sha256=discovery.digest(experiment),
        machine=setup["machine"],
        begun_ns=setup["begun_ns"],
    )
    arms = Arms(config, experiment, mine, warmup=max(0, config.train.warmup))
    plain = inspected(arms.config({}), experiment)
    proof = Proof(arms, plain, devices, jax.random.PRNGKey(config.seed), own=False)

    def build(workload: TrainWorkload) -> Program:
        program = build_program(workload, strategy, devices, levers)
        require_micro_batchable(workload, program, proof.loss_kind)
        return program

    about: dict[str, Any] = {"config": config, "folder": Path(setup["workdir"]), "console": console}
    return train_workload(arms.workload(levers), build, **about, session=session, part=part)


def code_of(result: TrainResult) -> int:
    """The exit code: 0 when the target is reached, 1 when it is not, 130 when stopped by a signal."""
    if result.stopped_by:
        return 130
    return 0 if result.reached else 1


def levers_of(settings: config_lib.Settings) -> dict[str, str]:
    """The levers of the training. Raises UserError for several values, or for a value that training cannot use."""
    if settings.swept:
        raise UserError(
            f"--config.lever.{settings.swept[0]} has several values: a training takes one, jaxbench run several."
        )
    levers = settings.arms[0].levers
    for name, lever in LEVERS.items():
        if lever.untrained and levers[name] != lever.default:
            raise UserError(
                f"--config.lever.{name}={levers[name]} is not for training, as {lever.untrained}: leave it at "
                f"{lever.default}."
            )
    return levers
