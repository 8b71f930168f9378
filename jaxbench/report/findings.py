# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Everything a page says about a run, computed once and shown on every page alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.analysis import fits, machine_card, points, scaling, tokens
from jaxbench.analysis.fits import Fit
from jaxbench.analysis.headline import devices, headlines, seconds
from jaxbench.analysis.scaling import Control, Row
from jaxbench.records.store import RunFolder


@dataclass(frozen=True, kw_only=True)
class Findings:
    """A run's conclusions. repairs: what reading the records had to pass over. card: this machine's, or None."""

    experiment: str
    headlines: list[str]
    rows: list[Row]
    fits: list[Fit]
    controls: list[Control]
    repairs: list[str]
    config: dict[str, Any]
    manifest: dict[str, Any]
    path: Path
    card: dict[str, Any] | None = None

    def sections(self) -> list[tuple[str, list[str]]]:
        """(heading, sentences), empty ones left out, most urgent first."""
        sections = [
            ("Not as asked", self.shortfalls()),
            ("Not supported", excused(self.rows, self.config)),
            ("Base", base_lines(self.rows)),
            ("Notes", [*self.repairs, *notes(self.rows), *(c.sentence for c in self.controls)]),
            ("Scaling laws", fits.sentences(self.fits)),
            ("Real tokens", tokens.sentences(self.rows)),
            ("Utilisation", utilisation(self.rows)),
        ]
        return [(heading, sentences) for heading, sentences in sections if sentences]

    def shortfalls(self) -> list[str]:
        """Why the run is not complete and correct, each distinct reason once; empty when it is."""
        return shortfalls(self.rows, self.config)


def find(run: RunFolder) -> Findings:
    """Reads and analyses a run folder. Raises UserError when it is not one, is damaged or has another schema."""
    config, manifest = run.config(), run.manifest()
    loaded = points.load(run)
    card, why_not = card_of(run, manifest)
    rows = scaling.analyse(loaded, config=config, machine=card)
    return Findings(
        experiment=rows[0].point.experiment if rows else str(manifest["plan"].get("experiment", "")),
        headlines=headlines(rows),
        rows=rows,
        fits=fits.fit_all(rows),
        controls=scaling.controls(rows),
        repairs=[*dict.fromkeys(run.notes), *why_not],
        config=config,
        manifest=manifest,
        path=run.path,
        card=card,
    )


def card_of(run: RunFolder, manifest: dict[str, Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """The machine's card that lies in the folder; and, where it is of another machine, the sentence that says so."""
    card = machine_card.read(run.path / machine_card.NAME)
    why_not = machine_card.matches(card, manifest) if card is not None else ""
    return (None, [f"The machine's card in the folder is not used: {why_not}"]) if why_not else (card, [])


def _shortfall(row: Row) -> tuple[str, str] | None:
    """(what is wrong with the point, why), or None."""
    point = row.point
    if point.status == "unsupported":
        return None
    if point.status == "failed":
        return "recorded as failed", point.reason
    if point.status != "ok":
        return point.status, point.reason
    if point.check_ok is False:
        return "wrong", point.reason
    return ("unchecked", point.reason) if point.check_ok is None else None


def shortfalls(rows: list[Row], config: dict[str, Any]) -> list[str]:
    """Why these rows are not complete and correct, each distinct reason once; empty when they are.

    A strategy that cannot take the model is a shortfall where it was asked for by its name, or where there is no other.
    """
    about: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if shortfall := _shortfall(row):
            about.setdefault(shortfall, []).append(row.point.point)
    said = [
        f"{names(points)} {'is' if len(points) == 1 else 'are'} {what}{f': {why}' if why else ''}."
        for (what, why), points in about.items()
    ]
    return said if excused(rows, config) else said + unsupported(rows)


def excused(rows: list[Row], config: dict[str, Any]) -> list[str]:
    """What `unsupported` says, where all strategies were asked for and another one takes the model."""
    every = config.get("strategy") == "all" and any(row.point.status != "unsupported" for row in rows)
    return unsupported(rows) if every else []


def unsupported(rows: list[Row]) -> list[str]:
    """A sentence for each strategy that cannot take the model: of all its points, or naming those it is true of."""
    about: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if row.point.status == "unsupported":
            about.setdefault(row.point.strategy, {}).setdefault(row.point.reason, []).append(row.point.point)
    said = []
    for strategy, reasons in about.items():
        if all(row.point.status == "unsupported" for row in rows if row.point.strategy == strategy):
            said.append(f"{strategy}: {next(iter(reasons))}")  # the rest says the same of other sizes
        else:
            said += [f"{names(points)}: {reason}" for reason, points in reasons.items()]
    return said


def base_lines(rows: list[Row]) -> list[str]:
    """The base of each strategy and scaling with its absolute time."""
    return [
        f"{row.point.strategy} {row.point.scaling}: {devices(row.point.devices)}, "
        f"{seconds(row.timing.step_s.value)} per step of {row.point.global_batch}, {row.timing.samples} blocks in "
        f"{row.timing.rounds} rounds."
        for row in rows
        if row.base is not None and row.point is row.base
    ]


def notes(rows: list[Row]) -> list[str]:
    """Each distinct note once, with the points it is about."""
    about: dict[str, list[str]] = {}
    for row in rows:
        for note in row.notes:
            about.setdefault(note, []).append(row.point.point)
    return [f"{names(points)}: {note}." for note, points in about.items()]


def utilisation(rows: list[Row]) -> list[str]:
    """The MFU of each strategy from its smallest to its largest count, or each distinct reason why there is none.

    Without a catalogued peak the share of what the machine's card measured comes first.
    """
    honest = [row for row in rows if not row.point.oversubscribed]
    known = [row for row in honest if math.isfinite(row.use.mfu)]
    if known:
        return [f"{who}: {', '.join(map(_mfu, ends))}; {ends[0].use.note}." for who, ends in _families(known)]
    shares = [row for row in honest if math.isfinite(row.use.measured_peak_share)]
    said = [f"{who}: {', '.join(map(_measured, ends))}." for who, ends in _families(shares)]
    notes = ((row.use.note, math.isfinite(row.use.measured_peak_share)) for row in rows)
    reasons = dict.fromkeys(note.rpartition("; ")[0] if measured else note for note, measured in notes)
    return said + [f"{reason[:1].upper()}{reason[1:]}." for reason in reasons if reason]


def _families(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """(name, its first and last row) of each strategy and scaling, and peak."""
    families: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        note = row.use.note if math.isfinite(row.use.mfu) else ""
        families.setdefault((row.point.strategy, row.point.scaling, note), []).append(row)
    return [(f"{s} {scaling}", mine[:: max(1, len(mine) - 1)]) for (s, scaling, _), mine in families.items()]


def _measured(row: Row) -> str:
    share = f"{100 * row.use.measured_peak_share:.3g} % of this machine's measured matmul peak"
    return f"{share} on {devices(row.point.devices)} ({row.use.flop_per_s / 1e12:.3g} TFLOP/s)"


def _mfu(row: Row) -> str:
    return f"MFU {100 * row.use.mfu:.3g} % on {devices(row.point.devices)} ({row.use.flop_per_s / 1e12:.3g} TFLOP/s)"


def names(points: list[str]) -> str:
    """All of a few names, the first three of many."""
    return ", ".join(points) if len(points) <= 4 else f"{', '.join(points[:3])} and {len(points) - 3} more"
