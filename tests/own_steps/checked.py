# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The checks of a user's step, in this process."""

from pathlib import Path

import jax
import pytest
from ml_collections import ConfigDict

from jaxbench import levers
from jaxbench.core.point import Point
from jaxbench.features.own_step import recipe, requests, settle
from jaxbench.features.own_step.recipe import OwnBench
from jaxbench.levers import DEFAULTS
from jaxbench.workloads.own_step import StepWorkload


def bench_of(workload: StepWorkload, devices: int, monkeypatch: pytest.MonkeyPatch) -> OwnBench:
    monkeypatch.setattr(settle, "load", lambda config, experiment: workload)
    config = ConfigDict({"seed": 0, "experiment": "mine", "lever": levers.defaults().to_dict(), "weak": "batch"})
    config.measure = {"blocks": 1, "block_s": 0.001, "gradients": False, "train_steps": 0, "rounds": 2, "processes": 1}
    return recipe.bench(config.to_dict(), "mine", jax.devices()[:devices], "test")


def point_of(devices: int, batch: int) -> Point:
    return Point(
        point=f"own/strong/{devices}", strategy="own", scaling="strong", devices=devices, global_batch=batch,
        oversubscribed=True, platform="cpu", levers=dict(DEFAULTS),
    )  # fmt: skip


def checks(workload: StepWorkload, folder: Path, monkeypatch: pytest.MonkeyPatch, timed: int = 0):
    """(the checks of the step on two devices, by name; its record). timed: also those after as many timed steps."""
    file, batch = folder / "reference.npz", workload.batch
    requests.refer(bench_of(workload, 1, monkeypatch), point_of(1, batch).to_json(), str(file))
    bench = bench_of(workload, 2, monkeypatch)
    bench.steps.proof.reference = {"file": str(file), "devices": 1}
    record = bench.prepare(point_of(2, batch).to_json(), paced=False)
    found = [*record.checks, *(bench.round(record.point, 0, timed).checks if timed else ())]
    return {check.name: check for check in found}, record
