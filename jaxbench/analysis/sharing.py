# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Trainings that run at once on the same devices: how much each slows down, and how evenly (docs/metrics, Sharing)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.arms import ArmResult
from jaxbench.analysis.intervals import UNKNOWN, Estimate, estimate
from jaxbench.analysis.quantities import times
from jaxbench.analysis.scaling import Row


@dataclass(frozen=True, kw_only=True)
class SharingResult:
    """How trainings share their devices.

    Attributes:
      relative: for each training, its time over the slowest's: the median over rounds of its median block.
      fairness: Jain's index of their rates: 1 if all are equally fast, 1 / k if one of k gets everything.
    """

    relative: tuple[float, ...]
    fairness: Estimate = UNKNOWN


def of(row: Row) -> SharingResult | None:
    """The sharing of a row's trainings; None for one training, and without rounds."""
    count = row.point.trainings
    pairs = zip(row.point.units, row.point.rounds, strict=True)
    usable = [(unit, each) for unit, each in pairs if count > 1 and len(each.process_block_s) == count]
    if not usable:
        return None
    units, rounds = zip(*usable, strict=True)
    blocks = [np.array(each.process_block_s) for each in rounds]
    samples = np.concatenate([jain(1 / each) for each in blocks])
    owners = np.repeat(np.arange(len(blocks)), [each.shape[1] for each in blocks])
    value, drawn = row.timing.draws.centre(samples, owners, units)
    of_rounds = np.array([np.median(each / each.max(axis=0), axis=1) for each in blocks])
    return SharingResult(
        relative=tuple(np.median(of_rounds, axis=0).tolist()),
        fairness=estimate(value, np.minimum(drawn, 1), rounds=len(units)),
    )


def jain(rates: np.ndarray) -> np.ndarray:
    """Jain's index of fairness of each column: (sum x)^2 / (k sum x^2). rates: (k, n). Returns (n,)."""
    return np.asarray(rates.sum(axis=0) ** 2 / (len(rates) * (rates**2).sum(axis=0)))


def sentences(arms: Sequence[ArmResult]) -> list[str]:
    """A sentence for each arm with several trainings."""
    return [sentence(arm, found) for arm in arms if arm.speedup.known and (found := of(arm.row)) is not None]


def sentence(arm: ArmResult, found: SharingResult) -> str:
    unclear = f" (inconclusive: {arm.why})" if arm.verdict == "cannot tell" else ""
    return (
        f"{arm.label} trainings at once: {times(arm.speedup)} the throughput of running them in sequence{unclear}; a "
        f"step of the slowest takes {times(arm.ratio)} as long, and Jain's index of their rates is "
        f"{found.fairness.value:.3f}."
    )
