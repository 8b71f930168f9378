# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The formats of dashboards: Bencher Metric Format, pytest-benchmark's JSON, and OpenMetrics.

Sources: bencher.dev/docs/reference/bencher-metric-format; the files of pytest-benchmark 5, which
github-action-benchmark reads, too; the OpenMetrics specification 1.0. Node exporter's textfile collector reads
Prometheus' older text format, so the text has only gauges without time stamps, which both formats know.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
from collections import defaultdict

import numpy as np

from jaxbench import __version__
from jaxbench.features.exports.measure import Measure, Samples
from jaxbench.features.exports.quantities import QUANTITIES
from jaxbench.features.exports.source import Source, software

LONGEST_NAME = 1024  # characters of a benchmark's name in Bencher
OUTLIERS = 1.5  # interquartile ranges from the quartiles, as in pytest-benchmark


def bmf(source: Source) -> str:
    """Bencher Metric Format. Latencies are in nanoseconds, as Bencher's built-in measure."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for each in source.measures():
        scale, value = each.quantity.scale, each.value
        metric = {"value": scale * value.value}
        if value.has_interval:
            metric |= {"lower_value": scale * value.lo, "upper_value": scale * value.hi}
        found.setdefault(_benchmark_name(source, each)[:LONGEST_NAME], {})[each.quantity.measure] = metric
    return json.dumps(found, indent=2, allow_nan=False) + "\n"


def _benchmark_name(source: Source, each: Measure | Samples) -> str:
    return f"{source.experiment}/{each.point}"


def pytest_benchmark(source: Source) -> str:
    """pytest-benchmark's JSON: each point is a benchmark, and each timed block a round."""
    about = software(source.manifest)
    document = {
        "machine_info": {
            "node": "",  # the name of a machine belongs to nobody else's page
            "processor": about["machine"],
            "machine": platform.machine(),
            "python_implementation": platform.python_implementation(),
            "python_version": str(source.manifest.get("python", "")),
            "system": str(source.manifest.get("os", "")),
            "release": "",
            "cpu": {"brand_raw": about["machine"], "count": source.manifest.get("cores", 0)},
        },
        "commit_info": {"id": about["commit"], "time": about["started"], "dirty": about["dirty"], "branch": ""},
        "benchmarks": [_benchmark(source, each) for each in source.samples()],
        "datetime": about["started"],
        "version": "5.3.1",
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _benchmark(source: Source, each: Samples) -> dict[str, object]:
    """The samples of a point as pytest-benchmark writes them."""
    return {
        "group": source.experiment,
        "name": each.point,
        "fullname": _benchmark_name(source, each),
        "params": None,
        "param": None,
        "extra_info": {"devices": each.devices, "jaxbench": __version__},
        "options": {
            "disable_gc": False,
            "timer": "perf_counter",
            "min_rounds": 1,
            "max_time": 1.0,
            "min_time": 0.000005,
            "warmup": True,
        },
        "stats": stats(each.step_s, each.steps),
    }


def stats(times: tuple[float, ...], iterations: int) -> dict[str, object]:
    """pytest-benchmark's statistics. times: seconds per step of each round, at least one."""
    ordered = sorted(times)
    low, median, high = (float(each) for each in np.quantile(ordered, (0.25, 0.5, 0.75)))
    mean, spread = statistics.fmean(ordered), high - low
    deviation = statistics.stdev(ordered) if len(ordered) > 1 else 0.0
    inside = [each for each in ordered if low - OUTLIERS * spread <= each <= high + OUTLIERS * spread]
    far = sum(abs(each - mean) > deviation for each in ordered)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": deviation,
        "rounds": len(ordered),
        "median": median,
        "iqr": spread,
        "q1": low,
        "q3": high,
        "iqr_outliers": len(ordered) - len(inside),
        "stddev_outliers": far,
        "outliers": f"{far};{len(ordered) - len(inside)}",
        "ld15iqr": inside[0],
        "hd15iqr": inside[-1],
        "ops": 1 / mean,
        "total": math.fsum(ordered),
        "data": list(times),
        "iterations": iterations,
    }


def openmetrics(source: Source) -> str:
    """OpenMetrics text. A number with an interval has two more gauges, for the ends of the interval."""
    by_quantity = defaultdict(list)
    for each in source.measures():
        by_quantity[each.quantity].append(each)
    lines: list[str] = []
    for quantity in (each for each in QUANTITIES if each in by_quantity):
        stem = quantity.metric.removesuffix(f"_{quantity.unit}")
        ends = {"": "", "lower": "Lower end of the confidence interval. ", "upper": "Upper end of the same. "}
        for end, words in ends.items():
            samples = []
            for each in by_quantity[quantity]:
                value = {"": each.value.value, "lower": each.value.lo, "upper": each.value.hi}[end]
                if math.isfinite(value):
                    samples.append((_labels(source, each), value))
            if samples:
                name = "_".join(filter(None, (stem, end, quantity.unit)))
                lines += [
                    f"# TYPE {name} gauge",
                    f"# UNIT {name} {quantity.unit}",
                    f"# HELP {name} {words}{quantity.help}",
                ]
                lines += [f"{name}{labels} {float(value)!r}" for labels, value in samples]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _labels(source: Source, each: Measure) -> str:
    """The labels of a measure in the text format of Prometheus."""
    known = {"experiment": source.experiment, "point": each.point}
    if each.devices is not None:
        known["devices"] = str(each.devices)
    return "{" + ",".join(f'{name}="{_escape_label(value)}"' for name, value in known.items()) + "}"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
