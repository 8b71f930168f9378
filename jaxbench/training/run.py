# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench train`: from an experiment and a config to a trained model in a folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.errors import MoreCollectives, UserError
from jaxbench.levers import LEVERS
from jaxbench.machine import manifest as manifest_lib
from jaxbench.machine import start
from jaxbench.parallel.program import Program
from jaxbench.runner import known_options, pieces, plan
from jaxbench.runner.arm import Arms, build_program, inspected
from jaxbench.runner.proof import Proof
from jaxbench.training import restart
from jaxbench.training.account import process_begun_ns
from jaxbench.training.checkpoint import saved_steps
from jaxbench.training.folder import CHECKPOINTS
from jaxbench.training.session import Session
from jaxbench.training.train import train as train_workload
from jaxbench.workloads.base import TrainWorkload


def train(experiment: str, config: ConfigDict, workdir: Path, console: Console) -> int:
    """Trains to ``config.train.target`` on ``config.mesh.devices`` devices. Raises UserError.

    Returns the exit code: 0 when the target is reached, 1 when it is not, 130 when stopped by a signal.
    """
    strategy = str(config.train.strategy)
    parallel.load(strategy)
    settings = config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model())
    levers = levers_of(settings)
    machine, before = manifest_lib.probe(settings.platform), restart.Before()
    count, collectives = device_count(settings, machine, config.train.batch), restart.concurrent_collectives()
    devices = start.start(machine["platform"], count, concurrent_collectives=collectives)
    known_options.require(levers, devices[0])
    source = discovery.experiment_path(experiment)
    session = Session(
        command=["jaxbench", *sys.argv[1:]],
        devices=len(devices),
        strategy=strategy,
        levers=levers,
        experiment_file=source.name,
        experiment_sha256=discovery.digest(experiment),
        machine=machine,
        begun_ns=process_begun_ns(),
    )
    arms = Arms(config, experiment, devices[0])
    plain = inspected(arms.config({}), experiment)
    proof = Proof(arms, plain, devices, jax.random.PRNGKey(config.seed), own=False)

    def build(workload: TrainWorkload) -> Program:
        program = build_program(workload, strategy, devices, levers)
        pieces.require(workload, program, proof.loss_kind)
        return program

    about: dict[str, Any] = {"config": config, "folder": workdir, "console": console, "session": session}
    try:
        result = train_workload(arms.workload(levers), build, **about)
    except MoreCollectives as error:
        before.restart(error.count, workdir, console)
    except KeyboardInterrupt:  # the second one, or one before the loop could answer with a checkpoint
        console.print(_interrupted(workdir), highlight=False, soft_wrap=True)
        return 130
    console.print(f"params_sha256: {result.params_sha256}", highlight=False, soft_wrap=True)
    if result.stopped_by:
        return 130
    return 0 if result.reached else 1


def levers_of(settings: config_lib.Settings) -> dict[str, str]:
    """The levers of the training. Raises UserError for several values, or for one that training cannot use."""
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


def _interrupted(workdir: Path) -> str:
    steps = saved_steps(workdir / CHECKPOINTS)
    if not steps:
        return f"stopped before the first checkpoint: the same command with WORKDIR={workdir} starts again."
    return f"stopped at once: the same command with WORKDIR={workdir} continues from the checkpoint at step {steps[0]}."


def device_count(settings: config_lib.Settings, machine: dict[str, Any], batch: int) -> int:
    """The chosen device count, or the largest that divides the batch and has a core or an accelerator per device."""
    if settings.mesh_processes != "1":
        raise UserError(f"--config.mesh.processes={settings.mesh_processes}: training runs in one process: use 1.")
    if settings.devices is not None:
        if len(settings.devices) > 1:
            *_, last = words = [str(count) for count in settings.devices]
            raise UserError(f"--config.mesh.devices={','.join(words)}: training uses one device count, such as {last}.")
        return plan.device_counts(settings, machine)[0]
    limit = machine["cores"] if machine["platform"] == "cpu" else machine["devices"]
    return max(n for n in plan.device_counts(settings, machine) if n == 1 or (n <= limit and batch % n == 0))
