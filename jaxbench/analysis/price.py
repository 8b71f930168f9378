# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The cost of steps on a machine with a known price per hour (docs/metrics, Prices).

The price is for the whole machine, no matter how many devices a point uses.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.records import trainings

HOUR_S, THOUSAND = 3600.0, 1000


def of_steps(step_s: Estimate, steps: int, per_hour: float) -> Estimate:
    """steps x step_s x price / 3600, in the currency of the price, with the interval of the step time."""
    return step_s.times(steps * per_hour / HOUR_S)


def steps_to_target(run: Path, config: Mapping[str, Any]) -> dict[int, int]:
    """{global batch: fewest steps} of trainings in the folders next to a run that reached their target.

    Only trainings of the same experiment and model count, because another model needs another number of steps.
    """
    found: dict[int, int] = {}
    for metrics in sorted(run.resolve().parent.glob("*/metrics.jsonl")):
        with contextlib.suppress(UserError, OSError, ValueError, KeyError, TypeError):
            trained = json.loads((metrics.parent / "config.json").read_text(encoding="utf-8"))
            same = all(trained[name] == config[name] for name in ("experiment", "model") if name in config)
            if not same or trained["experiment"] != config["experiment"]:
                continue
            training = trainings.read_curve(metrics.parent)
            if row := training.at_target():
                found[training.batch] = min(int(row["step"]), found.get(training.batch, int(row["step"])))
    return found


def sentences(
    rows: Iterable[Row], per_hour: float, to_target: Mapping[int, int], used: Mapping[str, float], wall_s: float
) -> list[str]:
    """One sentence on the cost of each point, and one on the energy of the run. used: joules by counter."""
    lines = []
    for row in rows:
        step = row.timing.step_s
        if not step.known or not row.believed:
            continue
        thousand = _money(of_steps(step, THOUSAND, per_hour))
        steps = to_target.get(row.point.global_batch)
        if steps is None:
            target = (
                f"the cost to a target is unknown, because no training with batch {row.point.global_batch} next to "
                "this run reached its target"
            )
        else:
            target = f"the {steps:,} steps to the target cost {_money(of_steps(step, steps, per_hour))}"
        lines.append(f"{row.point.point}: a thousand steps cost {thousand}; {target}.")
    return [*lines, _energy(used, wall_s)]


def _money(value: Estimate) -> str:
    if not value.has_interval:
        return digits(value.value)
    return f"{digits(value.value)} ({digits(value.lo)} .. {digits(value.hi)})"


def _energy(used: Mapping[str, float], wall_s: float) -> str:
    if not used:
        return "Energy: unknown, because no energy counter can be read (RAPL needs root; NVML needs a GPU)."
    total = sum(used.values())
    return (
        f"Energy of the whole run, including compilation, by {', '.join(used)}: {total:,.0f} J in {wall_s:,.0f} s, "
        f"{total / wall_s:,.0f} W on average."
    )
