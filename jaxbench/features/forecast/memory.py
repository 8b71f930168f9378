# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The memory of a deep model, asked of its compiler.

A line through two shallow models as they are compiled for a target is wrong. If a device has memory to spare, the
compiler's schedule gathers parameters early and sums gradients late. A shallow model has memory to spare, and
extrapolation would count arrays once per block that are held only once.

So a TPU's compiler gets a memory limit of almost zero and the options that published runs use to gather parameters. It
schedules to save memory and refuses the program before the long part of compilation, with an error that contains the
needed memory. At any depth it then saves all it can, and a line through two depths is within 1 % of all blocks
(`python -m benchmarks.forecasts_memory`). A GPU's compiler, for which the line was 14 % too low, compiles all blocks in
a minute or a few.
"""

from __future__ import annotations

import copy
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
from jaxbench.levers import COMPILER

_OPTIONS = {  # by platform
    # One MiB: no program fits, so the compiler must save and refuse.
    "tpu": {"xla_tpu_max_hbm_size_mib": "1", **COMPILER.of({COMPILER.name: "async_all_gather"})},
    "gpu": {},
}
DEPTHS = (8, 16)  # the blocks of a TPU's models to extrapolate from; the line through 1 and 2 is wrong on a TPU
LIMIT_S = 900.0  # for one answer: a TPU's refusal comes early, and a GPU's compiler needs minutes for long sequences
COUNTS = (16, 256)  # the device counts to extrapolate from; smaller slices gather all parameters at once
NOTE = (
    "Memory is the compiler's need when it schedules to save memory. With memory to spare it uses more. "
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
UNSURE = 0.05  # how far above the device's memory, relative; MaxText's Llama 2 70B ran on v6e at 0.004
SURE = 0.8  # the share of a GPU's memory up to which a line through two depths is believed
LINE = (
    "By a line through two depths a step would need {size} GB. With all blocks the compiler uses less or more, so it "
    "is unknown whether the step fits."
)
WHOLE = "Memory is the compiler's, for all blocks."
ABOVE = (
    "Compiled with all blocks a step would need {size} GB. With other options the compiler may save memory, so it is "
    "unknown whether the step fits."
)
Family = tuple[str, str, str]  # strategy, scaling, arm
Needs = dict[Family, dict[int, int]]  # bytes per device, by device count


def needs(
    experiment: str,
    config: ConfigDict,
    target: Target,
    folder: Path,
    console: Console,
    blocks: int,
    *,
    whole: bool = False,
) -> tuple[Needs, list[str]]:
    """(the memory of each family by device count, sentences on points with unknown memory). blocks: of the model.
    whole: compile all of them. The compiler's messages are kept in `folder`. Raises UserError."""
    from jaxbench.sweep import compile_only  # imported here, because only this needs jax

    # A GPU's compiler gets the whole model: a line through two depths was 14 % too low, which would promise a fit.
    depths = DEPTHS if target.platform == "tpu" and blocks > DEPTHS[-1] and not whole else (blocks,)
    config, options = copy.deepcopy(config), _OPTIONS[target.platform]
    found: list[dict[tuple[Family, int], int]] = []
    unknown = []
    for depth in depths:
        with config.unlocked():
            config.model.layers = depth
        place = folder / f"{depth}-blocks"
        compile_only.run(experiment, config, target.text, place, console, options=options, limit_s=LIMIT_S)
        found.append({})
        for row in compiled.rows(RunFolder(place)):
            point, size = row.point, row.needed_bytes
            if size is None:
                unknown.append(f"The memory of {row.name} is unknown: {row.why}")
            else:
                family = point["strategy"], point["scaling"], point["arm"]
                found[-1][family, int(point["devices"])] = size
    share = (blocks - depths[-1]) / max(1, depths[-1] - depths[0])
    sizes: Needs = {}
    for key in found[0].keys() & found[-1].keys():  # a line needs both depths; the others are in `unknown`
        sizes.setdefault(key[0], {})[key[1]] = round(found[-1][key] + share * (found[-1][key] - found[0][key]))
    return sizes, unknown


def certain(record: ForecastRecord) -> bool:
    """Whether a line through two depths shows that a step fits on a GPU."""
    return record.peak_bytes is not None and record.peak_bytes <= SURE * (record.memory_bytes or 0)


def on_a_gpu(record: ForecastRecord, sizes: Needs, unknown: Sequence[str]) -> ForecastRecord:
    """The forecast with the memory of all blocks, if that was asked for, or that of the line through two depths if it
    is certain. Otherwise the memory is None. It never says that a step does not fit."""
    size = sizes.get((record.strategy, record.scaling, record.arm), {}).get(record.devices)
    # Above the device's memory the answer proves nothing: other options may make the compiler save memory.
    if size is not None and size <= (record.memory_bytes or size):
        return dataclasses.replace(record, peak_bytes=size, notes=(*record.notes, WHOLE))
    if certain(record) or record.peak_bytes is None or not record.memory_bytes:
        return record
    note = (LINE if size is None else ABOVE).format(size=digits((size or record.peak_bytes) / 1e9))
    return dataclasses.replace(record, peak_bytes=None, notes=(*record.notes, note, *unknown))


def replaced(record: ForecastRecord, sizes: Needs, unknown: Sequence[str]) -> ForecastRecord:
    """The forecast for a TPU with the memory of its family: at its own count, or extrapolated from two counts. The
    memory is None if it is unknown, or if it is above a device's memory without showing that the step does not fit."""
    by_count = sorted(sizes.get((record.strategy, record.scaling, record.arm), {}).items())
    known = dict(by_count)
    # Without its own count, a + b / n through two counts; from one count nothing follows.
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
