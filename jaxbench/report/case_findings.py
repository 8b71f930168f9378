# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Everything a page says about a run of cases, computed once and shown on every page alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.analysis import alpha_beta, case_headline, case_rows, cases, crossings, normal
from jaxbench.analysis.alpha_beta import Fit
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.crossings import Crossing, Knee
from jaxbench.analysis.normal import Verdict
from jaxbench.records.store import RunFolder
from jaxbench.report.findings import card_of, names

Group = tuple[str, list[str]]  # a sentence, and the points it is about


@dataclass(frozen=True, kw_only=True)
class CaseFindings:
    """A run's conclusions. repairs: what reading the records had to pass over, and why a card was not used.

    left_out: sentences of the plan about what was not asked after all. card: of this machine; None: there is none.
    """

    experiment: str
    view: str
    headlines: list[str]
    rows: list[CaseRow]
    fits: list[Fit]
    crossings: list[Crossing]
    knees: list[Knee]
    normal: list[Verdict]
    left_out: list[str]
    repairs: list[str]
    card: dict[str, Any] | None
    config: dict[str, Any]
    manifest: dict[str, Any]
    path: Path

    def sections(self) -> list[tuple[str, list[str]]]:
        """(heading, sentences), empty ones left out, most urgent first."""
        sections = [
            ("Not as asked", self.shortfalls()),
            ("Refused by the gates", refusals(self.rows)),
            ("Left out", self.left_out),
            ("Notes", [*self.repairs, *_about(self.rows, lambda row: row.notes)]),
            ("Crossings", crossings.sentences(self.crossings, self.knees)),
            ("Fits", alpha_beta.sentences(self.fits)),
            ("Is this normal?", [verdict.sentence for verdict in self.normal]),
            ("Peaks", _about(self.rows, lambda row: [row.peak_note] if row.peak_note else [])),
        ]
        return [(heading, sentences) for heading, sentences in sections if sentences]

    def shortfalls(self) -> list[str]:
        """Why the run is not complete and correct, each distinct reason once; empty when it is.

        A refused row is measured and right as far as is known, so it is no shortfall: `refusals` says it.
        """
        return [
            f"{names(points)} {'is' if len(points) == 1 else 'are'} {said}."
            for said, points in _grouped(self.rows, _shortfall)
        ]


def find(run: RunFolder) -> CaseFindings:
    """Reads and analyses a run folder. Raises UserError when it is no run of cases, is damaged or of another schema."""
    config, manifest = run.config(), run.manifest()
    points = cases.load(run)
    plan = manifest["plan"]
    view = str(plan.get("view", ""))
    card, why_not = card_of(run, manifest)
    rows = case_rows.analyse(points, manifest=manifest, machine=card)
    fits = alpha_beta.fit_all(rows)
    crossed = crossings.find(rows) if view == "curves" else []
    cache = manifest.get("cache_bytes")
    return CaseFindings(
        experiment=str(plan.get("experiment", "")),
        view=view,
        headlines=case_headline.headlines(view, rows, fits, crossed, cache_bytes=cache),
        rows=rows,
        fits=fits,
        crossings=crossed,
        knees=crossings.knees(rows) if view == "curves" else [],
        normal=normal.judge(view, rows, manifest=manifest),
        left_out=[str(sentence).removeprefix("Left out: ") for sentence in plan.get("left_out") or ()],
        repairs=[*dict.fromkeys(run.notes), *why_not],
        card=card,
        config=config,
        manifest=manifest,
        path=run.path,
    )


def refusals(rows: Iterable[CaseRow]) -> list[str]:
    """Every row that a gate refused, those of the same gates together. Rows with wrong values are shortfalls."""
    refused = [row for row in rows if row.gate == "refused" and row.point.check_ok is not False]
    refused.sort(key=lambda row: [gate.name for gate in row.gates if gate.passed is False])
    return [f"{', '.join(points)}: {reason}." for reason, points in _grouped(refused, lambda row: [row.gate_reason])]


def _shortfall(row: CaseRow) -> list[str]:
    """What is wrong with the point and why; [] when nothing is."""
    point = row.point
    if point.status != "ok":
        said, why = "recorded as failed" if point.status == "failed" else point.status, point.reason
    elif point.check_ok is False:
        said, why = "wrong", point.reason
    elif point.check_ok is None:
        said, why = "unchecked", ""
    else:
        return []
    return [f"{said}: {why}" if why else said]


def _about(rows: Iterable[CaseRow], say: Callable[[CaseRow], Iterable[str]]) -> list[str]:
    """Each distinct sentence once, with the points it is about."""
    return [f"{names(points)}: {sentence}." for sentence, points in _grouped(rows, say)]


def _grouped(rows: Iterable[CaseRow], say: Callable[[CaseRow], Iterable[str]]) -> list[Group]:
    about: dict[str, list[str]] = {}
    for row in rows:
        for sentence in say(row):
            about.setdefault(sentence.rstrip("."), []).append(row.point.point)
    return list(about.items())
