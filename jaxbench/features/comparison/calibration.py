# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How much the time of one program varies between processes and between sessions on this machine.

`jaxbench calibrate` measures it. Each call is one session: a run compared with itself, which shows how processes
differ. MIN_SESSIONS sessions, each at least `APART_S` after the one before, also show how days differ. With fewer
sessions, the variation between days is assumed.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jaxbench.core.store import write_json
from jaxbench.errors import UserError
from jaxbench.features.comparison import judge
from jaxbench.features.comparison.judge import FASTER, SLOWER
from jaxbench.features.comparison.ratio import Side
from jaxbench.records import identity
from jaxbench.records.documents import decode, sealed, unsealed
from jaxbench.records.manifest import Manifest
from jaxbench.records.reading import read_json
from jaxbench.statistics import bootstrap
from jaxbench.statistics.bootstrap import ASSUMED, CALIBRATED, MIN_PROCESSES, RunVariance

FOLDER = Path("baselines")
FILE = "calibration.json"
MIN_CALIBRATION_PROCESSES = 2 * MIN_PROCESSES  # the run is split in two, and each half needs MIN_PROCESSES
MAX_SPLIT_PROCESSES = 12  # 12 processes split into two halves in 462 ways; each extra pair about quadruples that
MIN_SESSIONS = 3  # with two, a variance has one degree of freedom
UNSURE = " (matched by its name only: another processor of the same name would not be noticed)"
APART_S = 3600.0  # the least time between sessions: closer ones share the state of the machine


@dataclass(frozen=True, kw_only=True)
class CalibrationSession:
    """One call of `jaxbench calibrate`.

    Attributes:
      time: when it ran, ISO 8601.
      sd, df: as in `Calibration`, for this session alone.
      logs: {point: mean over processes of the logarithm of its median time}.
      software: a hash of what was measured. Sessions with different hashes are not repetitions of each other.
    """

    time: str
    sd: float
    df: int
    logs: dict[str, float]
    software: str = ""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A run compared with itself, and with the runs of earlier sessions.

    Attributes:
      sd: the A/A spread between processes: the standard deviation of the logarithm of a process's median time. It is
        the root of the mean variance over points and sessions. It includes variation between rounds, so it is
        conservative.
      df: its degrees of freedom. Points measured by the same processes count once.
      threshold: 95 % of the ways to split the newest session's processes into two halves show a smaller relative
        difference over all points.
      comparisons, alarms: the number of such splits, and the number of them with a verdict of faster or slower. The
        splits share their data, so alarms / comparisons is not an error rate.
      experiment, time: the experiment that was measured, and the time of the newest session.
      sessions: oldest first; empty in files of versions without sessions.
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
        """The standard deviation between sessions of the logarithm of a point's time: the root of the mean variance
        over points. It includes the uncertainty that the processes of a session leave. NaN below MIN_SESSIONS."""
        if len(self.sessions) < MIN_SESSIONS:
            return math.nan
        logs = [[session.logs[point] for session in self.sessions] for point in self.sessions[0].logs]
        return math.sqrt(float(np.mean(np.var(logs, axis=1, ddof=1))))

    @property
    def spread(self) -> RunVariance:
        """The variation between processes and between sessions. The latter is assumed below MIN_SESSIONS sessions."""
        count = len(self.sessions)
        many = f" in {count} runs, the newest" if count > 1 else " in 1 run," if count else ""
        source = f"calibrated on this machine with {self.experiment}{many} at {self.time}"
        if math.isnan(self.session_sd):
            return RunVariance(sd=self.sd, df=self.df, source=source)
        return RunVariance(
            sd=self.sd,
            df=self.df,
            session_sd=self.session_sd,
            session_df=len(self.sessions) - 1,
            session_kind=CALIBRATED,
            source=source,
        )

    def after(self, earlier: Calibration | None) -> Calibration:
        """This calibration of one session, extended by the sessions of an earlier calibration.

        Only sessions that measured the same points with the same software are kept, each at least APART_S before the
        next.
        """
        kept = list(self.sessions[-1:])
        for session in reversed(earlier.sessions if earlier else ()):  # from the newest: it is kept in any case
            same = (session.software, session.logs.keys()) == (kept[0].software, kept[0].logs.keys())
            times = [datetime.datetime.fromisoformat(each.time) for each in (session, kept[0])]
            # Other software is another program, and an hour later the machine is still in the same state.
            if same and (times[1] - times[0]).total_seconds() >= APART_S:
                kept.insert(0, session)
        sd, df = pooled(kept)
        return dataclasses.replace(self, sd=sd, df=df, sessions=tuple(kept))


def calibrate(side: Side, experiment: str, time: str, software: str = "") -> Calibration:
    """The calibration from one session's run.

    side: the samples of its points. experiment: its name. time: now, ISO 8601. software: as in `CalibrationSession`.
    Raises UserError if fewer than MIN_CALIBRATION_PROCESSES processes measured a point.
    """
    for name, sample in side.items():
        if sample.count < MIN_CALIBRATION_PROCESSES:
            needs = f"a calibration needs at least {MIN_CALIBRATION_PROCESSES}"
            short = "Where memory is short, fewer take turns: stop other programs, or use a smaller model."
            raise UserError(f"{name} was measured by {sample.count} processes: {needs}. {short}")
    differences, alarms = _against_itself(side)
    # 0.95: a check with this margin would raise an alarm about the machine itself one time in twenty.
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
    """How the processes of one run differ. side: at least two processes per point."""
    variances = [float(np.var(sample.log_medians(), ddof=1)) for sample in side.values()]
    groups = {sample.names: len(sample.processes) - 1 for sample in side.values()}
    logs = {name: float(np.mean(sample.log_medians())) for name, sample in side.items()}
    # Variances are averaged, not deviations: their mean is unbiased.
    sd = math.sqrt(float(np.mean(variances)))
    return CalibrationSession(time=time, sd=sd, df=sum(groups.values()), logs=logs, software=software)


def _against_itself(side: Side) -> tuple[list[float], int]:
    """(differences, alarms) over all ways to split the processes into two halves.

    differences: the absolute logarithm of the overall ratio, for each split. alarms: the number of splits with a
    verdict of faster or slower. All of them are false.
    """
    count = min(MAX_SPLIT_PROCESSES, *(len(sample.processes) for sample in side.values())) // 2 * 2  # even: two halves
    one_session = dataclasses.replace(ASSUMED, session_sd=0.0)  # both halves are of one session
    differences, alarms = [], 0
    for half in itertools.combinations(range(1, count), count // 2 - 1):
        first = (0, *half)  # the first process is always in A: B's halves are the complements
        second = tuple(i for i in range(count) if i not in first)
        a, b = ({name: sample.only(which) for name, sample in side.items()} for which in (first, second))
        answers = judge.judge(a, b, judge.METRICS["step_s"], one_session)
        differences.append(abs(math.log(answers.overall.ratio.value)))
        alarms += any(answer.verdict in (FASTER, SLOWER) for answer in (*answers.points, answers.overall))
    return differences, alarms


def machine_key(manifest: Manifest) -> str:
    """The machine's key in the file, readable by people. Older files identify the machine by this key alone."""
    return ", ".join(str(manifest.get(name, "")) for name in ("platform", "device_kind", "cores", "cpu_model"))


@dataclass(frozen=True, kw_only=True)
class CalibrationFile:
    """The calibrations of all machines.

    Attributes:
      machines: {key of the machine: {experiment: its calibration}}.
      facts: the manifests' hardware facts by key; none in older files. The kernel is not compared, because it does not
        change how much processes differ.
    """

    schema: Literal[1] = 1
    machines: dict[str, dict[str, Calibration]]
    facts: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

    def key_of(self, manifest: Manifest) -> str | None:
        """The key of this machine; None if the file does not have it."""
        keys = [key for key in self.machines if key.partition(" #")[0] == machine_key(manifest)]  # see `save`
        return next((key for key in keys if not identity.hardware(self.facts.get(key, {}), manifest)), None)


def load(manifest: Manifest, experiment: str, folder: Path = FOLDER) -> Calibration | None:
    """This machine's calibration with this experiment, or its largest spread with any other; None without one.

    Raises UserError for a damaged file.
    """
    return _find(manifest, experiment, folder)[0]


def _find(manifest: Manifest, experiment: str, folder: Path) -> tuple[Calibration | None, str]:
    """(as `load`, UNSURE or ""): UNSURE if the file cannot prove that its machine is this one."""
    file = _read(folder / FILE)
    key = file.key_of(manifest) or ""
    calibrations = [*file.machines.get(key, {}).values()]
    same_experiment = [each for each in calibrations if each.experiment == experiment]
    # The largest one of other experiments, because too wide an interval only decides less.
    known = max(same_experiment or calibrations, key=lambda each: each.sd, default=None)
    return known, UNSURE if identity.cannot_tell(file.facts.get(key, {}), manifest) else ""


def pooled(sessions: Sequence[CalibrationSession]) -> tuple[float, int]:
    """(standard deviation between processes, its degrees of freedom) over sessions."""
    df = sum(session.df for session in sessions)
    return math.sqrt(sum(session.df * session.sd**2 for session in sessions) / df), df


def adopt(run: Path, manifest: Manifest, experiment: str, folder: Path = FOLDER) -> None:
    """Copies this machine's calibrated spread into the run folder `run`, so the run's intervals can use it.

    Does nothing if this machine is not calibrated, or if the run folder has a spread already.
    """
    known, target = spread_of(manifest, experiment, folder), run / bootstrap.SPREAD
    # A run that is continued keeps its spread: its report must not change because the machine was calibrated since.
    if known is not ASSUMED and not target.exists():
        write_json(target, sealed(asdict(known)))


def spread_of(manifest: Manifest, experiment: str, folder: Path = FOLDER) -> RunVariance:
    """This machine's calibrated spread, or ASSUMED without a calibration."""
    known, unsure = _find(manifest, experiment, folder)
    return ASSUMED if known is None else dataclasses.replace(known.spread, source=known.spread.source + unsure)


def save(manifest: Manifest, calibration: Calibration, folder: Path = FOLDER) -> Path:
    """Writes a calibration to the file, in place of an earlier one of this machine and experiment."""
    path = folder / FILE
    folder.mkdir(parents=True, exist_ok=True)
    file = _read(path)
    # The number tells machines apart if their processors have the same name.
    key = file.key_of(manifest) or f"{machine_key(manifest)} #{len(file.machines) + 1}"
    file.machines.setdefault(key, {})[calibration.experiment] = calibration
    file.facts[key] = {name: value for name, value in manifest.items() if name in identity.FIELDS}
    write_json(path, sealed(asdict(file)))
    return path


def _read(path: Path) -> CalibrationFile:
    """The file, empty if it does not exist."""
    if not path.exists():
        return CalibrationFile(machines={})

    advice = "delete it and run jaxbench calibrate."
    return read_json(path, lambda content: decode(CalibrationFile, unsealed(content)), advice)
