# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The process-to-process variation of this machine, measured by `jaxbench calibrate`; otherwise assumed."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxbench.errors import UserError
from jaxbench.records import identity
from jaxbench.records.store import write_json
from jaxbench.verdicts import judge, metric
from jaxbench.verdicts.judge import FASTER, SLOWER
from jaxbench.verdicts.ratio import ASSUMED, MIN_PROCESSES, Spread
from jaxbench.verdicts.samples import Sample, Side

FOLDER = Path("baselines")
FILE = "calibration.json"
SCHEMA = 1
LEAST = 2 * MIN_PROCESSES  # processes, so that each half has MIN_PROCESSES


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A run compared with itself.

    Attributes:
      sd: standard deviation of the logarithm of a process's median time, root of the mean variance over points. It
        includes variation between rounds, so it is conservative.
      df: its degrees of freedom; points that the same processes measured count once.
      threshold: 95 % of all ways to split the processes into two halves show a smaller overall difference.
      comparisons, alarms: how many such ways there are, and how many of them have a verdict of faster or slower. They
        share their data, so alarms / comparisons is not an error rate.
      experiment, time: which experiment was measured, and when.
    """

    sd: float
    df: int
    threshold: float
    comparisons: int
    alarms: int
    experiment: str
    time: str

    @property
    def spread(self) -> Spread:
        source = f"calibrated on this machine with {self.experiment} at {self.time}"
        return Spread(sd=self.sd, df=self.df, source=source)


def calibrate(side: Side, experiment: str, time: str) -> Calibration:
    """Raises UserError when a point was measured by fewer than LEAST processes."""
    few = {name: len(sample.processes) for name, sample in side.items() if len(sample.processes) < LEAST}
    if few or not side:
        name, count = next(iter(few.items()), ("no point", 0))
        raise UserError(f"{name} was measured by {count} processes: a calibration needs at least {LEAST}.")
    variances = [float(np.var(sample.log_medians(), ddof=1)) for sample in side.values()]
    groups = {sample.names: len(sample.processes) - 1 for sample in side.values()}
    differences, alarms = _against_itself(side)
    return Calibration(
        sd=math.sqrt(float(np.mean(variances))),
        df=sum(groups.values()),
        threshold=math.expm1(float(np.quantile(differences, 0.95))),
        comparisons=len(differences),
        alarms=alarms,
        experiment=experiment,
        time=time,
    )


def _against_itself(side: Side) -> tuple[list[float], int]:
    """The absolute logarithm of the overall ratio for each way to halve the processes; and the false alarms."""
    count = min(len(sample.processes) for sample in side.values()) // 2 * 2
    differences, alarms = [], 0
    for half in itertools.combinations(range(1, count), count // 2 - 1):
        first = (0, *half)  # the first process is always in A: B's halves are the complements
        second = tuple(i for i in range(count) if i not in first)
        a, b = ({name: _part(sample, which) for name, sample in side.items()} for which in (first, second))
        answers = judge.judge(a, b, metric.METRICS["step_s"], ASSUMED)
        differences.append(abs(math.log(answers.overall.ratio.value)))
        alarms += any(answer.verdict in (FASTER, SLOWER) for answer in (*answers.points, answers.overall))
    return differences, alarms


def _part(sample: Sample, which: tuple[int, ...]) -> Sample:
    processes, names = tuple(sample.processes[i] for i in which), tuple(sample.names[i] for i in which)
    return Sample(processes=processes, names=names, work=sample.work)


def machine_key(manifest: Mapping[str, Any]) -> str:
    """The machine's key in the file, by which people know it; files of today have no other facts."""
    return ", ".join(str(manifest.get(name, "")) for name in ("platform", "device_kind", "cores", "cpu_model"))


def _key_in(file: dict[str, Any], manifest: Mapping[str, Any]) -> str | None:
    """The key under which the file has this machine; None if it has not.

    "facts" are the manifests' facts by key. A kernel does not change how much processes differ.
    """
    facts = file.get("facts", {})
    keys = [key for key in file["machines"] if key.partition(" #")[0] == machine_key(manifest)]
    return next((key for key in keys if not identity.hardware(facts.get(key, {}), manifest)), None)


def load(manifest: Mapping[str, Any], experiment: str, folder: Path = FOLDER) -> Calibration | None:
    """This machine's calibration with this experiment, else its largest one with any; None without one.

    Raises UserError for a damaged file.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        file = _read(path)
        entries = file["machines"].get(_key_in(file, manifest), {})
        calibrations = [Calibration(**each) for each in entries.values()]
        same_experiment = [each for each in calibrations if each.experiment == experiment]
        return max(same_experiment or calibrations, key=lambda each: each.sd, default=None)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"'{path}' is damaged ({error!r}): delete it and run jaxbench calibrate.") from error


def spread_of(manifest: Mapping[str, Any], experiment: str, folder: Path = FOLDER) -> Spread:
    """The calibrated spread, or ASSUMED."""
    calibration = load(manifest, experiment, folder)
    return ASSUMED if calibration is None else calibration.spread


def save(manifest: Mapping[str, Any], calibration: Calibration, folder: Path = FOLDER) -> Path:
    """Adds a calibration to the file, or replaces the one of the same machine and experiment."""
    path = folder / FILE
    folder.mkdir(parents=True, exist_ok=True)
    file: dict[str, Any] = _read(path) if path.exists() else {"schema": SCHEMA, "machines": {}}
    key = _key_in(file, manifest) or f"{machine_key(manifest)} #{len(file['machines']) + 1}"
    file["machines"].setdefault(key, {})[calibration.experiment] = asdict(calibration)
    file.setdefault("facts", {})[key] = {name: manifest[name] for name in identity.FIELDS if name in manifest}
    write_json(path, file)
    return path


def _read(path: Path) -> dict[str, Any]:
    file: dict[str, Any] = json.loads(path.read_text())
    if file["schema"] != SCHEMA:
        raise UserError(f"'{path}' has schema {file['schema']}, this jaxbench reads {SCHEMA}: calibrate again.")
    return file
