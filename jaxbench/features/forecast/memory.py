# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The memory of a deep model on a TPU. Its compiler reports it without generating the whole program.

Extrapolating from two depths is wrong here. If a device has memory to spare, the compiler's schedule gathers parameters
early and sums gradients late. A shallow model has memory to spare, and extrapolation would count arrays once per block
that are held only once. So the model is compiled with all blocks, with a memory limit of almost zero and with the
options that published runs use to gather parameters. The compiler then schedules to save memory. It refuses the program
before the long part of compilation, with an error that contains the needed memory.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.analysis import compiled
from jaxbench.catalog.targets import Target
from jaxbench.core.store import RunFolder
from jaxbench.digits import digits
from jaxbench.features.forecast.estimate import SAVES_MEMORY, shared
from jaxbench.features.forecast.forecasts import ForecastRecord
from jaxbench.levers.compiler import COMPILER

_OPTIONS = {"xla_tpu_max_hbm_size_mib": "1", **COMPILER.of({COMPILER.name: "async_all_gather"})}
LIMIT_S = 300.0  # for one answer; the published models, of up to 80 blocks, take about a minute
COUNTS = (16, 256)  # the device counts to extrapolate from; smaller slices gather all parameters at once
NOTE = (
    "Memory is the compiler's need for all blocks when it schedules to save memory. With memory to spare it uses more. "
    f"If it refuses the step on the device, set {SAVES_MEMORY}."
)
# By kind of chip: up to this many chips, the compiler gathers the parameters of all blocks first, even with these
# options. Other schedules need less memory, so the reported need is an upper bound.
_GATHERS_FIRST = {"v5p": math.inf, "v6e": 8}
AT_MOST = (
    "Memory is at most {size} GB. This compiler gathers the parameters of all blocks first, which is not necessary, so "
    "it is unknown whether the step fits."
)
NEAR = (
    "By its compiler a step needs {size} GB when it saves memory, a little more than the device has. A published run "
    "fitted there, so it is unknown whether the step fits."
)
UNSURE = 0.05  # how far above the device's memory, relative; MaxText's Llama 2 70B ran on v6e at 0.002
LINE = (
    "By a line through two depths a step would need {size} GB. With memory to spare the compiler keeps arrays that it "
    "otherwise frees, so it is unknown whether the step fits."
)
Family = tuple[str, str, str]  # strategy, scaling, arm
Needs = dict[Family, dict[int, int]]  # bytes per device, by device count


def needs(
    experiment: str, config: ConfigDict, target: Target, folder: Path, console: Console
) -> tuple[Needs, list[str]]:
    """(the memory of each family by device count, sentences on points with unknown memory). The compiler's messages are
    kept in `folder`. Raises UserError."""
    from jaxbench.sweep import compile_only  # imported here, because only this needs jax

    compile_only.run(experiment, config, target.text, folder, console, options=_OPTIONS, limit_s=LIMIT_S)
    sizes: Needs = {}
    unknown = []
    for row in compiled.rows(RunFolder(folder)):
        point, size = row.point, row.needed_bytes
        if size is None:
            unknown.append(f"The memory of {row.name} is unknown: {row.why}")
        else:
            sizes.setdefault((point["strategy"], point["scaling"], point["arm"]), {})[int(point["devices"])] = size
    return sizes, unknown


def not_refused(record: ForecastRecord) -> ForecastRecord:
    """The forecast with unknown memory if a line through two depths is above a device's memory. Published runs fitted
    although this line was above it."""
    if record.fits is not False or record.peak_bytes is None:
        return record
    note = LINE.format(size=digits(record.peak_bytes / 1e9))
    return dataclasses.replace(record, peak_bytes=None, notes=(*record.notes, note))


def replaced(record: ForecastRecord, sizes: Needs, unknown: Sequence[str]) -> ForecastRecord:
    """The forecast with the memory of its family: at its own count, or extrapolated from two counts. The memory is None
    if it is unknown, or if it is above a device's memory without showing that the step does not fit."""
    by_count = sorted(sizes.get((record.strategy, record.scaling, record.arm), {}).items())
    known = dict(by_count)
    if record.devices in known:
        size: int | None = known[record.devices]
    else:
        size = round(shared(by_count[0], by_count[1], record.devices)) if len(by_count) > 1 else None
    if size is not None and record.memory_bytes and size > record.memory_bytes:
        gathers_first = record.devices <= _GATHERS_FIRST.get(record.target.partition(":")[0], 0)
        if gathers_first or size <= (1 + UNSURE) * record.memory_bytes:
            note = (AT_MOST if gathers_first else NEAR).format(size=digits(size / 1e9))
            return dataclasses.replace(record, peak_bytes=None, notes=(*record.notes, note))
    notes = (NOTE,) if size is not None else tuple(unknown)
    return dataclasses.replace(record, peak_bytes=size, notes=(*record.notes, *notes))
