# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Everything a page says about a run, computed once and shown on every page alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import fits, points, scaling
from jaxbench.analysis.fits import Fit
from jaxbench.analysis.headline import devices, headlines, seconds
from jaxbench.analysis.scaling import Control, Row
from jaxbench.records.store import RunFolder


@dataclass(frozen=True, kw_only=True)
class Findings:
    """A run's conclusions. `repairs`: what reading the records had to pass over."""

    experiment: str
    headlines: list[str]
    rows: list[Row]
    fits: list[Fit]
    controls: list[Control]
    repairs: list[str]
    config: dict[str, Any]
    manifest: dict[str, Any]

    def sections(self) -> list[tuple[str, list[str]]]:
        """(heading, sentences), empty ones left out, most urgent first."""
        sections = [
            ("Not as asked", self.shortfalls()),
            ("Base", base_lines(self.rows)),
            ("Notes", [*self.repairs, *notes(self.rows), *(c.sentence for c in self.controls)]),
            ("Scaling laws", fits.sentences(self.fits)),
            ("Utilisation", utilisation(self.rows)),
        ]
        return [(heading, sentences) for heading, sentences in sections if sentences]

    def shortfalls(self) -> list[str]:
        """Why the run is not complete and correct, each distinct reason once; empty when it is."""
        about: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if shortfall := _shortfall(row):
                about.setdefault(shortfall, []).append(row.point.point)
        return [
            f"{names(points)} {'is' if len(points) == 1 else 'are'} {what}{f': {why}' if why else ''}."
            for (what, why), points in about.items()
        ]


def find(run: RunFolder) -> Findings:
    """Reads and analyses a run folder. Raises UserError when it is not one, is damaged or has another schema."""
    config, manifest = run.config(), run.manifest()
    rows = scaling.analyse(points.load(run), config=config)
    return Findings(
        experiment=rows[0].point.experiment if rows else str(manifest["plan"].get("experiment", "")),
        headlines=headlines(rows),
        rows=rows,
        fits=fits.fit_all(rows),
        controls=scaling.controls(rows),
        repairs=list(dict.fromkeys(run.notes)),
        config=config,
        manifest=manifest,
    )


def _shortfall(row: Row) -> tuple[str, str] | None:
    """(what is wrong with the point, why), or None."""
    point = row.point
    if point.status == "failed":
        return "recorded as failed", point.reason
    if point.status != "ok":
        return point.status, point.reason
    if point.check_ok is False:
        return "wrong", point.reason
    return ("unchecked", "") if point.check_ok is None else None


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
    """The MFU of each strategy from its smallest to its largest count, or each distinct reason why there is none."""
    known = [r for r in rows if r.use.mfu == r.use.mfu and not r.point.oversubscribed]
    if not known:
        return [f"{note[:1].upper()}{note[1:]}." for note in dict.fromkeys(r.use.note for r in rows if r.use.note)]
    families: dict[tuple[str, str, str], list[Row]] = {}
    for row in known:
        families.setdefault((row.point.strategy, row.point.scaling, row.use.note), []).append(row)
    return [
        f"{strategy} {scaling}: {', '.join(_mfu(row) for row in family[:: max(1, len(family) - 1)])}; {note}."
        for (strategy, scaling, note), family in families.items()
    ]


def _mfu(row: Row) -> str:
    return f"MFU {100 * row.use.mfu:.3g} % on {devices(row.point.devices)} ({row.use.flop_per_s / 1e12:.3g} TFLOP/s)"


def names(points: list[str]) -> str:
    """All of a few names, the first three of many."""
    return ", ".join(points) if len(points) <= 4 else f"{', '.join(points[:3])} and {len(points) - 3} more"
