# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the speeds of cores and accelerators say about rounds: which core was slow when, and how unequal the devices of
a point were.

A core is compared with its own best speed in the same session. So a machine of unequal cores is no disturbance, and a
neighbour that no counter of the kernel shows is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from jaxbench.core.schema import RoundRecord

# Times a core's best. On idle virtual machines a core changes between two speeds that are 10 to 15 % apart, many times
# a second. Another tenant on the other hardware thread of the core makes it nearly two times slower.
SLOWED = 1.25
BEST = 10  # percentile of a core's readings that counts as its best: the very fastest reading is luck
EQUAL = 0.02  # devices are equal if the slowest is within this of their mean
LEAST_READINGS = 8  # of a core: with fewer there is no best speed to compare with

Best = Mapping[int, float]  # processor seconds of the fixed product, by CPU


def best(rounds: Iterable[RoundRecord]) -> Best:
    """The best speed of each CPU over all blocks of these rounds; without CPUs that have too few readings."""
    readings: defaultdict[int, list[float]] = defaultdict(list)
    for each in rounds:
        for block in each.core_product_s:
            for cpu, seconds in zip(each.cores, block, strict=True):
                readings[cpu].append(seconds)
    enough = {cpu: of for cpu, of in readings.items() if len(of) >= LEAST_READINGS}
    return {cpu: float(np.percentile(of, BEST)) for cpu, of in enough.items()}


def slow_cores(record: RoundRecord, best_s: Best) -> dict[int, float]:
    """The CPUs that were slower than their best in the median block of a round, and how many times as slow."""
    times = dict(zip(record.cores, np.median(record.core_product_s, axis=0), strict=True) if record.cores else ())
    ratios = {cpu: float(seconds) / best_s[cpu] for cpu, seconds in times.items() if best_s.get(cpu)}
    return {cpu: ratio for cpu, ratio in ratios.items() if ratio > SLOWED}


def balance(rounds: Sequence[RoundRecord]) -> float:
    """The mean over devices of the time of the fixed product, over that of the slowest device: 1 if all are equal.

    The point on one device takes turns on the cores of a CPU, but always uses the first accelerator. So of accelerators
    it is the time of the first one in place of the mean. NaN without readings.

    Each device waits for the slowest in every step, so this is the efficiency that unequal
    devices leave.
    """
    read = [each for record in rounds if (each := _device_s(record)) is not None]
    if not read or len({len(each) for each in read}) > 1:
        return float("nan")
    device_s = np.median(read, axis=0)
    alone_s = device_s[0] if rounds[0].accelerators else np.mean(device_s)
    share = float(alone_s / np.max(device_s))
    return 1.0 if 1 - share < EQUAL else share


def slowest(rounds: Sequence[RoundRecord]) -> tuple[str, float]:
    """(the slowest device of a point, such as "CPU 1" or "gpu 1 (NVIDIA L4)", how many times as slow as the fastest).
    Raises ValueError without readings."""
    read = [(record, each) for record in rounds if (each := _device_s(record)) is not None]
    if not read:
        raise ValueError("no round has the speeds of its devices")
    record, times = read[0][0], np.median([each for _, each in read], axis=0)
    names = record.accelerators or tuple(f"CPU {cpu}" for cpu in record.cores)
    return names[int(np.argmax(times))], float(np.max(times) / np.min(times))


def _device_s(record: RoundRecord) -> np.ndarray | None:
    """(devices,) seconds of the fixed product in the median block of a round; None without readings."""
    blocks = record.core_product_s or record.accelerator_product_s
    return np.median(blocks, axis=0) if blocks else None
