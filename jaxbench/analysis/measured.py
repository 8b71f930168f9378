# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The merged records of each planned point, both for training steps and for cases."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from jaxbench.analysis import records_by_point
from jaxbench.analysis.records_by_point import PointLines
from jaxbench.errors import UserError
from jaxbench.records.schema import CaseRecord, FailureRecord, Place, PointRecord, ProfileRecord, RoundRecord
from jaxbench.records.store import RunFolder

CompileReport = TypeVar("CompileReport", PointRecord, CaseRecord)


@dataclass(frozen=True, kw_only=True)
class Measured(Place, Generic[CompileReport]):
    """One planned point. The fields that identify it are inherited from its `Place`.

    Attributes:
      record: its newest compile report, or None.
      rounds: the first record of each round number, in order. rounds_asked: how many rounds were planned.
      failure: the failure if it is the newest line, or None.
      status: ok (has every round) | partial (has some) | failed (a failure is the newest line) | unsupported (the
        failure means that the strategy cannot run the model) | missing (has none).
      check_ok: True if every check passed in the newest compile report and in the reports of every session that
        contributed rounds, no result value is wrong, and nothing was compiled inside the timed region. None if never
        checked.
      reason: why `status` is not ok, or why `check_ok` is False; "" otherwise.
      repetition: a sentence about rounds that are recorded more than once; "" otherwise.
      looked: whether the intervals decided how many rounds the run has (measure.rounds=auto).
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
    looked: bool = False

    @property
    def units(self) -> tuple[tuple[int, int], ...]:
        """(session, round) of each of `rounds`: points with the same unit were measured at the same time."""
        return records_by_point.units(self.rounds)

    @property
    def honest(self) -> bool:
        """Whether its times may support a claim about scaling, or about the machine."""
        return self.status == "ok" and self.check_ok is True and not self.oversubscribed


P = TypeVar("P", bound=Measured)


def load(
    run: RunFolder,
    plan: dict[str, Any],
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
    lines = records_by_point.read(run, passport)
    names = [field.name for field in dataclasses.fields(place)]
    try:
        common = {"experiment": str(plan["experiment"]), "processes": int(plan.get("processes", 1))}
        platform, rounds, looked = str(plan.get("platform", "")), int(plan["rounds"]), "auto" in plan
        planned = [
            {"platform": platform, **{name: one[name] for name in names if name in one}} for one in plan["points"]
        ]
        places: dict[str, Place | None] = {str(facts["point"]): place(**facts) for facts in planned}
        asked = {str(one["point"]): int(one.get("rounds", rounds)) for one in plan["points"]}  # none in older plans
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"the plan of {_NOUN[passport]} in '{run.path}' is damaged ({error!r}).") from error
    result = []
    for name in dict.fromkeys((*places, *lines)):
        point_lines = lines.get(name, PointLines())
        where = places[name] if name in places else unplanned(name, platform, point_lines.failure)
        source: Any = point_lines.record or where
        if source is not None:
            facts = {field: getattr(source, field) for field in names}
            facts |= {field: getattr(point_lines.record, field, value) for field, value in common.items()}
            result.append(_merged(facts, point_lines, asked.get(name, rounds), looked, make))
    return result


_NOUN = {PointRecord: "points", CaseRecord: "cases"}


def _merged(place: dict[str, Any], about: PointLines, rounds_asked: int, looked: bool, make: type[P]) -> P:
    status, reason = records_by_point.status(about, rounds_asked)
    check_ok, why = records_by_point.check(about)
    return make(
        **place,
        rounds_asked=rounds_asked,
        looked=looked,
        record=about.record,
        rounds=about.rounds_in_order,
        failure=about.failure if about.failed else None,
        profile=about.profile,
        status=status,
        check_ok=check_ok,
        reason=reason or why,
        repetition=records_by_point.repetition(about),
    )
