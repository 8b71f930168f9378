# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How much processes and sessions of one program differ on this machine, measured by `jaxbench calibrate`.

Each call is a session: a run compared with itself. It shows how processes differ. Sessions at least `APART_S` apart
show how days differ, from MIN_SESSIONS on; until then that is assumed.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxbench.analysis import spread as spreads
from jaxbench.analysis.intervals import MIN_PROCESSES
from jaxbench.analysis.spread import ASSUMED, CALIBRATED, Spread
from jaxbench.errors import UserError
from jaxbench.records import identity, sealed
from jaxbench.records.store import write_json
from jaxbench.verdicts import judge, metric
from jaxbench.verdicts.judge import FASTER, SLOWER
from jaxbench.verdicts.samples import Sample, Side

FOLDER = Path("baselines")
FILE = "calibration.json"
SCHEMA = 1
MIN_CALIBRATION_PROCESSES = 2 * MIN_PROCESSES  # each half has MIN_PROCESSES
MAX_SPLIT_PROCESSES = 12  # into two halves: 462 ways, twice as many for each further one
MIN_SESSIONS = 3
UNSURE = " (known by its name only: another processor of the same name would not be noticed)"
APART_S = 3600.0  # between sessions: closer ones share the state of the machine


@dataclass(frozen=True, kw_only=True)
class CalibrationSession:
    """One call of `jaxbench calibrate`.

    Attributes:
      time: when, ISO 8601. sd, df: as in `Calibration`, of this session alone.
      logs: {point: mean over processes of the logarithm of its median time}.
      software: what was measured, as one word; sessions of other software are no repetitions.
    """

    time: str
    sd: float
    df: int
    logs: dict[str, float]
    software: str = ""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A run compared with itself, and with those of earlier sessions.

    Attributes:
      sd: standard deviation of the logarithm of a process's median time, root of the mean variance over points and
        sessions. It includes variation between rounds, so it is conservative.
      df: its degrees of freedom; points that the same processes measured count once.
      threshold: 95 % of all ways to split the newest session's processes into two halves show a smaller overall
        difference.
      comparisons, alarms: how many such ways there are, and how many of them have a verdict of faster or slower. They
        share their data, so alarms / comparisons is not an error rate.
      experiment, time: which experiment was measured, and when last.
      sessions: oldest first; none in files from before there were any.
    """

    sd: float
    df: int
    threshold: float
    comparisons: int
    alarms: int
    experiment: str
    time: str
    sessions: tuple[CalibrationSession, ...] = ()

    @property
    def session_sd(self) -> float:
        """Standard deviation between sessions of the logarithm of a point's time, root of the mean variance over
        points; what the processes of a session leave uncertain is in it. NaN below MIN_SESSIONS."""
        if len(self.sessions) < MIN_SESSIONS:
            return math.nan
        logs = [[session.logs[point] for session in self.sessions] for point in self.sessions[0].logs]
        return math.sqrt(float(np.mean(np.var(logs, axis=1, ddof=1))))

    @property
    def spread(self) -> Spread:
        """Both variations. That between sessions is assumed until there are enough."""
        count = len(self.sessions)
        many = f" in {count} sessions, the newest" if count > 1 else " in 1 session," if count else ""
        source = f"calibrated on this machine with {self.experiment}{many} at {self.time}"
        if math.isnan(self.session_sd):
            return Spread(sd=self.sd, df=self.df, source=source)
        return Spread(
            sd=self.sd, df=self.df, session_sd=self.session_sd, session_df=len(self.sessions) - 1,
            session_kind=CALIBRATED, source=source,
        )  # fmt: skip

    def after(self, earlier: Calibration | None) -> Calibration:
        """With the sessions of an earlier calibration that repeat the same, APART_S before this one's single session
        and before each other."""
        kept = list(self.sessions[-1:])
        for session in reversed(earlier.sessions if earlier else ()):
            same = (session.software, session.logs.keys()) == (kept[0].software, kept[0].logs.keys())
            if same and _seconds(session.time, kept[0].time) >= APART_S:
                kept.insert(0, session)
        sd, df = pooled(kept)
        return dataclasses.replace(self, sd=sd, df=df, sessions=tuple(kept))


def _seconds(first: str, second: str) -> float:
    times = [datetime.datetime.fromisoformat(time) for time in (first, second)]
    return (times[1] - times[0]).total_seconds()


def calibrate(side: Side, experiment: str, time: str, software: str = "") -> Calibration:
    """Of one session. Raises UserError when a point was measured by fewer than MIN_CALIBRATION_PROCESSES processes."""
    counts = {name: len(sample.processes) for name, sample in side.items()}
    few = {name: count for name, count in counts.items() if count < MIN_CALIBRATION_PROCESSES}
    if few or not side:
        name, count = next(iter(few.items()), ("no point", 0))
        least = MIN_CALIBRATION_PROCESSES
        raise UserError(f"{name} was measured by {count} processes: a calibration needs at least {least}.")
    differences, alarms = _against_itself(side)
    session = session_of(side, time, software)
    return Calibration(
        sd=session.sd,
        df=session.df,
        threshold=math.expm1(float(np.quantile(differences, 0.95))),
        comparisons=len(differences),
        alarms=alarms,
        experiment=experiment,
        time=time,
        sessions=(session,),
    )


def session_of(side: Side, time: str, software: str = "") -> CalibrationSession:
    """How the processes of one run differ. side: at least two processes a point."""
    variances = [float(np.var(sample.log_medians(), ddof=1)) for sample in side.values()]
    groups = {sample.names: len(sample.processes) - 1 for sample in side.values()}
    logs = {name: float(np.mean(sample.log_medians())) for name, sample in side.items()}
    sd = math.sqrt(float(np.mean(variances)))
    return CalibrationSession(time=time, sd=sd, df=sum(groups.values()), logs=logs, software=software)


def _against_itself(side: Side) -> tuple[list[float], int]:
    """The absolute logarithm of the overall ratio for each way to halve the processes; and the false alarms."""
    count = min(MAX_SPLIT_PROCESSES, *(len(sample.processes) for sample in side.values())) // 2 * 2
    one_session = dataclasses.replace(ASSUMED, session_sd=0.0)
    differences, alarms = [], 0
    for half in itertools.combinations(range(1, count), count // 2 - 1):
        first = (0, *half)  # the first process is always in A: B's halves are the complements
        second = tuple(i for i in range(count) if i not in first)
        a, b = ({name: _part(sample, which) for name, sample in side.items()} for which in (first, second))
        answers = judge.judge(a, b, metric.METRICS["step_s"], one_session)
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
    return _find(manifest, experiment, folder)[0]


def _find(manifest: Mapping[str, Any], experiment: str, folder: Path) -> tuple[Calibration | None, str]:
    """As `load`, with what cannot be known of the match, as a clause."""
    path = folder / FILE
    if not path.exists():
        return None, ""
    try:
        file = _read(path)
        key = _key_in(file, manifest)
        calibrations = [_parsed(each) for each in file["machines"].get(key, {}).values()]
        same_experiment = [each for each in calibrations if each.experiment == experiment]
        known = max(same_experiment or calibrations, key=lambda each: each.sd, default=None)
        return known, UNSURE if identity.cannot_tell(file.get("facts", {}).get(key, {}), manifest) else ""
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"'{path}' is damaged ({error!r}): delete it and run jaxbench calibrate.") from error


def _parsed(entry: Mapping[str, Any]) -> Calibration:
    """Raises ValueError if it does not follow from its sessions; older ones have none."""
    sessions: Sequence[Any] = entry.get("sessions", ())
    found = Calibration(**{**entry, "sessions": tuple(CalibrationSession(**session) for session in sessions)})
    if found.sessions and not math.isclose(found.sd, pooled(found.sessions)[0], rel_tol=1e-6):
        raise ValueError(f"sd is {found.sd:g}, and {pooled(found.sessions)[0]:.3g} by its sessions")
    return found


def pooled(sessions: Sequence[CalibrationSession]) -> tuple[float, int]:
    """(standard deviation between processes, its degrees of freedom) over sessions."""
    df = sum(session.df for session in sessions)
    return math.sqrt(sum(session.df * session.sd**2 for session in sessions) / df), df


def adopt(run: Path, manifest: Mapping[str, Any], experiment: str, folder: Path = FOLDER) -> None:
    """Keeps the calibrated spread with a run's records, for its intervals; nothing without one, or if it has one."""
    known, target = spread_of(manifest, experiment, folder), run / spreads.NAME
    if known is not ASSUMED and not target.exists():
        content = asdict(known)
        write_json(target, {**content, sealed.SHA256: sealed.digest(content)})


def spread_of(manifest: Mapping[str, Any], experiment: str, folder: Path = FOLDER) -> Spread:
    """The calibrated spread, or ASSUMED."""
    known, unsure = _find(manifest, experiment, folder)
    return ASSUMED if known is None else dataclasses.replace(known.spread, source=known.spread.source + unsure)


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
