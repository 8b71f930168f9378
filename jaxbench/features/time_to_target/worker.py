# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The child process that runs trainings to a target, one after the other, on devices that it starts once.

The protocol is that of `processes.server`. The requests are

    {"do": "describe", "experiment", "config"}        -> {"examples": in the training split}
    {"do": "train", "experiment", "config", "workdir", "command"} -> how it ended
"""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.errors import Diverged
from jaxbench.features.training.metrics import METRICS
from jaxbench.features.training.plan import count, read_data
from jaxbench.features.training.train import ProcessRole, trained
from jaxbench.measure.arm import build_workload
from jaxbench.processes import server
from jaxbench.workloads import inspection


@dataclass(frozen=True)
class Trainer:
    """The devices of this process, and the description of the machine for the manifest of each training."""

    devices: list[jax.Device]
    machine: dict[str, Any]


def made(setup: dict[str, Any], devices: list[jax.Device]) -> Trainer:
    """The trainer. setup: as in `server`, with "cache": a folder for compiled programs, which all seeds share."""
    jax.config.update("jax_compilation_cache_dir", setup["cache"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return Trainer(devices, setup["machine"])


def carry_out(trainer: Trainer, request: dict[str, Any]) -> dict[str, Any]:
    """Answers a request. A training also ends when its loss is no longer finite."""
    if request["do"] == "describe":
        config = ConfigDict(request["config"])
        workload = build_workload(config, request["experiment"])
        inspection.require_trainable(workload)
        return {"examples": count(read_data(workload, seed=config.seed).train)}
    about = {**request, "machine": trainer.machine, "begun_ns": time.time_ns()}
    try:
        result = trained(about, trainer.devices, Console(file=io.StringIO()), ProcessRole())
    except Diverged as error:
        (Path(request["workdir"]) / METRICS).touch()
        return {"finished": True, "reached": False, "diverged": error.step}
    return {"finished": result.finished, "reached": result.reached, "diverged": None}


if __name__ == "__main__":
    server.main(made, carry_out)
