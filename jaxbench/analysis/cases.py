# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Merges the lines of a run of cases into one `CasePoint` per case and place that was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import lines
from jaxbench.analysis.lines import Lines
from jaxbench.errors import UserError
from jaxbench.records.schema import CaseRecord, FailureRecord, RoundRecord
from jaxbench.records.store import RunFolder


@dataclass(frozen=True, kw_only=True)
class CasePoint:
    """One case in one place, with everything the run says about it.

    From the placement, with the meaning they have in `CaseRecord`: point to resident_bytes. What was measured outranks
    what was planned.

    Attributes:
      status, check_ok, reason, rounds: as in `points.Point`; a wrong result value makes `check_ok` False.
    """

    point: str
    experiment: str
    family: str
    op: str
    dtype: str
    impl: str
    shape: str
    elements: int | None
    payload_bytes: int | None
    flops: float | None
    bytes_moved: float | None
    devices: int
    mesh: str
    axis: str
    source: str
    target: str
    platform: str
    cores: int | None
    processes: int
    oversubscribed: bool
    resident_bytes: int | None
    rounds_asked: int
    record: CaseRecord | None
    rounds: tuple[RoundRecord, ...]
    failure: FailureRecord | None
    status: str
    check_ok: bool | None
    reason: str

    @property
    def units(self) -> tuple[tuple[int, int], ...]:
        """(session, round) of each of `rounds`."""
        return lines.units(self.rounds)

    @property
    def honest(self) -> bool:
        """Whether its times may support a claim about the machine."""
        return self.status == "ok" and self.check_ok is True and not self.oversubscribed


# What the plan says of a case, and its record says again.
_PLACED = (
    "family", "op", "dtype", "impl", "shape", "elements", "payload_bytes", "flops", "bytes_moved", "devices", "mesh",
    "axis", "source", "target", "platform", "cores", "oversubscribed", "resident_bytes",
)  # fmt: skip
_TEXTS = ("family", "dtype", "impl", "shape", "mesh", "axis", "source", "target")


def load(run: RunFolder) -> list[CasePoint]:
    """Reads a run folder. Returns the planned points in the order of the plan, then any that the plan does not know.

    Raises:
      UserError: not a run folder, damaged, of another schema, or not a run of cases.
    """
    plan = run.manifest().get("plan")
    if not (isinstance(plan, dict) and plan.get("measures") == "cases" and isinstance(plan.get("points"), list)):
        raise UserError(f"'{run.path}' has no plan of cases in its manifest: it is no run of kernels or collectives.")
    found = lines.read(run, CaseRecord)
    try:
        common = {"experiment": str(plan["experiment"]), "processes": int(plan.get("processes", 1))}
        asked = {str(p["point"]): {**common, **{name: p[name] for name in _PLACED}} for p in plan["points"]}
        rounds = int(plan["rounds"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the plan of cases in '{run.path}' is damaged ({error!r}).") from error
    for name, about in found.items():
        if name not in asked:
            asked[name] = {**common, **_unplanned(name, about, plan)}
    return [_point(name, facts, found.get(name, Lines()), rounds) for name, facts in asked.items()]


def _unplanned(name: str, about: Lines, plan: dict[str, Any]) -> dict[str, Any]:
    """A case that was measured although the plan of the last start does not ask for it: shown, not dropped.

    Its record says what it is; without one, all that is known is how its id begins.
    """
    facts: dict[str, Any] = dict.fromkeys(_PLACED) | dict.fromkeys(_TEXTS, "")
    facts |= {"op": name.split("/")[0], "platform": str(plan.get("platform", "")), "oversubscribed": False}
    return {**facts, "devices": about.failure.devices if about.failure is not None else 1}


def _point(name: str, facts: dict[str, Any], about: Lines, rounds_asked: int) -> CasePoint:
    record = about.record
    if record is not None:  # what was measured outranks what was planned
        facts = {key: getattr(record, key) for key in facts}
    status, reason = lines.status(about, rounds_asked)
    check_ok, why = lines.check(about)
    return CasePoint(
        point=name,
        **facts,
        rounds_asked=rounds_asked,
        record=record if isinstance(record, CaseRecord) else None,
        rounds=about.newest_rounds,
        failure=about.failure if about.failed else None,
        status=status,
        check_ok=check_ok,
        reason=reason or why,
    )
