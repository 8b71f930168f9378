# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The kernels of every discovered experiment, each run as in a measurement, on one CPU device."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.cases import runnable
from jaxbench.cases.case_bench import build_cases
from jaxbench.cases.placement import DTYPES
from jaxbench.workloads.cases import KernelWorkload

SEED = 7
MAX_BYTES = 300_000  # large enough for several threads, small enough for a test


def composed(name: str, **changes: Any) -> Any:
    """The config of an experiment with dotted changes, such as ``**{"measure.rounds": 1}``."""
    config = config_lib.compose(name, discovery.load_experiment(name), discovery.load_preset("auto"))
    with config.unlocked():
        config.update_from_flattened_dict(changes)
    return config


def kernels(name: str, **changes: Any) -> tuple[KernelWorkload, ...]:
    found = build_cases(composed(name, **changes), name).cases
    return tuple(case for case in found if isinstance(case, KernelWorkload))


def experiments_with_kernels() -> list[str]:
    names = [n for n in discovery.experiments() if composed(n).get("measures") == "cases"]
    return [name for name in names if kernels(name)]


def one_of_each() -> dict[str, KernelWorkload]:
    """The largest case below MAX_BYTES, or else the smallest, for each operation, format and implementation."""
    chosen: dict[str, KernelWorkload] = {}
    for name in experiments_with_kernels():
        every = [case for case in kernels(name, dtypes="all") if case.outcome is None]  # trainings have their own tests
        for case in sorted(every, key=lambda case: case.resident_bytes):
            label = f"{name}-{case.op}-{case.dtype}-{case.impl}"
            if case.dtype in DTYPES["cpu"] and (label not in chosen or case.resident_bytes <= MAX_BYTES):
                chosen[label] = case
    return chosen


@dataclasses.dataclass(frozen=True)
class Ran:
    """The results of a kernel. `result` is compared, after some steps and after as many iterations."""

    result: Any
    wrong: int
    looped_wrong: int = 0  # if there is a loop


def run(case: KernelWorkload, *, steps: int = 2) -> Ran:
    """Runs a kernel like the bench. Enables double precision for the format that needs it."""
    with jax.enable_x64(case.dtype == "float64"):
        ready = runnable.compile_kernel(case, jax.devices()[0])
        assert ready.wrong is not None
        state, batch = ready.draw(SEED)
        for _ in range(steps):
            state, _ = ready.step(state, batch)
        if ready.loop is None or ready.to_device is None:
            return Ran(state, ready.wrong(state, SEED))
        again, batch = ready.draw(SEED)
        again = ready.loop(again, batch, ready.to_device(steps))
        return Ran(state[1], ready.wrong(state, SEED), ready.wrong(again, SEED))
