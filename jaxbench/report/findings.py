# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The findings of a run, computed once for all outputs: the part that all kinds of run share, and training runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from jaxbench.analysis import machine_profile, points, scaling, scaling_laws, stragglers, summary
from jaxbench.analysis.headline import headlines
from jaxbench.analysis.scaling import Control, Row
from jaxbench.analysis.scaling_laws import Fit
from jaxbench.analysis.summary import Entry
from jaxbench.core.store import RunFolder
from jaxbench.features.ablations import loss_sentences, waterfall
from jaxbench.features.ablations.waterfall import Waterfall
from jaxbench.records.manifest import MachineProfile, Manifest
from jaxbench.report import columns, table
from jaxbench.report.details import fold
from jaxbench.report.page import Fold, Page, Picture, Section, sections
from jaxbench.report.sentences import machine
from jaxbench.report.sentences.rows import base_lines, excused, notes, refusals, shortfalls, utilisation
from jaxbench.report.table import Table
from jaxbench.statistics import variance
from jaxbench.statistics.bootstrap import MIN_ROUNDS

LEGEND = "Medians with 95 % bootstrap confidence intervals."
NO_INTERVAL = (
    f"Medians without confidence intervals, which need {MIN_ROUNDS} rounds: these numbers do not compare speeds."
)
LEGEND_IN_TURNS = "Geometric means over rounds with 95 % confidence intervals."
OVERSUBSCRIBED = " ° more devices than cores: proves correctness, not speed."


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings that every kind of run has.

    Attributes:
      path: the run folder.
      rows: from `scaling` or from `case_rows`, depending on the kind of run.
      repairs: sentences on skipped records, and on why a machine profile was not used.
      card: this machine's profile, or None.
    """

    path: Path
    experiment: str
    headlines: list[str]
    rows: list[Any]
    repairs: list[str]
    config: dict[str, Any]
    manifest: Manifest
    card: MachineProfile | None = None
    DEFINITION: ClassVar[str] = ""  # the section of docs/metrics that defines the numbers in the headlines

    @property
    def title(self) -> str:
        """The heading of the page: the experiment's name and the subject of the run."""
        raise NotImplementedError

    def entries(self) -> list[Entry]:
        """The lines of the tables, one per point."""
        return summary.entries(self.rows)

    def table(self) -> Table:
        """The table of all points."""
        raise NotImplementedError

    def brief(self) -> Table | None:
        """A shorter table for the terminal; None if the whole table fits."""
        return None

    def sentences(self) -> dict[str, Sequence[str]]:
        """The page's sentences by heading of `page.HEADINGS`. A list may be empty."""
        return {"Incomplete or failed": self.shortfalls()}

    def points(self) -> list[Any]:
        """The points with their measurements."""
        return [row.point for row in self.rows]

    def sections(self) -> list[Section]:
        load, about = (of(self.manifest, self.points()) for of in (machine.warnings, machine.description))
        return sections({**self.sentences(), "Load": load, "Machine": about})

    def folds(self) -> list[Fold]:
        """The details of each point."""
        return [fold(entry, len(self.rows)) for entry in self.entries()]

    def shortfalls(self) -> list[str]:
        """The reasons why the run is incomplete or wrong, without duplicates; [] if it is complete and correct."""
        return [*self.manifest.get("waiting", ()), *shortfalls(self.rows, self.config)]

    def csv(self) -> str:
        return table.to_csv(columns.FILE, self.entries())

    def page(self, pictures: Sequence[Picture]) -> Page:
        """The run's page."""
        return Page(
            name=self.experiment,
            heading=self.title,
            headlines=self.headlines,
            pictures=pictures,
            table=self.table(),
            brief=self.brief(),
            definition=self.DEFINITION,
            sections=self.sections(),
            folds=self.folds(),
            sources=[("Manifest", self.manifest), ("Config", self.config)],
        )


@dataclass(frozen=True, kw_only=True)
class TrainingFindings(Findings):
    """The findings on how a training step scales."""

    rows: list[Row]
    fits: list[Fit]
    controls: list[Control]
    waterfalls: list[Waterfall]
    DEFINITION = "speed-up-and-efficiency"

    def entries(self) -> list[Entry]:
        return summary.entries(self.rows, waterfalls=self.waterfalls)

    @property
    def title(self) -> str:
        return f"{self.experiment}: how training scales over devices"

    def table(self) -> Table:
        return table.fill(
            columns.on(columns.T, unit=unit(self.rows)),
            self.entries(),
            group=lambda entry: (entry.point.strategy, entry.point.scaling),
            soft=lambda entry: entry.point.oversubscribed,
            note=legend(self.rows),
        )

    def sentences(self) -> dict[str, Sequence[str]]:
        return {
            **of_steps(self),
            "Why not 100 %": loss_sentences.sentences(self.waterfalls),
            "What would help": loss_sentences.advice(self.waterfalls),
            "Communication": loss_sentences.communication(self.waterfalls),
            "Base": base_lines(self.rows),
            "Notes": [*self.repairs, *notes(self.rows), *(control.sentence for control in self.controls)],
            "Rounds": machine.of_rounds(self.manifest, self.points(), self.controls, self.rows),
            "Scaling laws": scaling_laws.sentences(self.fits),
        }


def of_steps(run: Findings) -> dict[str, Sequence[str]]:
    """The sentences that every run of training steps has, by heading."""
    return {
        "Incomplete or failed": run.shortfalls(),
        "Not supported": excused(run.rows, run.config),
        "Refused by the gates": refusals(run.rows),
        "Stragglers": stragglers.sentences(run.rows, run.manifest.get("workers", {})),
        "Real tokens": summary.token_sentences(run.rows),
        "Utilisation": utilisation(run.rows),
    }


def find(run: RunFolder) -> TrainingFindings:
    """Reads and analyses a run folder. Raises UserError if it is not one, is damaged or has another schema."""
    loaded, common = points.load(run), of_folder(run)
    rows = scaling.analyse(loaded, config=common["config"], machine=common["card"], spread=variance.read(run.path))
    controls = scaling.controls(rows)
    return TrainingFindings(
        **common,
        experiment=rows[0].point.experiment if rows else str(common["manifest"]["plan"].get("experiment", "")),
        headlines=headlines(rows, controls),
        rows=rows,
        fits=scaling_laws.fit_all(rows),
        controls=controls,
        waterfalls=waterfall.find(rows, common["card"], common["manifest"].get("workers")),
    )


def of_folder(run: RunFolder) -> dict[str, Any]:
    """The fields of `Findings` that come from the folder itself. A profile of another machine is not used."""
    config, manifest = run.config(), run.manifest()
    card = machine_profile.read(run.path / machine_profile.NAME)
    why_not = machine_profile.matches(card, manifest) if card is not None else ""
    return {
        "path": run.path,
        "config": config,
        "manifest": manifest,
        "card": None if why_not else card,
        "repairs": [
            *dict.fromkeys(run.notes),
            *manifest.get("apart", ()),
            *([f"The machine profile in the folder is not used: {why_not}"] if why_not else []),
        ],
    }


def unit(rows: Iterable[Row]) -> str:
    """What an example is, such as "images"; "examples" if rows differ or none was compiled."""
    units = {row.point.record.unit for row in rows if row.point.record is not None}
    return units.pop() if len(units) == 1 else "examples"


def legend(rows: Sequence[Any]) -> str:
    """The note below a table on its numbers and marks."""
    in_turns = any(row.timing.draws.two_way is not None for row in rows)
    known = any(row.timing.step_s.has_interval for row in rows)
    return (LEGEND_IN_TURNS if in_turns and known else LEGEND if known else NO_INTERVAL) + (
        OVERSUBSCRIBED if any(row.point.oversubscribed for row in rows) else ""
    )
