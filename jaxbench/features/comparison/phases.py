# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The phases before the first step, compared as steps are: trace, lower, compile and first run, and the peak memory.

Each process of a pair prepares its points once. The value of a process pair is the sum over its points, and the pairs
are judged by the sequential test of `judge`. A phase is a question of its own: its answer does not change the verdict,
unless it is the metric that was asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from jaxbench.core.schema import CaseRecord, PointRecord
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.comparison import judge, sequential
from jaxbench.features.comparison.judge import Answers, Metric
from jaxbench.features.comparison.ratio import Sample

MARGIN = 0.1  # the phases happen once, and vary more than steps
ALL_POINTS = "all points"
# By their names on the command line. The name of a metric is that of the field in a compile report.
METRICS = {
    name: Metric(field, unit, 1, more_is_better=False)
    for name, field, unit in (
        ("trace", "trace_s", "s"),
        ("lower", "lower_s", "s"),
        ("compile", "compile_s", "s"),
        ("first_run", "first_run_s", "s"),
        ("memory", "peak_bytes", "B"),
    )
}
BEFORE_STEPS = ("trace", "lower", "compile", "first_run")
Prepared = PointRecord | CaseRecord
_PAIR = re.compile(r"#(\d+)")  # in the name of a worker; the first pair has none
Starts = Mapping[str, Mapping[int, float]]  # by phase and pair: the sum over points


def metric_named(name: str) -> Metric:
    """The metric of `ab` and `bisect` of this name. Raises UserError for an unknown one."""
    if name in METRICS:
        return METRICS[name]
    legal = {"step": judge.METRICS["step_s"], **judge.METRICS}
    if name in legal:
        return legal[name]
    raise UserError(f"--metric={name} cannot be compared: {did_you_mean(name, [*legal, *METRICS])}")


def of_pairs(folder: RunFolder, pairs: int) -> Starts:
    """The values of the first `pairs` pairs of an arm. A phase that one of its points does not know is left out."""
    newest: dict[int, dict[str, Prepared]] = {}  # an interrupted pair is prepared again
    for record in folder.records():
        if isinstance(record, PointRecord | CaseRecord) and not getattr(record, "explains", ""):
            number = _PAIR.search(record.worker)
            newest.setdefault(int(number[1]) if number else 0, {})[record.point] = record
    found: dict[str, dict[int, float]] = {}
    for name, metric in METRICS.items():
        values = {pair: [_value(record, metric) for record in newest.get(pair, {}).values()] for pair in range(pairs)}
        sums = {pair: math.fsum(each for each in seen if each is not None) for pair, seen in values.items()}
        if all(seen and None not in seen and sums[pair] > 0 for pair, seen in values.items()):
            found[name] = sums
    return found


def _value(record: Prepared, metric: Metric) -> float | None:
    """None: unknown. A case has only the time to compile. A program from the cache was not compiled in this process."""
    if metric == METRICS["compile"] and isinstance(record, PointRecord) and record.compile_report.compile_recorded:
        return None
    value = getattr(record.compile_report if isinstance(record, PointRecord) else record, metric.name, None)
    return None if value is None else float(value)


def judged(a: Starts, b: Starts, *, margin: float) -> tuple[Answers, ...]:
    """An answer for each phase that both arms know and that happens before the first step, in their order."""
    names = [name for name in BEFORE_STEPS if name in a and name in b]
    return tuple(_judged(a[name], b[name], METRICS[name], margin) for name in names)


def judged_by(a: Starts, b: Starts, metric: Metric, *, margin: float, alpha: float) -> Answers:
    """The answer for one phase. Raises UserError if an arm does not know it, such as the trace of a pmapped step."""
    name = name_of(metric)
    if name not in a or name not in b:
        raise UserError(f"--metric={name} is unknown for these points: choose another, such as --metric=step.")
    return _judged(a[name], b[name], metric, margin, alpha)


def name_of(metric: Metric) -> str:
    """Its name on the command line."""
    return next((name for name, each in METRICS.items() if each == metric), metric.name)


def _judged(
    a: Mapping[int, float], b: Mapping[int, float], metric: Metric, margin: float, alpha: float = judge.ALPHA
) -> Answers:
    """The answer for one phase, summed over points."""
    left, right = ({ALL_POINTS: _sample(side)} for side in (a, b))
    return sequential.judge_pairs(left, right, metric, margin=margin, alpha=alpha)


def _sample(values: Mapping[int, float]) -> Sample:
    """One value for each pair, as a sample of processes with one round each."""
    processes = tuple((np.array([values[pair]]),) for pair in sorted(values))
    return Sample(processes=processes, names=tuple(f"pair {pair}" for pair in sorted(values)))
