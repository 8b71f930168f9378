# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The suite's arm: a training step, measured as in `jaxbench run`, in the timer's blocks.

On the CPU there are two ways to use several cores. "whole": one device that has all cores and XLA's own threads, JAX's
default. "split": one device per core with the batch split over them, as in `jaxbench run` (strategy shard_map,
BatchNorm statistics of the whole batch). The first arm writes the initial weights, the batch and the sizes to a folder
for the other arms.
Run by the parent: python -m benchmarks.peers.suite_arm MODEL PLATFORM FOLDER whole|split
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from benchmarks.peers.arms import STEPS_CHECKED, serve
from benchmarks.references import flat
from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.core.clock import Timer
from jaxbench.machine.cores import available_cores
from jaxbench.machine.start import start
from jaxbench.measure.arm import Arms
from jaxbench.measure.compile_report import compile_step
from jaxbench.workloads.models import gpt

# Settings that differ from the experiment's.
CHANGED = {"resnet18": {"batch": 32, "model.stem": "cifar", "model.statistics": "global"}}
SEED = 0


def configured(name: str) -> ConfigDict:
    config = config_lib.compose(name, discovery.load_experiment(name), discovery.load_preset("auto"))
    config.update_from_flattened_dict(CHANGED.get(name, {}))
    return config


def leave(folder: Path, config: ConfigDict, params: Any, batch: Any) -> None:
    """Writes the files from which the other arms train the same model: start.npz and config.json."""
    arrays = {f"params/{path}": value for path, value in flat(params).items()}
    np.savez(folder / "start.npz", **arrays, **{f"batch/{field}": value for field, value in batch.items()})
    model = vars(gpt.dimensions(config.model)) if config.experiment == "gpt" else config.model.to_dict()
    (folder / "config.json").write_text(json.dumps({"model": model, "optimizer": config.optimizer.to_dict()}))


def main() -> None:
    name, platform, folder, form = sys.argv[1:]
    whole = form == "whole"
    count = 1 if whole else available_cores()
    devices = start(platform, count, cores=available_cores() if whole and platform == "cpu" else None)
    config = configured(name)
    workload = Arms(config, name, devices[0]).workload({})
    program = parallel.build("jit_auto" if whole else "shard_map", workload, devices)
    step = compile_step(workload, program, config.batch).call
    key, timer = jax.random.PRNGKey(SEED), Timer()
    with jax.set_mesh(program.mesh):
        batch = program.put(jax.jit(workload.synthetic, static_argnums=1)(jax.random.PRNGKey(1), config.batch))
        state = program.init(key)
        if whole:
            leave(Path(folder), config, program.export(state).params, batch)
        losses = []
        for _ in range(STEPS_CHECKED):
            state, metrics = step(state, batch)
            losses.append(float(metrics["loss"]))

        def run(steps: int) -> float:
            _, state = timer.block(step, program.init(key), batch, steps // 4 + 1)
            return timer.block(step, state, batch, steps)[0]

        what = f"{count} devices of a core each" if count > 1 else "one device"
        serve(f"jax {jax.__version__}, {devices[0].device_kind}, {what}", losses, run)


if __name__ == "__main__":
    main()
