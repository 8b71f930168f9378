# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What failures, checkpoints and steps cost: goodput, and prices (docs/metrics, Goodput and Prices).

Failures come at random with a constant rate (a Poisson process). A failure ends the job. The job restarts from the
newest sealed checkpoint, and it may fail again while it starts. A price per hour is for the whole machine, no matter
how many devices a point uses.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jaxbench.analysis.run_rows import Row
from jaxbench.core.store import RunFolder
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.features.training.trainings import HOUR_S, Start, idle_ns, kept_saves, read_curve, totals
from jaxbench.statistics.bootstrap import Estimate


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The costs of checkpoints and failures in seconds, as `measured_costs` finds them.

    Attributes:
      interval_s: progress (steps, waiting for input, evaluating) between two checkpoints.
      checkpoint_s: how long a checkpoint blocks the training.
      latency_s: from the end of that until the checkpoint is sealed.
      restart_s: from the creation of a process to its first step.
      down_s: from a failure to the creation of the next process.
      useful: the share of steps in the time of progress.
    """

    interval_s: float
    checkpoint_s: float
    latency_s: float
    restart_s: float
    down_s: float
    useful: float


def daly(checkpoint_s: float, mtbf_s: float) -> float:
    """The best seconds of progress between checkpoints.

    sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C, or M if C >= 2 M. checkpoint_s: C. mtbf_s: M, the mean time
    between failures. The first factor is the best interval to first order (J. W. Young, Communications of the ACM 17,
    1974). Source: J. T. Daly, Future Generation Computer Systems 22, 2006.
    """
    first, ratio = math.sqrt(2 * checkpoint_s * mtbf_s), checkpoint_s / (2 * mtbf_s)
    return mtbf_s if ratio >= 1 else first * (1 + math.sqrt(ratio) / 3 + ratio / 9) - checkpoint_s


def expected_goodput(costs: Costs, mtbf_s: float) -> float:
    """The expected goodput of a long training: the share of the wall time in steps that count.

    useful tau exp(-(R + L) / M) / ((M + D) (exp((tau + C) / M) - 1)). A failure comes every M + D seconds on average,
    and at least k checkpoints are sealed before it with probability exp(-(R + L + k (tau + C)) / M). For L = 0 this is
    Daly's model (2006) with the down time D of M. Bougeret et al., "Checkpointing strategies for parallel jobs", SC
    2011.
    """
    # A failure costs what was not sealed yet, so the first checkpoint of a life must be complete and sealed to count.
    late = (costs.restart_s + costs.latency_s + costs.interval_s + costs.checkpoint_s) / mtbf_s
    segment = (costs.interval_s + costs.checkpoint_s) / mtbf_s
    # -expm1(-x) is 1 - exp(-x) without cancellation: failures are rare, so x is small.
    return costs.useful * costs.interval_s * math.exp(-late) / ((mtbf_s + costs.down_s) * -math.expm1(-segment))


def at_devices(costs: Costs, *, devices: int, failures_per_device_hour: float) -> tuple[float, float]:
    """(best seconds between checkpoints, the goodput with it) on `devices` devices.

    A failure of any device ends the job. The measured costs are assumed not to depend on the number of devices.
    """
    mtbf_s = HOUR_S / (devices * failures_per_device_hour)  # rates of independent Poisson processes add up
    best = daly(costs.checkpoint_s, mtbf_s)
    return best, expected_goodput(replace(costs, interval_s=best), mtbf_s)


def measured_costs(starts: Sequence[Start]) -> Costs | None:
    """Mean costs from a training's time ledger; None before its first checkpoint is sealed.

    The down time is a median, because a start that was killed before its first line counts as idle time.
    """
    starts = list(starts)
    saves = sum(len(start.saves) for start in starts)
    kept = {save.step for of_start in kept_saves(starts) for save in of_start}
    sealed = sum(start.sealed for start in starts)  # fewer than `saves` if a kill came before the rename
    spent = totals(starts)
    if not (kept and sealed and spent["steps"]):
        return None
    # A start that was killed before its first step shows how long a part of a restart takes, and not the whole.
    trained = [start for start in starts if start.ns["steps"]]
    before = sum(start.ns[kind] for start in trained for kind in ("start", "compile", "restore"))
    whole = sum(start.ns[kind] for start in starts for kind in ("steps", "input", "evaluation"))
    useful = sum(start.ns["steps"] for start in starts) / whole
    return Costs(
        interval_s=spent["steps"] / useful / len(kept) / 1e9,  # of steps that count: repeated ones are no progress
        checkpoint_s=spent["checkpoint"] / saves / 1e9,
        latency_s=sum(start.sealing_ns for start in starts) / sealed / 1e9,
        restart_s=before / len(trained) / 1e9,
        down_s=statistics.median(idle_ns(starts) or [0]) / 1e9,
        useful=useful,
    )


def of_steps(step_s: Estimate, steps: int, per_hour: float) -> Estimate:
    """steps x step_s x price / 3600, in the currency of the price, with the interval of the step time."""
    return step_s.times(steps * per_hour / HOUR_S)


def steps_to_target(run: Path, config: Mapping[str, Any]) -> dict[int, int]:
    """{global batch: fewest steps} of trainings in the folders next to a run that reached their target.

    Only trainings of the same experiment and model count, because another model needs another number of steps.
    """
    found: dict[int, int] = {}
    # The neighbours may hold anything, even a training that is being written. What cannot be read is no training.
    for metrics in sorted(run.resolve().parent.glob("*/metrics.jsonl")):
        with contextlib.suppress(UserError, KeyError):
            trained = RunFolder(metrics.parent).config()
            if not all(trained[name] == config[name] for name in ("experiment", "model") if name in config):
                continue
            training = read_curve(metrics.parent)
            if row := training.at_target():
                found[training.batch] = min(int(row["step"]), found.get(training.batch, int(row["step"])))
    return found


def price_sentences(
    rows: Iterable[Row], per_hour: float, to_target: Mapping[int, int], used: Mapping[str, float], wall_s: float
) -> list[str]:
    """One sentence on the cost of each point, and one on the energy of the run. used: joules by counter."""
    lines = []
    for row in rows:
        step = row.timing.step_s
        if not step.known or row.wrong:  # a step that computes something else has no price
            continue
        thousand = _cost_text(of_steps(step, 1000, per_hour))
        steps = to_target.get(row.point.global_batch)
        if steps is None:
            target = (
                f"the cost to a target is unknown, because no training with batch {row.point.global_batch} next to "
                "this run reached its target"
            )
        else:
            target = f"the {steps:,} steps to the target cost {_cost_text(of_steps(step, steps, per_hour))}"
        lines.append(f"{row.point_id}: a thousand steps cost {thousand}; {target}.")
    total = sum(used.values())
    if not used:
        energy = "Energy: unknown, because no energy counter can be read (RAPL needs root; NVML needs a GPU)."
    else:
        energy = (
            f"Energy of the whole run, including compilation, by {', '.join(used)}: {total:,.0f} J in {wall_s:,.0f} s, "
            f"{total / wall_s:,.0f} W on average."
        )
    return [*lines, energy]


def _cost_text(value: Estimate) -> str:
    return digits(value.value) + (f" ({digits(value.lo)} .. {digits(value.hi)})" if value.has_interval else "")
