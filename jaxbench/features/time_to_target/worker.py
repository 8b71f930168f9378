# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The child process that runs trainings to a target, one after the other, on devices that it starts once.

The protocol is that of `processes.server`, with the requests of this file.
"""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from pathlib import Path

import jax
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.errors import Diverged, of_kind
from jaxbench.features.training.plan import count, read_data
from jaxbench.features.training.train import ProcessRole, keep_programs, trained
from jaxbench.features.training.trainings import METRICS
from jaxbench.measure.arm import build_workload
from jaxbench.processes import server
from jaxbench.processes.messages import Fields, Message, Request, Setup, TrainSetup
from jaxbench.records.manifest import Machine
from jaxbench.workloads import inspection


class Examples(Message):
    """examples: the number in the training split."""

    examples: int


class HowEnded(Message):
    """finished: False after a signal. diverged: the step at which the loss was no longer finite, if any."""

    finished: bool
    reached: bool
    diverged: int | None


class DescribeModel(Request[Examples]):
    experiment: str
    config: Fields


class TrainModel(Request[HowEnded]):
    experiment: str
    config: Fields
    workdir: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Trainer:
    """The devices of this process, and the description of the machine for the manifest of each training."""

    devices: list[jax.Device]
    machine: Machine


def made(setup: Setup, devices: list[jax.Device]) -> Trainer:
    """The trainer. All its trainings share the folder of compiled programs."""
    keep_programs(setup.cache)  # seeds and learning rates are numbers of the same program
    return Trainer(devices, setup.machine)


def carry_out(trainer: Trainer, request: Request) -> Examples | HowEnded:
    """Answers a request. A training also ends when its loss is no longer finite."""
    if isinstance(request, DescribeModel):
        config = ConfigDict(request.config)
        workload = build_workload(config, request.experiment)
        inspection.require_trainable(workload)
        return Examples(examples=count(read_data(workload, seed=config.seed).train))
    asked = of_kind(TrainModel, request)
    train = TrainSetup(workdir=asked.workdir, command=asked.command, begun_ns=time.time_ns())
    console = Console(file=io.StringIO())  # the parent prints one line for each training, and stdout has the answers
    try:
        result = trained(
            asked.experiment, asked.config, train, trainer.devices, trainer.machine, console, ProcessRole()
        )
    except Diverged as error:
        # A training may diverge before its first row, and a result needs the file.
        (Path(asked.workdir) / METRICS).touch()
        return HowEnded(finished=True, reached=False, diverged=error.step)
    return HowEnded(finished=result.finished, reached=result.reached, diverged=None)


if __name__ == "__main__":
    server.main((DescribeModel, TrainModel), made, carry_out)
