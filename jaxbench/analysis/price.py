# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What steps cost on a machine whose price by the hour is known (docs/metrics, Prices).

The whole machine is paid for, however many of its devices a point uses.
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
    """{global batch: steps} of the trainings beside a run that reached their target, the fewest of each batch.

    Only those of the same experiment and model count: another batch or model needs another number of steps.
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
    """What the run's points cost, one sentence each, and the energy of the whole run. used: joules by counter."""
    lines = []
    for row in rows:
        step = row.timing.step_s
        if not step.known or not row.believed:
            continue
        thousand = _money(of_steps(step, THOUSAND, per_hour))
        steps = to_target.get(row.point.global_batch)
        if steps is None:
            target = (
                f"no training to target with batch {row.point.global_batch} is beside this run, so that is not known"
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
        return "Energy: not known, because no counter of this machine can be read (RAPL needs root; NVML needs a GPU)."
    total = sum(used.values())
    return (
        f"Energy of the whole run, compilation included, by {', '.join(used)}: {total:,.0f} J in {wall_s:,.0f} s, "
        f"{total / wall_s:,.0f} W on average."
    )
