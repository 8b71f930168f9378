# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Merges the lines of ``records.jsonl`` by point: which rounds count, and whether a point is complete and correct."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from jaxbench.core.schema import (
    CaseRecord,
    CompiledRecord,
    FailureRecord,
    Place,
    PointRecord,
    ProfileRecord,
    Record,
    RoundRecord,
    Verdict,
)
from jaxbench.core.store import RunFolder
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.levers import TRAININGS
from jaxbench.records import identity
from jaxbench.records.manifest import Plan
from jaxbench.statistics import contended
from jaxbench.statistics.timing import moment, session

# A round ends when its line is written. By the system's clock, its timed blocks cannot take longer than the time since
# the previous line; in unedited runs they take up to 0.98 of it.
CLOCK_SLACK, CLOCK_TICK_S = 1.1, 0.1


@dataclass
class PointLines:
    """The lines of one point so far. passports: its point or case lines (compile reports), in the order of the file."""

    passports: list[PointRecord | CaseRecord] = field(default_factory=list)
    failure: FailureRecord | None = None
    failed: bool = False  # a failure is its newest line
    rounds: dict[int, RoundRecord] = field(default_factory=dict)
    repeated: Counter[int] = field(default_factory=Counter)  # by round number: additional lines, which do not count
    profile: ProfileRecord | None = None  # the newest profile
    too_long: list[str] = field(default_factory=list)  # clauses on rounds with longer blocks than there was time

    @property
    def record(self) -> PointRecord | CaseRecord | None:
        return self.passports[-1] if self.passports else None

    @property
    def rounds_in_order(self) -> tuple[RoundRecord, ...]:
        """The first record of each round, in order of round number."""
        return tuple(self.rounds[number] for number in sorted(self.rounds))


def read(run: RunFolder, kind: type[PointRecord] | type[CaseRecord]) -> dict[str, PointLines]:
    """Reads a run folder. kind: the only kind of compile report that it may have. Raises UserError for another kind, or
    for damage."""
    lines = collect(run.records())
    if any(not isinstance(record, kind) for about in lines.values() for record in about.passports):
        raise UserError(f"the records in '{run.path}' are not of the kind that its plan names.")
    return lines


def collect(records: Iterable[Record]) -> dict[str, PointLines]:
    lines: dict[str, PointLines] = {}
    written: dict[int, float] = {}  # by session: when its newest line was written, Unix time in seconds
    for record in records:
        point_lines = lines.setdefault(record.point, PointLines())
        if isinstance(record, CompiledRecord):
            continue
        if isinstance(record, RoundRecord):
            point_lines.too_long += _too_long(record, written)
        if isinstance(record, PointRecord | CaseRecord | RoundRecord) and record.time:
            written[session(record)] = moment(record)
        if isinstance(record, ProfileRecord):  # it neither ends a failure nor counts as a measurement
            point_lines.profile = record
            continue
        point_lines.failed = isinstance(record, FailureRecord)
        if isinstance(record, RoundRecord):
            if point_lines.rounds.setdefault(record.round, record) is not record:
                point_lines.repeated[record.round] += 1
        elif isinstance(record, FailureRecord):
            point_lines.failure = record
        else:
            point_lines.passports.append(record)
    return lines


def _too_long(record: RoundRecord, written: dict[int, float]) -> list[str]:
    """A clause if the blocks of a round took longer than the time since the previous line of its session."""
    since = moment(record) - written.get(session(record), math.nan)
    timed = sum(record.block_s + record.double_block_s + record.warmup_block_s + record.loop_s + record.double_loop_s)
    if not timed > CLOCK_SLACK * since + CLOCK_TICK_S:
        return []
    text = f"its blocks took {digits(timed)} s, and {digits(since)} s passed since the line before"
    return [f"time: {text}: edited, or the system's clock was set back, in round {record.round}"]


def point_status(lines: PointLines, asked: int) -> tuple[str, str]:
    """(ok | partial | failed | unsupported | missing, why it is not ok). asked: how many rounds were planned."""
    rounds = len(lines.rounds)
    if lines.failed and lines.failure is not None and lines.failure.unsupported:
        return "unsupported", lines.failure.reason
    if lines.failed and lines.failure is not None:
        return "failed", f"{lines.failure.stage}: {lines.failure.reason}"
    if rounds == 0:
        return "missing", "no round was measured"
    if lines.record is None:
        return "partial", "it has rounds but no compile report"
    if rounds < asked:
        return "partial", f"{rounds} of {asked} rounds were measured"
    return "ok", ""


def check(lines: PointLines) -> tuple[bool | None, str]:
    """(whether the point is correct, why not). None if it was not or could not be checked.

    A newer compile report does not replace a failed check of a session if rounds of that session are still in use.
    """
    rounds, used = lines.rounds_in_order, {session(r) for r in lines.rounds.values()}
    wrong = [fault for record in lines.passports[-1:] for fault in faults(record)]
    earlier = [f for record in lines.passports[:-1] if session(record) in used for f in faults(record)]
    wrong.extend(dict.fromkeys(f"{fault}, in an earlier compile report of rounds that are in use" for fault in earlier))
    for record in (r for r in lines.passports[:-1] if session(r) in used):
        if found := identity.model_differences(record, lines.passports[-1]):
            wrong.append(f"two models in one point ({identity.model_sentence(found, 'first', 'later')})")
            break
    compiled = sum(r.compilations for r in rounds)
    if compiled:
        wrong.append(f"retrace: {compiled} programs were compiled inside the timed region")
    wrong.extend(lines.too_long[:1])
    wrong.extend([fault for r in rounds if (fault := _miscounted(r, lines.record))][:1])
    late = [(fault, r.round) for r in rounds for fault in failed(r.checks)]
    wrong.extend(f"{fault}, in round {number}" for fault, number in late[:1])
    wrong.extend([f"{len(late) - 1} more checks after rounds failed"] * (len(late) > 1))
    if wrong:
        return False, "; ".join(wrong)
    checks = [check for record in lines.passports[-1:] for check in record.checks]
    after = [check for r in rounds for check in r.checks]
    unchecked = [f"{check.name}: {check.reason}" for check in (*checks, *after) if check.unchecked]
    return (True, "") if checks and not unchecked else (None, "; ".join(unchecked))


def _miscounted(record: RoundRecord, passport: PointRecord | CaseRecord | None) -> str:
    """A clause if a round has times of another number of steps or processes than it ran; "" otherwise."""
    stated, made = record.counted, record.steps_made
    if stated and stated != made:
        return f"steps: the state counted {stated} updates, and the blocks of round {record.round} have {made} steps"
    if passport is None:
        return ""
    beside = TRAININGS.of(passport.levers).at_once if isinstance(passport, PointRecord) else 1
    expected = beside * passport.processes  # each of several trainings at once is a process of its own
    if len(record.process_block_s) in (0, expected):
        return ""
    return f"processes: round {record.round} has {len(record.process_block_s)} of {expected} processes"


def repetition(lines: PointLines) -> str:
    """A clause about rounds that are in the file more than once; "" if there are none."""
    if not lines.repeated:
        return ""
    names, more = ", ".join(map(str, sorted(lines.repeated))), sum(lines.repeated.values())
    return f"{more} more line{'s' if more > 1 else ''} of round {names}: only the first line of each round counts"


def faults(record: PointRecord | CaseRecord) -> Iterator[str]:
    """The failed checks of a compile report, as clauses."""
    wrong = failed(record.checks)
    yield from wrong
    if isinstance(record, CaseRecord) and record.wrong and not wrong:
        yield f"result: {record.wrong} of its values are wrong"


def failed(checks: Iterable[Verdict]) -> list[str]:
    """The failed checks, as clauses."""
    return [f"{v.name}: {v.reason}" for v in checks if not v.ok and not v.unchecked]


CompileReport = TypeVar("CompileReport", PointRecord, CaseRecord)


@dataclass(frozen=True, kw_only=True)
class Measured(Place, Generic[CompileReport]):
    """One planned point. The fields that identify it are inherited from its `Place`.

    Attributes:
      record: its newest compile report, or None.
      rounds: the first record of each round number, in order, that counts. rounds_asked: how many rounds were planned.
      left_out: the rounds of a run with automatic rounds that do not count (`statistics.contended`).
      failure: the failure if it is the newest line, or None.
      status: ok (has every round) | partial (has some) | failed (a failure is the newest line) | unsupported (the
        failure means that the strategy cannot run the model) | missing (has none).
      check_ok: True if every check passed in the newest compile report and in the reports of every session that
        contributed rounds, no result value is wrong, and nothing was compiled inside the timed region. None if never
        checked.
      reason: why `status` is not ok, or why `check_ok` is False; "" otherwise.
      repetition: a sentence about rounds that are recorded more than once; "" otherwise.
      auto_rounds: whether the intervals decided how many rounds the run has (measure.rounds=auto).
    """

    experiment: str
    processes: int
    record: CompileReport | None
    rounds: tuple[RoundRecord, ...]
    rounds_asked: int
    failure: FailureRecord | None
    profile: ProfileRecord | None
    status: str
    check_ok: bool | None
    reason: str
    repetition: str = ""
    auto_rounds: bool = False
    left_out: tuple[RoundRecord, ...] = ()

    @property
    def every_round(self) -> tuple[RoundRecord, ...]:
        """In order, also those that do not count."""
        return tuple(sorted((*self.rounds, *self.left_out), key=lambda each: each.round))

    @property
    def units(self) -> tuple[tuple[int, int], ...]:
        """(session, round) of each of `rounds`: points with the same unit were measured at the same time."""
        return tuple((session(each), each.round) for each in self.rounds)

    @property
    def reportable(self) -> bool:
        """Whether its times may support a claim about scaling, or about the machine."""
        return self.status == "ok" and self.check_ok is True and not self.oversubscribed


def _counted(lines: dict[str, PointLines], places: dict[str, Place | None]) -> dict[str, tuple[RoundRecord, ...]]:
    rounds = {name: about.rounds_in_order for name, about in lines.items() if about.rounds}
    claiming = [
        name for name in rounds
        if (place := places.get(name)) and not place.oversubscribed and not getattr(place, "explains", "")
    ]  # fmt: skip
    return contended.counted(rounds, claiming)


P = TypeVar("P", bound=Measured)


def load_points(
    run: RunFolder,
    plan: Plan,
    make: type[P],
    passport: type[PointRecord] | type[CaseRecord],
    place: type[Place],
    unplanned: Callable[[str, str, FailureRecord | None], Place | None],
) -> list[P]:
    """The points of the plan in its order, then points that were measured but not planned.

    Args:
      unplanned: maps (id, platform, failure) of an unplanned point without a compile report to its place; None if the
        point is not shown.

    Raises:
      UserError: the folder is damaged, or has records of another kind or schema.
    """
    lines = read(run, passport)
    names = [field.name for field in dataclasses.fields(place)]
    points = cast(list[dict[str, Any]], plan["points"])  # any of the fields of `place`, which are not known here
    try:
        common = {"experiment": str(plan["experiment"]), "processes": int(plan.get("processes", 1))}
        platform, rounds, auto_rounds = str(plan.get("platform", "")), int(plan["rounds"]), "auto" in plan
        planned = [{"platform": platform, **{name: one[name] for name in names if name in one}} for one in points]
        places: dict[str, Place | None] = {str(facts["point"]): place(**facts) for facts in planned}
        asked = {str(one["point"]): int(one.get("rounds", rounds)) for one in points}  # none in older plans
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        noun = "cases" if passport is CaseRecord else "points"
        raise UserError(f"the plan of {noun} in '{run.path}' is damaged ({error!r}).") from error
    count = _counted(lines, places) if auto_rounds and platform == "cpu" else {}
    result = []
    for name in dict.fromkeys((*places, *lines)):
        point_lines = lines.get(name, PointLines())
        where = places[name] if name in places else unplanned(name, platform, point_lines.failure)
        source: Any = point_lines.record or where
        if source is not None:
            facts = {field: getattr(source, field) for field in names}
            facts |= {field: getattr(point_lines.record, field, value) for field, value in common.items()}
            status, reason = point_status(point_lines, rounds_asked := asked.get(name, rounds))
            check_ok, why = check(point_lines)
            every = point_lines.rounds_in_order
            used = count.get(name, every)
            left_out = tuple(sorted({*every} - {*used}, key=lambda each: each.round))
            point = make(
                **facts, rounds_asked=rounds_asked, auto_rounds=auto_rounds, record=point_lines.record,
                rounds=used, left_out=left_out, failure=point_lines.failure if point_lines.failed else None,
                profile=point_lines.profile, status=status, check_ok=check_ok, reason=reason or why,
                repetition=repetition(point_lines),
            )  # fmt: skip
            result.append(point)
    return result
