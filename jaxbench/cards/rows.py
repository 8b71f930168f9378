# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The rows of a card in the gallery: one per point of a training, one per operation of a card of cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.summary import state as state_of
from jaxbench.cards.layout import Card
from jaxbench.errors import UserError, did_you_mean
from jaxbench.report.drawing.marks import Mark
from jaxbench.report.figures.runs import CardCurve
from jaxbench.report.sentences.comparison import clean


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One row of the table.

    Attributes:
      strategy: the strategy and the arm, if there is one; the operation in a card of cases.
      base: whether the efficiencies of its curve are relative to it.
      state: ok | wrong | unchecked | partial | failed | missing; the worst state if the row stands for several cases.
      cases: how many cases the row stands for; it shows the time of the largest. 0 in a training.
    """

    card: Card
    machine: str
    experiment: str
    strategy: str
    scaling: str
    devices: int
    step_s: Estimate
    efficiency: Estimate
    oversubscribed: bool
    base: bool
    state: str
    cases: int = 0

    @property
    def fields(self) -> dict[str, str]:
        """The fields that filters match."""
        manifest = self.card.manifest
        plan = manifest.get("plan")
        planned = plan.get("platform", "") if isinstance(plan, dict) else ""
        return {
            "card": self.card.path.stem,
            "machine": self.machine,
            "platform": str(manifest.get("platform") or planned),
            "device_kind": str(self.card.data["name"].get("device_kind", "")),
            "experiment": self.experiment,
            "strategy": self.strategy,
            "scaling": self.scaling,
            "devices": str(self.devices),
            "state": self.state,
            "jax": version(self.card),
            "date": date(self.card),
        }


FIELDS = (
    "card", "machine", "platform", "device_kind", "experiment", "strategy", "scaling", "devices", "state", "jax",
    "date",
)  # fmt: skip
_WORST = ("failed", "wrong", "missing", "unsupported", "partial", "unchecked", "ok")


def version(card: Card) -> str:
    versions = card.manifest.get("versions")
    return printable(versions.get("jax", "")) if isinstance(versions, dict) else ""


def date(card: Card) -> str:
    """The day on which the run began, such as "2026-11-21"."""
    return printable(card.manifest.get("started", ""))[:10]


def printable(text: Any) -> str:
    """The text without terminal control characters."""
    return clean(str(text))


def machine(card: Card) -> str:
    """The accelerator or the processor, with the number of devices or cores."""
    manifest = card.manifest
    kind = printable(card.data["name"].get("device_kind", "unknown"))
    if kind != "cpu":
        return f"{manifest.get('devices', '?')} x {kind}"
    cores = manifest.get("cores")
    name = printable(manifest.get("cpu_model") or "cpu")
    return f"{name}, {cores} core{'s' if cores != 1 else ''}" if cores else name


def of_card(card: Card) -> list[Shown]:
    return _of_cases(card) if card.of_cases else [_shown(card, point, _strategy(point)) for point in card.points]


def _strategy(point: dict[str, Any]) -> str:
    return printable(f"{point['strategy']} {point['arm'] or ''}".strip())


def _of_cases(card: Card) -> list[Shown]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for point in card.points:
        groups.setdefault((point["op"], point["dtype"], point["devices"]), []).append(point)
    rows = []
    for (op, dtype, _), group in groups.items():
        largest = max(group, key=lambda p: (p["step_s"] is not None, p["payload_bytes"] or p["elements"] or 0))
        states = {_state(point) for point in group}
        worst = next((word for word in _WORST if word in states), "missing")
        rows.append(_shown(card, largest, printable(f"{op} {dtype or ''}".strip()), state=worst, cases=len(group)))
    return rows


def _shown(card: Card, point: dict[str, Any], strategy: str, *, state: str = "", cases: int = 0) -> Shown:
    return Shown(
        card=card,
        machine=machine(card),
        experiment=printable(card.data["name"].get("experiment", "")),
        strategy=strategy,
        scaling=printable(point.get("scaling") or ""),
        devices=point["devices"],
        step_s=_estimate(point, "step_s"),
        efficiency=_estimate(point, "efficiency"),
        oversubscribed=bool(point["oversubscribed"]),
        base=point.get("base_devices") == point["devices"],
        state=state or _state(point),
        cases=cases,
    )


def _state(point: dict[str, Any]) -> str:
    return printable(state_of(point["status"], point["check_ok"]))


def _estimate(point: dict[str, Any], name: str) -> Estimate:
    value, lo, hi = (math.nan if point.get(f) is None else point[f] for f in (name, f"{name}_lo", f"{name}_hi"))
    return Estimate(value=value, lo=lo, hi=hi)


def read_filters(words: Sequence[str]) -> dict[str, list[str]]:
    """`experiment=cnn devices=1,8 strategy=zero*` -> patterns by field. Raises UserError."""
    filters: dict[str, list[str]] = {}
    for word in words:
        field, equals, patterns = word.partition("=")
        if not equals or not patterns:
            raise UserError(f"'{word}' is not a filter: write field=pattern, such as experiment=cnn or strategy=zero*.")
        if field not in FIELDS:
            raise UserError(f"cards have no field '{field}' to filter by: {did_you_mean(field, FIELDS)}")
        filters.setdefault(field, []).extend(patterns.lower().split(","))
    return filters


def matches(row: Shown, filters: dict[str, list[str]]) -> bool:
    """Whether every filtered field matches one of its patterns, ignoring case."""
    fields = row.fields
    return all(any(fnmatchcase(fields[name].lower(), p) for p in patterns) for name, patterns in filters.items())


def lines(rows: Sequence[Shown]) -> list[CardCurve]:
    """The curves of the figure: one for each card, strategy and scaling, over the points with an efficiency."""
    groups: dict[tuple[Any, ...], list[Shown]] = {}
    for row in rows:
        if row.efficiency.known and row.state not in ("failed", "missing", "unsupported"):
            groups.setdefault((row.card.path, row.strategy, row.scaling), []).append(row)
    return [
        CardCurve(
            machine=group[0].machine,
            experiment=group[0].experiment,
            strategy=strategy,
            scaling=scaling,
            marks=tuple(Mark(at=row.devices, value=row.efficiency.times(100), state=_mark(row)) for row in group),
        )
        for (_, strategy, scaling), group in groups.items()
    ]


def _mark(row: Shown) -> str:
    return "wrong" if row.state == "wrong" else "hollow" if row.oversubscribed else "solid"
