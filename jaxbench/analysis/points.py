# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Merges the lines of ``records.jsonl`` into one `Point` per thing that was asked for, missing ones included."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jaxbench.analysis import lines
from jaxbench.analysis.lines import Lines
from jaxbench.errors import UserError
from jaxbench.records.schema import CaseRecord, FailureRecord, PointRecord, ProfileRecord, RoundRecord
from jaxbench.records.store import RunFolder


@dataclass(frozen=True, kw_only=True)
class Point:
    """One asked-for (strategy, scaling, devices, arm), with everything the run says about it.

    Attributes:
      point: the id, "strategy/scaling/devices", and "/arm" if there is one.
      arm: what tells it from the run's other settings of levers, "" in a run that sweeps none.
      levers: the value of every lever; {} in records that are older than levers.
      status: ok (every round is there) | partial (some) | failed (a failure is the newest line) | unsupported (that is
        one, and says that the strategy cannot take the model) | missing (none).
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
    profile: ProfileRecord | None
    status: str
    check_ok: bool | None
    reason: str
    arm: str = ""
    levers: dict[str, str] = field(default_factory=dict)

    @property
    def units(self) -> tuple[tuple[int, int], ...]:
        """(session, round) of each of `rounds`: what was measured at one time together with the other points."""
        return lines.units(self.rounds)

    @property
    def honest(self) -> bool:
        """Whether its times may support a claim about scaling."""
        return self.status == "ok" and self.check_ok is True and not self.oversubscribed


def load(run: RunFolder) -> list[Point]:
    """Reads a run folder. Returns the planned points and any the plan does not know, by strategy, scaling, devices.

    The arms of one place keep the order of the plan, so that the first of them is the baseline.

    Raises:
      UserError: not a run folder, damaged, of another schema, or without a sweep plan.
    """
    plan = run.manifest().get("plan")
    if not isinstance(plan, dict) or not isinstance(plan.get("points"), list):
        raise UserError(f"'{run.path}' has no sweep plan in its manifest: report on a folder made by 'jaxbench run'.")
    found = lines.read(run, PointRecord)
    try:
        asked = {str(point["point"]): _planned(point, plan) for point in plan["points"]}
        rounds = int(plan["rounds"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"the sweep plan in '{run.path}' is damaged ({error!r}).") from error
    for name, about in found.items():
        source = about.record or about.failure
        if name not in asked and source is not None:
            asked[name] = _unplanned(source, plan)
    points = [_point(name, facts, found.get(name, Lines()), rounds) for name, facts in asked.items()]
    strategies = list(dict.fromkeys(p.strategy for p in points))
    return sorted(points, key=lambda p: (strategies.index(p.strategy), p.scaling, p.devices))


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
        "arm": str(point.get("arm", "")),
        "levers": {str(name): str(value) for name, value in (point.get("levers") or {}).items()},
    }


def _unplanned(source: PointRecord | CaseRecord | FailureRecord, plan: dict[str, Any]) -> dict[str, Any]:
    """A point that was measured although the plan of the last start does not ask for it: shown, not dropped."""
    fields = ("experiment", "strategy", "scaling", "devices", "global_batch")
    return {
        **{name: getattr(source, name) for name in fields},
        "processes": int(plan.get("processes", 1)),
        "platform": str(plan.get("platform", "")),
        "oversubscribed": False,
        "arm": getattr(source, "arm", ""),
        "levers": getattr(source, "levers", {}),
    }


def _point(name: str, facts: dict[str, Any], about: Lines, rounds_asked: int) -> Point:
    record = about.record
    if record is not None:  # what was measured outranks what was planned
        measured = ("processes", "platform", "oversubscribed", "global_batch")
        facts = {**facts, **{key: getattr(record, key) for key in measured}}
    status, reason = lines.status(about, rounds_asked)
    check_ok, why = lines.check(about)
    return Point(
        point=name,
        **facts,
        rounds_asked=rounds_asked,
        record=record if isinstance(record, PointRecord) else None,
        rounds=about.newest_rounds,
        failure=about.failure if about.failed else None,
        profile=about.profile,
        status=status,
        check_ok=check_ok,
        reason=reason or why,
    )
