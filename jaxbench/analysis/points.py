# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The points of a run, steps and cases alike: the lines of ``records.jsonl`` merged by point, missing ones included.

It decides which rounds count, and whether a point is complete and correct.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxbench.analysis.quantities import devices
from jaxbench.core import same_model
from jaxbench.core.point import Point
from jaxbench.core.schema import (
    CaseFields,
    CaseRecord,
    CompiledRecord,
    CompileReport,
    FailureRecord,
    PointRecord,
    ProfileRecord,
    Record,
    RoundRecord,
    StepFields,
    StepWork,
    Verdict,
)
from jaxbench.core.store import RunFolder
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.levers import TRAININGS
from jaxbench.records.manifest import Surroundings
from jaxbench.statistics import timing
from jaxbench.statistics.timing import moment, session

# Why a point has another state than "ok", and what is odd about its lines.
REASONS = {
    "no round": "no round was measured",
    "no report": "it has rounds but no compile report",
    "few rounds": "{rounds} of {asked} rounds were measured",
    "time": "time: its blocks took {took} s, and {passed} s passed since the line before: edited, or the system's "
    "clock was set back, in round {round}",
    "steps": "steps: the state counted {stated} updates, and the blocks of round {round} have {made} steps",
    "processes": "processes: round {round} has {found} of {expected} processes",
    "repeated": "{count} more line{several} of round {names}: only the first line of each round counts",
}

# A round ends when its line is written. By the system's clock, its timed blocks cannot take longer than the time since
# the previous line; in unedited runs they take up to 0.98 of it.
CLOCK_SLACK, CLOCK_TICK_S = 1.1, 0.1  # relative, and seconds for rounds so short that 10 % is next to nothing


@dataclass
class PointLines:
    """The lines of one point so far."""

    compile_reports: list[PointRecord | CaseRecord] = field(
        default_factory=list
    )  # compile reports, in the order of the file
    failure: FailureRecord | None = None  # the newest one, which later rounds may have ended
    failed: bool = False  # a failure is its newest line
    rounds: dict[int, RoundRecord] = field(default_factory=dict)
    repeated: Counter[int] = field(default_factory=Counter)  # by round number: additional lines, which do not count
    profile: ProfileRecord | None = None  # the newest profile
    too_long: list[str] = field(default_factory=list)  # clauses on rounds with longer blocks than there was time

    @property
    def record(self) -> PointRecord | CaseRecord | None:
        return self.compile_reports[-1] if self.compile_reports else None

    @property
    def rounds_in_order(self) -> tuple[RoundRecord, ...]:
        """The first record of each round, in order of round number."""
        return tuple(self.rounds[number] for number in sorted(self.rounds))


def collect(records: Iterable[Record]) -> dict[str, PointLines]:
    lines: dict[str, PointLines] = {}
    written: dict[int, float] = {}  # by session: when its newest line was written, Unix time in seconds
    for record in records:
        point_lines = lines.setdefault(record.point, PointLines())
        if isinstance(record, CompiledRecord):  # of absent hardware: `analysis.compiled` reads these
            continue
        if isinstance(record, RoundRecord):  # before `written` changes, because it needs the line before this one
            point_lines.too_long += _too_long(record, written)
        if isinstance(record, PointRecord | CaseRecord | RoundRecord) and record.time:
            written[session(record)] = moment(record)
        if isinstance(record, ProfileRecord):  # it neither ends a failure nor counts as a measurement
            point_lines.profile = record
            continue
        # The newest line decides: a continued run tries a failed point again, and its rounds then end the failure.
        point_lines.failed = isinstance(record, FailureRecord)
        if isinstance(record, RoundRecord):
            # The first line of a round counts. If the last did, repeating a round until it is fast would change the
            # result.
            if point_lines.rounds.setdefault(record.round, record) is not record:
                point_lines.repeated[record.round] += 1
        elif isinstance(record, FailureRecord):
            point_lines.failure = record
        else:
            point_lines.compile_reports.append(record)
    return lines


def _too_long(record: RoundRecord, written: dict[int, float]) -> list[str]:
    """A clause if the blocks of a round took longer than the time since the previous line of its session."""
    since = moment(record) - written.get(session(record), math.nan)  # NaN for the first line of a session
    timed = sum(record.block_s + record.double_block_s + record.warmup_block_s + record.loop_s + record.double_loop_s)
    if not timed > CLOCK_SLACK * since + CLOCK_TICK_S:  # written so that an unknown time (NaN) is no fault
        return []
    return [REASONS["time"].format(took=digits(timed), passed=digits(since), round=record.round)]


def point_status(lines: PointLines, asked: int) -> tuple[str, str]:
    """(ok | partial | failed | unsupported | missing, why it is not ok). asked: how many rounds were planned."""
    rounds = len(lines.rounds)
    if lines.failed and lines.failure is not None:  # even with all rounds: the newest line says what happens now
        reason = lines.failure.reason
        return ("unsupported", reason) if lines.failure.unsupported else ("failed", f"{lines.failure.stage}: {reason}")
    if rounds == 0:
        return "missing", REASONS["no round"]
    if lines.record is None:
        return "partial", REASONS["no report"]
    if rounds < asked:
        return "partial", REASONS["few rounds"].format(rounds=rounds, asked=asked)
    return "ok", ""


def check(lines: PointLines) -> tuple[bool | None, str]:
    """(whether the point is correct, why not). None if it was not or could not be checked.

    A newer compile report does not replace a failed check of a session if rounds of that session are still in use.
    """
    rounds, used = lines.rounds_in_order, {session(r) for r in lines.rounds.values()}
    wrong = [fault for record in lines.compile_reports[-1:] for fault in faults(record)]
    # A continued run compiles again. Rounds of the earlier session were made by the program of the earlier report.
    earlier = [f for record in lines.compile_reports[:-1] if session(record) in used for f in faults(record)]
    wrong.extend(dict.fromkeys(f"{fault}, in an earlier compile report of rounds that are in use" for fault in earlier))
    for record in (r for r in lines.compile_reports[:-1] if session(r) in used):
        if found := same_model.model_differences(record, lines.compile_reports[-1]):
            wrong.append(f"two models in one point ({same_model.model_sentence(found, 'first', 'later')})")
            break  # one example says enough
    compiled = sum(r.compilations for r in rounds)
    if compiled:
        wrong.append(f"retrace: {compiled} programs were compiled inside the timed region")
    # One example of each kind of fault, because all rounds of a wrong program usually have it.
    wrong.extend(lines.too_long[:1])
    wrong.extend([fault for r in rounds if (fault := _miscounted(r, lines.record))][:1])
    late = [(fault, r.round) for r in rounds for fault in failed(r.checks)]
    wrong.extend(f"{fault}, in round {number}" for fault, number in late[:1])
    wrong.extend([f"{len(late) - 1} more checks after rounds failed"] * (len(late) > 1))
    if wrong:
        return False, "; ".join(wrong)
    checks = [check for record in lines.compile_reports[-1:] for check in record.checks]
    after = [check for r in rounds for check in r.checks]
    unchecked = [f"{check.name}: {check.reason}" for check in (*checks, *after) if check.unchecked]
    # Without any check nothing is known: None is not success.
    return (True, "") if checks and not unchecked else (None, "; ".join(unchecked))


def _miscounted(record: RoundRecord, prepared: PointRecord | CaseRecord | None) -> str:
    """A clause if a round has times of another number of steps or processes than it ran; "" otherwise."""
    stated, made = record.counted, record.steps_made
    if stated and stated != made:
        return REASONS["steps"].format(stated=stated, round=record.round, made=made)
    if prepared is None:
        return ""
    trainings = TRAININGS.of(prepared.levers).at_once if isinstance(prepared, PointRecord) else 1
    expected = trainings * prepared.processes  # each of several trainings at once is a process of its own
    if len(record.process_block_s) in (0, expected):  # 0: a single process has no times of its own
        return ""
    return REASONS["processes"].format(round=record.round, found=len(record.process_block_s), expected=expected)


def repetition(lines: PointLines) -> str:
    """A clause about rounds that are in the file more than once; "" if there are none."""
    if not lines.repeated:
        return ""
    names, more = ", ".join(map(str, sorted(lines.repeated))), sum(lines.repeated.values())
    return REASONS["repeated"].format(count=more, several="s" if more > 1 else "", names=names)


def faults(record: PointRecord | CaseRecord) -> Iterator[str]:
    """The failed checks of a compile report, as clauses."""
    wrong = failed(record.checks)
    yield from wrong
    # A check that failed for the same values has said so already, with more detail.
    if isinstance(record, CaseRecord) and record.wrong and not wrong:
        yield f"result: {record.wrong} of its values are wrong"


def failed(checks: Iterable[Verdict]) -> list[str]:
    """The failed checks, as clauses."""
    return [f"{v.name}: {v.reason}" for v in checks if not v.ok and not v.unchecked]


@dataclass(frozen=True, kw_only=True)
class MeasuredPoint(Point):
    """One step or case of a run, planned or not, with everything that the run recorded about it."""

    experiment: str
    record: PointRecord | None = None  # the newest compile report of a step
    case: CaseRecord | None = None  # the newest compile report of a case
    rounds: tuple[RoundRecord, ...]  # the first record of each round number that counts, in order
    rounds_asked: int  # by the plan
    failure: FailureRecord | None  # only if it is the newest line
    profile: ProfileRecord | None
    # ok (has every round) | partial (has some) | failed (a failure is the newest line) | unsupported (the failure
    # means that the strategy cannot run the model) | missing (has none)
    status: str
    # True if every check passed in the newest compile report and in those of every session that contributed rounds, no
    # result value is wrong, and nothing was compiled inside the timed region. None: never checked
    check_ok: bool | None
    reason: str  # why `status` is not ok, or why `check_ok` is False; ""
    repetition: str = ""  # a sentence about rounds that are recorded more than once
    auto_rounds: bool = False  # the intervals decided how many rounds the run has (measure.rounds=auto)
    left_out: tuple[RoundRecord, ...] = ()  # rounds that do not count, because others used the machine

    @property
    def every_round(self) -> tuple[RoundRecord, ...]:
        """In order, also those that do not count."""
        return tuple(sorted((*self.rounds, *self.left_out), key=lambda record: record.round))

    @property
    def prepared(self) -> PointRecord | CaseRecord | None:
        """The newest compile report, of either kind."""
        return self.record or self.case

    @property
    def compile_report(self) -> CompileReport | None:
        """What the compiler says of the step; None for a case."""
        return self.record.compile_report if self.record is not None else None

    @property
    def checks(self) -> tuple[Verdict, ...]:
        """The checks of the compile report, then those after the rounds."""
        before = self.prepared.checks if self.prepared is not None else ()
        return (*before, *(check for each in self.every_round for check in each.checks))

    @property
    def units(self) -> tuple[tuple[int, int], ...]:
        """(session, round) of each of `rounds`: points with the same unit were measured at the same time."""
        return tuple((session(each), each.round) for each in self.rounds)

    @property
    def reportable(self) -> bool:
        """Whether its times may support a claim about scaling, or about the machine."""
        return self.status == "ok" and self.check_ok is True and not self.oversubscribed

    @property
    def peak_bytes(self) -> float:
        """Peak memory of a step per device; NaN: unknown."""
        return float(self.compile_report.peak_bytes or math.nan) if self.compile_report is not None else math.nan

    @property
    def temp_bytes(self) -> float:
        """Scratch memory of the compiled step per device, which includes activations; NaN: unknown."""
        temp = self.compile_report.temp_bytes if self.compile_report is not None else None
        return math.nan if temp is None else float(temp)

    @property
    def trainings(self) -> int:
        """How many trainings run at once, each with the whole batch."""
        return TRAININGS.of(self.levers).at_once

    @property
    def examples(self) -> int:
        """The examples in one step of all its trainings; 1 for a call of a case."""
        return 1 if self.of_case else self.global_batch * self.trainings

    @property
    def unit(self) -> str:
        """What one example of a step is: "images"."""
        return self.record.unit if self.record is not None else "examples"

    def outcome(self, name: str) -> float:
        """One result of its short training; NaN if there is none."""
        return self.prepared.outcome.get(name, math.nan) if self.prepared is not None else math.nan

    @property
    def work(self) -> StepWork | None:
        """What the compiled step does; None for a case, and in older records."""
        return self.record.work if self.record is not None else None

    def fact(self, name: str) -> float:
        """A number of the step other than its time; NaN if there is none."""
        return self.record.facts.get(name, math.nan) if self.record is not None else math.nan

    @property
    def loss_after(self) -> float:
        """The loss after the steps of its first round; NaN: unknown."""
        return next((each.loss_after for each in self.rounds if each.loss_after is not None), math.nan)

    @property
    def group_processes(self) -> int | None:
        """For a collective, the number of processes that own the devices of one group; None: unknown."""
        return self.case.group_processes if self.case is not None and self.family == "collective" else None

    @property
    def group_hosts(self) -> int | None:
        """For a collective, the number of hosts of those processes; None: unknown."""
        return self.case.group_hosts if self.case is not None and self.family == "collective" else None

    @property
    def where(self) -> str:
        """The platform, or the number of cores: "gpu", "2 cores"."""
        return f"{self.cores} core{'s' * (self.cores != 1)}" if self.platform == "cpu" else self.platform

    @property
    def between(self) -> str:
        """What a collective's group spans: "2 hosts", "2 processes", or "" within one process."""
        return between(self.group_processes or 1, self.group_hosts or 1)

    @property
    def group(self) -> str:
        """The participants of a collective: "8 devices", "4 devices along x of 2x4", "2 devices of 2 hosts"."""
        along = f" along {self.axis} of {self.mesh}" if "x" in self.mesh else ""
        return f"{devices(self.devices)}{along}{f' of {self.between}' if self.between else ''}"


def between(processes: int, hosts: int) -> str:
    """What these processes and hosts are in words: "2 hosts"; "2 processes" on one host; "" for one process."""
    if hosts > 1:
        return f"{hosts} hosts"
    return f"{processes} processes" if processes > 1 else ""


def hosts_of(point: MeasuredPoint, workers: Mapping[str, Surroundings]) -> int:
    """The number of hosts of a point's processes. workers: from the manifest."""
    surroundings = workers.get(point.prepared.worker, Surroundings()) if point.prepared is not None else Surroundings()
    return len(set(surroundings.get("hosts", ()))) or 1


def load(run: RunFolder) -> list[MeasuredPoint]:
    """Reads a run folder. Returns the planned points and any others: steps by strategy, scaling and devices, cases in
    the order of the plan.

    The arms of one group keep the order of the plan, because the first arm is the baseline.

    Raises:
      UserError: it is not a run folder, is damaged, or has another schema, no plan, or records of another kind.
    """
    plan = run.manifest().get("plan")
    if not isinstance(plan, dict) or not isinstance(plan.get("points"), list):
        raise UserError(f"'{run.path}' has no sweep plan in its manifest: report on a folder made by 'jaxbench run'.")
    of_cases, lines = plan.get("measures") == "cases", collect(run.records())
    kind = CaseRecord if of_cases else PointRecord
    if any(not isinstance(record, kind) for point_lines in lines.values() for record in point_lines.compile_reports):
        raise UserError(f"the records in '{run.path}' are not of the kind that its plan names.")
    identity = CaseFields if of_cases else StepFields
    names = [field.name for field in dataclasses.fields(identity)]
    try:
        experiment, processes = str(plan["experiment"]), int(plan.get("processes", 1))
        platform, rounds = str(plan.get("platform", "")), int(plan["rounds"])
        entries: list[dict[str, Any]] = [{**entry} for entry in plan["points"]]
        facts = [{"platform": platform, **{n: entry[n] for n in names if n in entry}} for entry in entries]
        planned = {str(fact["point"]): identity(**fact) for fact in facts}
        asked = {str(entry["point"]): int(entry.get("rounds", rounds)) for entry in entries}  # none in older plans
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        noun = "cases" if of_cases else "points"
        raise UserError(f"the plan of {noun} in '{run.path}' is damaged ({error!r}).") from error
    # A fixed number of rounds is what the user asked for, and on accelerators others' CPU time is not the program's.
    count = _counted(lines, planned) if "auto" in plan and platform == "cpu" else {}
    points = []
    # Planned points first, in the order of the plan; then points that only the records name, as after a change of the
    # plan.
    for name in dict.fromkeys((*planned, *lines)):
        point_lines = lines.get(name, PointLines())
        record, failure = point_lines.record, point_lines.failure
        source = record or planned.get(name) or _unplanned(name, platform, failure, of_cases)
        if source is None:
            continue
        status, reason = point_status(point_lines, rounds_asked := asked.get(name, rounds))
        check_ok, why = check(point_lines)
        used = count.get(name, every := point_lines.rounds_in_order)
        kept = {each.round for each in used}
        point = MeasuredPoint(
            **{field: getattr(source, field) for field in names},
            experiment=record.experiment if record is not None else experiment,
            processes=record.processes if record is not None else processes,
            of_case=of_cases,
            rounds_asked=rounds_asked,
            auto_rounds="auto" in plan,
            record=record if isinstance(record, PointRecord) else None,
            case=record if isinstance(record, CaseRecord) else None,
            rounds=used,
            left_out=tuple(each for each in every if each.round not in kept),
            failure=failure if point_lines.failed else None,
            profile=point_lines.profile,
            status=status,
            check_ok=check_ok,
            reason=reason or why,
            repetition=repetition(point_lines),
        )
        points.append(point)
    if of_cases:
        return points
    # sorted() is stable, so that the arms of a group stay in the order of the plan.
    strategies = list(dict.fromkeys(p.strategy for p in points))
    return sorted(points, key=lambda p: (strategies.index(p.strategy), p.scaling, p.devices))


def _counted(
    lines: dict[str, PointLines], planned: Mapping[str, StepFields | CaseFields]
) -> dict[str, tuple[RoundRecord, ...]]:
    """The rounds that count, of each point that has any."""
    rounds = {name: point_lines.rounds_in_order for name, point_lines in lines.items() if point_lines.rounds}
    known = [planned[name] for name in rounds if name in planned]  # of others nobody knows whether they claim
    claiming = [each.point for each in known if not (each.oversubscribed or bool(getattr(each, "explains", "")))]
    return timing.counted(rounds, claiming)


def load_cases(run: RunFolder) -> list[MeasuredPoint]:
    """As `load`. Raises UserError for a run of steps, too."""
    plan = run.manifest().get("plan")
    if not (isinstance(plan, dict) and plan.get("measures") == "cases" and isinstance(plan.get("points"), list)):
        raise UserError(
            f"'{run.path}' has no plan of cases in its manifest: it is not a run of kernels or collectives."
        )
    return load(run)


def _unplanned(name: str, platform: str, failure: FailureRecord | None, of_case: bool) -> Point | None:
    """An unplanned point without a compile report; None for a step without a failure. Of a case only the operation is
    known, from the beginning of its id."""
    if of_case:
        devices = failure.devices if failure is not None else 1
        return Point(point=name, of_case=True, devices=devices, platform=platform, op=name.split("/")[0])
    if failure is None:
        return None
    return Point(
        point=name,
        devices=failure.devices,
        platform=platform,
        strategy=failure.strategy,
        scaling=failure.scaling,
        global_batch=failure.global_batch,
        arm=failure.arm,
    )
