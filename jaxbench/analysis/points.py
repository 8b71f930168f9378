# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Merges the lines of ``records.jsonl`` into one `Point` per thing that was asked for, missing ones included."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from jaxbench.errors import UserError
from jaxbench.records.schema import FailureRecord, PointRecord, Record, RoundRecord
from jaxbench.records.store import RunFolder


@dataclass(frozen=True, kw_only=True)
class Point:
    """One asked-for (strategy, scaling, devices), with everything the run says about it.

    Attributes:
      point: the id, "strategy/scaling/devices".
      status: ok (every round is there) | partial (some) | failed (a failure is the newest line) | missing (none).
      check_ok: every verdict holds, of the newest passport and of those of every session that contributed rounds, and
        nothing was compiled inside the timed region; None when the point was never checked.
      reason: why `status` is not ok, or why `check_ok` is False; "" otherwise.
      rounds: the newest of each number, by number.
    """

    point: str
    experiment: str
    strategy: str
    scaling: str
    devices: int
    processes: int
    platform: str
    oversubscribed: bool
    global_batch: int
    rounds_asked: int
    record: PointRecord | None
    rounds: tuple[RoundRecord, ...]
    failure: FailureRecord | None
    status: str
    check_ok: bool | None
    reason: str

    @property
    def units(self) -> tuple[tuple[int, int], ...]:
        """(session, round) of each of `rounds`: what was measured at one time together with the other points."""
        return tuple((session(r), r.round) for r in self.rounds)

    @property
    def honest(self) -> bool:
        """Whether its times may support a claim about scaling."""
        return self.status == "ok" and self.check_ok is True and not self.oversubscribed


def session(record: PointRecord | RoundRecord) -> int:
    """Which start of the run measured it, from its worker's name ("session1/cpu8"); 0 where that does not say."""
    found = re.match(r"session(\d+)/", record.worker)
    return int(found[1]) if found else 0


@dataclass
class _Lines:
    """What was read about one point so far. passports: in the order of the file."""

    passports: list[PointRecord] = field(default_factory=list)
    failure: FailureRecord | None = None
    failed: bool = False
    rounds: dict[int, RoundRecord] = field(default_factory=dict)

    @property
    def record(self) -> PointRecord | None:
        return self.passports[-1] if self.passports else None


def load(run: RunFolder) -> list[Point]:
    """Reads a run folder. Returns the planned points and any the plan does not know, by strategy, scaling, devices.

    Raises:
      UserError: not a run folder, damaged, of another schema, or without a sweep plan.
    """
    plan = run.manifest().get("plan")
    if not isinstance(plan, dict) or not isinstance(plan.get("points"), list):
        raise UserError(f"'{run.path}' has no sweep plan in its manifest: report on a folder made by 'jaxbench run'.")
    lines = _collect(run.records())
    try:
        asked = {str(point["point"]): _planned(point, plan) for point in plan["points"]}
        rounds = int(plan["rounds"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the sweep plan in '{run.path}' is damaged ({error!r}).") from error
    for name, found in lines.items():
        source = found.record or found.failure
        if name not in asked and source is not None:
            asked[name] = _unplanned(source, plan)
    points = [_point(name, facts, lines.get(name, _Lines()), rounds) for name, facts in asked.items()]
    strategies = list(dict.fromkeys(p.strategy for p in points))
    return sorted(points, key=lambda p: (strategies.index(p.strategy), p.scaling, p.devices))


def _collect(records: Iterable[Record]) -> dict[str, _Lines]:
    lines: dict[str, _Lines] = {}
    for record in records:
        about = lines.setdefault(record.point, _Lines())
        about.failed = isinstance(record, FailureRecord)
        if isinstance(record, PointRecord):
            about.passports.append(record)
        elif isinstance(record, FailureRecord):
            about.failure = record
        else:
            about.rounds[record.round] = record
    return lines


def _planned(point: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    return {
        "experiment": str(plan["experiment"]),
        "processes": int(plan.get("processes", 1)),
        "platform": str(plan.get("platform", "")),
        "strategy": str(point["strategy"]),
        "scaling": str(point["scaling"]),
        "devices": int(point["devices"]),
        "global_batch": int(point["global_batch"]),
        "oversubscribed": bool(point["oversubscribed"]),
    }


def _unplanned(source: PointRecord | FailureRecord, plan: dict[str, Any]) -> dict[str, Any]:
    """A point that was measured although the plan of the last start does not ask for it: shown, not dropped."""
    fields = ("experiment", "strategy", "scaling", "devices", "global_batch")
    return {
        **{name: getattr(source, name) for name in fields},
        "processes": int(plan.get("processes", 1)),
        "platform": str(plan.get("platform", "")),
        "oversubscribed": False,
    }


def _point(name: str, facts: dict[str, Any], lines: _Lines, rounds_asked: int) -> Point:
    record = lines.record
    if record is not None:  # what was measured outranks what was planned
        measured = ("processes", "platform", "oversubscribed", "global_batch")
        facts = {**facts, **{key: getattr(record, key) for key in measured}}
    rounds = tuple(lines.rounds[number] for number in sorted(lines.rounds))
    status, reason = _status(lines, len(rounds), rounds_asked)
    check_ok, why = _check(lines.passports, rounds)
    return Point(
        point=name,
        **facts,
        rounds_asked=rounds_asked,
        record=record,
        rounds=rounds,
        failure=lines.failure if lines.failed else None,
        status=status,
        check_ok=check_ok,
        reason=reason or why,
    )


def _status(lines: _Lines, rounds: int, asked: int) -> tuple[str, str]:
    if lines.failed and lines.failure is not None:
        return "failed", f"{lines.failure.stage}: {lines.failure.reason}"
    if rounds == 0:
        return "missing", "no round was measured"
    if lines.record is None:
        return "partial", "its rounds have no compile passport"
    if rounds < asked:
        return "partial", f"{rounds} of {asked} rounds were measured"
    return "ok", ""


def _check(passports: list[PointRecord], rounds: tuple[RoundRecord, ...]) -> tuple[bool | None, str]:
    """A newer passport does not excuse a failed one of a session whose rounds are still in use."""
    newest, used = passports[-1:], {session(r) for r in rounds}
    wrong = [f"{v.name}: {v.reason}" for record in newest for v in record.checks if not v.ok]
    earlier = [v for record in passports[:-1] if session(record) in used for v in record.checks if not v.ok]
    said = (f"{v.name}: {v.reason}, in an earlier passport of rounds that are in use" for v in earlier)
    wrong.extend(dict.fromkeys(said))
    compiled = sum(r.compilations for r in rounds)
    if compiled:
        wrong.append(f"retrace: {compiled} programs were compiled inside the timed region")
    if wrong:
        return False, "; ".join(wrong)
    if not any(record.checks for record in newest):
        return None, ""
    return True, ""
