# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The energy and the clocks of a point, from the readings around its timed blocks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.points import MeasuredPoint
from jaxbench.core.schema import RoundRecord
from jaxbench.records.power import DevicePower, named
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate, estimate
from jaxbench.statistics.timing import Timing, wall_s

SLOWED = "{slowed} of {blocks} timed blocks were slowed by heat, hardware or a low clock."
SLOWED_MOST = (
    "{slowed} of {blocks} timed blocks were slowed, most of them of {name}: {reasons}. They are marked and count in "
    "every number."
)
LOW_CLOCK = "a clock below 75 % of the default"


@dataclass(frozen=True, kw_only=True)
class PowerUse:
    """What the devices of a point used and did during its timed blocks. Unknown where a device does not say it.

    Attributes:
      joules_per_step: of all devices. joules_per_unit: of an example.
      power_w: joules over the seconds of the blocks. reading_w: the mean of the driver's own power readings.
      sm_mhz: mean clock of the multiprocessors, over devices and blocks.
      blocks: with readings. slowed: those in which heat or hardware, or a clock below 75 % of the default, slowed a
        device. reasons: what lowered clocks, with the number of blocks.
      source: "GPU" or "processor packages".
      draws: joules per step in each draw; those of all points of a run are of the same rounds. rounds: with a known
        energy.
    """

    joules_per_step: Estimate = UNKNOWN
    joules_per_unit: Estimate = UNKNOWN
    power_w: float = math.nan
    reading_w: float = math.nan
    sm_mhz: float = math.nan
    blocks: int = 0
    slowed: int = 0
    reasons: tuple[tuple[str, int], ...] = ()
    source: str = ""
    draws: Sequence[float] | np.ndarray = ()
    rounds: int = 0

    @property
    def known(self) -> bool:
        return self.blocks > 0


def of_point(point: MeasuredPoint, timing: Timing) -> PowerUse:
    """The use of a point. timing: of the same point."""
    blocks = [block for each in point.rounds for block in each.power]
    if not blocks or not timing.step_s.known:
        return PowerUse()
    gpus = [[device for device in block if _is_gpu(device)] for block in blocks]
    counted = Counter(
        reason for block in gpus for reason in {text for each in block for text in named(each.reasons or 0)}
    )
    per_round = np.array([_joules(each) / steps_timed(each) for each in point.rounds])
    known = [at for at, joules in enumerate(per_round) if math.isfinite(joules)]
    # A round without an answer of its counter is left out; it says nothing about the others.
    per_step, draws = _estimate(timing, per_round, known, point) if known else (UNKNOWN, np.empty(0))
    seconds = sum(wall_s(point.rounds[at]) for at in known)
    joules = sum(_joules(point.rounds[at]) for at in known)
    return PowerUse(
        joules_per_step=per_step,
        joules_per_unit=per_step.over(point.examples) if point.examples else UNKNOWN,
        power_w=joules / seconds if seconds else math.nan,
        reading_w=_mean([_sum(device.power_w for device in block) for block in gpus if block]),
        sm_mhz=clock_of(point.rounds),
        blocks=len(blocks),
        slowed=sum(any(device.slowed for device in block) for block in blocks),
        reasons=tuple(counted.most_common()),
        source="GPU" if any(gpus) else "processor packages",
        draws=draws,
        rounds=len(known),
    )


def efficiency(base: PowerUse, use: PowerUse, work: float) -> Estimate:
    """E(1)/E(n): the energy of the base for the same work over that of the point. work: of a step over the base's.

    Both have the same draws of rounds, so what they share cancels in each draw.
    """
    if not (base.joules_per_step.known and use.joules_per_step.known) or not use.joules_per_step.value:
        return UNKNOWN
    value = work * base.joules_per_step.value / use.joules_per_step.value
    with np.errstate(divide="ignore", invalid="ignore"):  # a draw of counters that have not moved has no ratio
        draws = work * np.asarray(base.draws) / np.asarray(use.draws)
    return estimate(value, draws, rounds=min(base.rounds, use.rounds))


def clock_of(rounds: Iterable[RoundRecord]) -> float:
    """The mean clock of the multiprocessors in MHz, over blocks and devices; NaN if no GPU says it."""
    return _mean([device.sm_mhz for each in rounds for block in each.power for device in block])


def steps_timed(about: RoundRecord) -> int:
    """The steps of all timed blocks of a round."""
    return about.steps * (len(about.block_s) + 2 * len(about.double_block_s))


def headlines(points: Sequence[tuple[str, PowerUse]]) -> list[str]:
    """How many blocks were slowed, because every other number has them in it; [] if none was."""
    slowed, blocks = (sum(getattr(use, name) for _, use in points) for name in ("slowed", "blocks"))
    return [SLOWED.format(slowed=slowed, blocks=blocks)] if slowed else []


def sentences(points: Sequence[tuple[str, PowerUse]]) -> list[str]:
    """What slowed the devices of a run; [] if nothing did. points: (name, use)."""
    slowed = [(name, use) for name, use in points if use.slowed]
    if not slowed:
        return []
    blocks, all_ = sum(use.slowed for _, use in slowed), sum(use.blocks for _, use in points)
    name, worst = max(slowed, key=lambda each: each[1].slowed / each[1].blocks)
    reasons = ", ".join(text for text, _ in worst.reasons) or LOW_CLOCK
    return [SLOWED_MOST.format(slowed=blocks, blocks=all_, name=name, reasons=reasons)]


def _estimate(
    timing: Timing, per_round: np.ndarray, known: list[int], point: MeasuredPoint
) -> tuple[Estimate, np.ndarray]:
    """(the mean over rounds with known energy, with its interval; its draws)."""
    units = [point.units[at] for at in known]
    value, drawn = timing.resampling.centre(per_round[known], np.arange(len(units)), units, signed=True)
    differing = timing.resampling.differing(f"energy of {point.point}", units)
    return estimate(value, drawn * differing, rounds=len(units)), drawn * differing


def _joules(about: RoundRecord) -> float:
    """The joules of a round's timed blocks: of its GPUs or, without one, of the processors; NaN: unknown."""
    gpus = any(_is_gpu(device) for block in about.power for device in block)
    used = [[device.joules for device in block if _is_gpu(device) is gpus] for block in about.power]
    if not used or any(joules is None for block in used for joules in block):
        return math.nan
    return math.fsum(joules for block in used for joules in block if joules is not None)


def _is_gpu(device: DevicePower) -> bool:
    return device.device.startswith("GPU")


def _sum(values: Iterable[float | None]) -> float | None:
    """None if one is unknown: a part of the devices is no answer for all."""
    found = [*values]
    return None if None in found else math.fsum(value for value in found if value is not None)


def _mean(values: Iterable[float | None]) -> float:
    """The mean of the known values; NaN without any."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else math.nan
