# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The memory of a deep model on a TPU, from its compiler, which says it without writing the program.

A line through two depths is wrong there. With room to spare, the compiler's schedule gathers parameters early and sums
gradients late; a shallow model has room to spare, and the line repeats for each block what is only held once. So the
model itself is compiled for a device of which the compiler believes that it has no memory, with the options with which
published runs gather parameters: it schedules to save memory and refuses, before the long part of its work, with what
the program needs.
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
from jaxbench.digits import digits
from jaxbench.forecast import reckon
from jaxbench.forecast.estimate import SAVES_MEMORY
from jaxbench.levers.compiler import COMPILER
from jaxbench.records.forecasts import ForecastRecord
from jaxbench.records.store import RunFolder

_OPTIONS = {"xla_tpu_max_hbm_size_mib": "1", **COMPILER.of({COMPILER.name: "async_all_gather"})}
COUNTS = (16, 256)  # the devices that are asked where other counts are reckoned; a smaller slice gathers all at once
NOTE = (
    "Memory is what the compiler needs for all blocks when it saves memory; with room to spare it takes more. If it "
    f"refuses the step on the device, set {SAVES_MEMORY}."
)
# Up to so many chips of a kind its compiler gathers the parameters of all blocks first, with these options too, as no
# schedule has to: what it needs is an upper bound.
_GATHERS_FIRST = {"v5p": math.inf, "v6e": 8}
AT_MOST = (
    "Memory is {size} GB at most: this compiler gathers the parameters of all blocks first, which a step need not do. "
    "Whether it fits is not known."
)
Family = tuple[str, str, str]  # strategy, scaling, arm
Needs = dict[Family, dict[int, int]]  # bytes by device count


def needs(
    experiment: str, config: ConfigDict, target: Target, folder: Path, console: Console
) -> tuple[Needs, list[str]]:
    """The memory of a step of each point, and why others have none. Keeps what the compiler said in `folder`. Raises
    UserError."""
    from jaxbench.runner import compile_only  # here: only this asks for jax

    compile_only.run(experiment, config, target.text, folder, console, options=_OPTIONS)
    found: Needs = {}
    unknown = []
    for row in compiled.rows(RunFolder(folder)):
        point, size = row.point, row.needed_bytes
        if size is None:
            unknown.append(f"Memory of {row.name} is not known: {row.why}")
        else:
            found.setdefault((point["strategy"], point["scaling"], point["arm"]), {})[int(point["devices"])] = size
    return found, unknown


def replaced(record: ForecastRecord, found: Needs, unknown: Sequence[str]) -> ForecastRecord:
    """The forecast with the memory of its family: of its own count, or reckoned from two; None where it is unknown, or
    an upper bound that a device does not have."""
    by_count = sorted(found.get((record.strategy, record.scaling, record.arm), {}).items())
    known = dict(by_count)
    if record.devices in known:
        size: int | None = known[record.devices]
    else:
        size = round(reckon.shared(by_count[0], by_count[1], record.devices)) if len(by_count) > 1 else None
    if size is not None and record.memory_bytes and size > record.memory_bytes and _gathers_first(record):
        note = AT_MOST.format(size=digits(size / 1e9))
        return dataclasses.replace(record, peak_bytes=None, notes=(*record.notes, note))
    notes = (NOTE,) if size is not None else tuple(unknown)
    return dataclasses.replace(record, peak_bytes=size, notes=(*record.notes, *notes))


def _gathers_first(record: ForecastRecord) -> bool:
    return record.devices <= _GATHERS_FIRST.get(record.target.partition(":")[0], 0)
