# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What can be exported: a run, a comparison, a training, or trainings to a target. One class for each.

Only numbers that a page would stand by are exported: a dashboard shows no reason next to a number. So a point that
failed a check, that a gate refused, or that has more devices than cores is left out, and the summary says why.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from jaxbench.analysis.run_rows import Row
from jaxbench.core.store import RunFolder
from jaxbench.digits import counted
from jaxbench.errors import UserError
from jaxbench.features.comparison import page as comparison_page
from jaxbench.features.comparison.comparison import Comparison, Reached
from jaxbench.features.exports import markdown
from jaxbench.features.exports.measure import Measure, Samples
from jaxbench.features.exports.quantities import (
    COMPILE_S,
    EFFICIENCY,
    PEAK_MEMORY,
    RATIO,
    STEP_S,
    TARGET_S,
    TARGET_STEPS,
    THROUGHPUT,
)
from jaxbench.features.time_to_target import analysis
from jaxbench.features.time_to_target import page as targets_page
from jaxbench.features.time_to_target.analysis import SeedGroup
from jaxbench.features.training import trainings
from jaxbench.features.training.trainings import LEDGER, TARGETS, TRAININGS
from jaxbench.records.documents import flatten
from jaxbench.records.manifest import Manifest
from jaxbench.report import build
from jaxbench.report.run_report import RunReport
from jaxbench.statistics.bootstrap import Estimate


class Source(abc.ABC):
    """A result that can be exported.

    Attributes:
      folder: where the exports are written.
      experiment: its name.
      manifest: of the machine and the software that were measured.
      config: the settings.
    """

    folder: Path
    experiment: str
    manifest: Manifest
    config: dict[str, object]

    @abc.abstractmethod
    def summary(self) -> str:
        """The result as Markdown."""

    @abc.abstractmethod
    def measures(self) -> list[Measure]: ...

    def samples(self) -> list[Samples]:
        """Raises UserError if no step was timed on its own."""
        raise UserError(f"'{self.folder}' has no timed blocks, which --export=pytest-benchmark needs: use bmf instead.")

    def trainings(self) -> list[Path]:
        """The folders of trainings to a target. Raises UserError if nothing was trained."""
        raise UserError(
            f"'{self.folder}' trained nothing to a target, which --export=mlperf logs: use jaxbench run time_to_target."
        )

    def series(self) -> list[tuple[int, dict[str, float]]]:
        """(step, numbers by name), for trackers that draw curves."""
        numbers: dict[str, float] = {}
        for measure in self.measures():
            name, value = f"{measure.point}/{measure.quantity.name}", measure.value
            numbers[name] = value.value
            if value.has_interval:
                numbers |= {f"{name}_lo": value.lo, f"{name}_hi": value.hi}
        return [(0, numbers)]


class RunSource(Source):
    """A run of steps, lever settings or cases."""

    def __init__(self, report: RunReport):
        self.report, self.folder, self.experiment = report, report.path, report.experiment
        self.manifest, self.config = report.manifest, report.config

    def summary(self) -> str:
        report = self.report
        sections = [(part.heading, part.sentences) for part in report.sections()]
        return markdown.document(report.title, report.headlines, report.brief() or report.table(), sections)

    def measures(self) -> list[Measure]:
        return [measure for row in self._standing_rows() for measure in _of_row(row)]

    def samples(self) -> list[Samples]:
        found = []
        for row in self._standing_rows():
            times = tuple(block / each.steps for each in row.point.rounds for block in each.block_s)
            steps = min(each.steps for each in row.point.rounds)
            found.append(Samples(point=row.point_id, devices=row.point.devices, step_s=times, steps=steps))
        return found

    def _standing_rows(self) -> list[Row]:
        return [row for row in self.report.rows if stands(row)]


def stands(row: Row) -> bool:
    """Whether the times of a row may leave the page that explains them."""
    return row.usable and row.gate != "refused" and not row.point.oversubscribed


def _of_row(row: Row) -> Iterator[Measure]:
    point, report = row.point, row.point.compile_report
    values = {STEP_S: row.timing.step_s, PEAK_MEMORY: Estimate(value=point.peak_bytes)}
    if not point.of_case:
        values |= {THROUGHPUT: row.timing.examples_per_s, EFFICIENCY: row.efficiency}
    if report is not None and report.compile_s is not None:
        values[COMPILE_S] = Estimate(value=report.compile_s)
    for quantity, value in values.items():
        if value.known:
            yield Measure(point=point.point, devices=point.devices, quantity=quantity, value=value)


class ComparisonSource(Source):
    """Run B judged against run A. It also has the numbers of B, which is the newer one."""

    def __init__(self, found: Comparison, name: str, b: Path, folder: Path):
        self.found, self.name, self.folder = found, name, folder
        self.b = RunSource(build.find(b))
        self.experiment, self.manifest, self.config = self.b.experiment, self.b.manifest, self.b.config

    def summary(self) -> str:
        return comparison_page.markdown(self.found, self.name)

    def measures(self) -> list[Measure]:
        answers = self.found.answers
        every = [*answers.points, *([answers.overall] if len(answers.points) > 1 else [])]
        ratios = [
            Measure(point=answer.name, devices=None, quantity=RATIO, value=answer.ratio)
            for answer in every
            if answer.ratio.known
        ]
        return [*ratios, *self.b.measures()]

    def samples(self) -> list[Samples]:
        return self.b.samples()


class TrainingsComparedSource(Source):
    """Trainings of B judged against those of A."""

    def __init__(self, found: Sequence[Reached], name: str, b: Path, folder: Path):
        self.found, self.name, self.folder = found, name, folder
        first = b if trainings.is_training(b) else min(path for path in b.iterdir() if trainings.is_training(path))
        self.experiment = trainings.read_curve(first).experiment
        self.manifest, self.config = RunFolder(first).manifest(), RunFolder(first).config()

    def summary(self) -> str:
        return markdown.document(self.name, [answer.sentence for answer in self.found], None, [])

    def measures(self) -> list[Measure]:
        return [
            Measure(point=each.what, devices=None, quantity=RATIO, value=each.times.estimate(0.05))
            for each in self.found
            if not (each.a_lost or each.b_lost)  # a ratio of lower limits limits nothing
        ]


class TargetsSource(Source):
    """Trainings to a target over batch sizes, devices and seeds."""

    def __init__(self, folder: Path):
        self.folder = self.origin = folder
        run = RunFolder(folder)
        self.manifest, self.config = run.manifest(), run.config()
        self.experiment = str(self.config.get("experiment", folder.name))
        self.trained = trainings.read_trained(folder)

    def summary(self) -> str:
        page = targets_page.page_of(self.origin, self.trained)
        return markdown.document(
            page.heading, page.headlines, page.table, [(part.heading, part.sentences) for part in page.sections]
        )

    def measures(self) -> list[Measure]:
        groups = [group for curve in analysis.curves(self.trained) for group in curve.groups if not group.censored]
        return [measure for group in groups for measure in _of_group(group)]

    def trainings(self) -> list[Path]:
        names = dict.fromkeys(one.folder for one in self.trained)
        return [self.origin / TRAININGS / name for name in names]


def _of_group(group: SeedGroup) -> Iterator[Measure]:
    point = f"{group.model}/{group.rule}/batch{group.batch}/{group.devices}"
    for quantity, value in ((TARGET_S, group.seconds), (TARGET_STEPS, group.steps)):
        if value.known:
            yield Measure(point=point, devices=group.devices, quantity=quantity, value=value)


class TrainingSource(Source):
    """One training."""

    def __init__(self, folder: Path):
        self.folder = self.origin = folder
        run = RunFolder(folder)
        self.manifest, self.config, self.curve = run.manifest(), run.config(), trainings.read_curve(folder)
        self.experiment = self.curve.experiment

    def summary(self) -> str:
        curve, row = self.curve, self.curve.at_target()
        aim = f"{curve.metric} {curve.target:g}"
        said = f"The target ({aim}) was not reached in {counted(curve.rows[-1]['step'] if curve.rows else 0, 'step')}."
        if row is not None:
            said = f"The target ({aim}) was reached at step {row['step']}, after {row['elapsed_s']:.1f} s."
        return markdown.document(f"{self.experiment}: training", [said], None, [])

    def measures(self) -> list[Measure]:
        row = self.curve.at_target()
        if row is None:
            return []
        values = {TARGET_S: row["elapsed_s"] - row["compile_s"], TARGET_STEPS: row["step"]}
        return [
            Measure(point=self.origin.name, devices=None, quantity=quantity, value=Estimate(value=float(value)))
            for quantity, value in values.items()
        ]

    def trainings(self) -> list[Path]:
        return [self.origin]

    def series(self) -> list[tuple[int, dict[str, float]]]:
        return [
            (row["step"], {name: float(value) for name, value in row.items() if name != "step" and value is not None})
            for row in self.curve.rows
        ]


def find(folder: Path) -> Source:
    """What a folder holds. Raises UserError if it is no result, or damaged."""
    if (folder / TARGETS).exists():
        return TargetsSource(folder)
    if (folder / LEDGER).exists():
        return TrainingSource(folder)
    report = build.find(folder)
    if not isinstance(report, RunReport) or report.kind == "compiled":
        raise UserError(f"'{folder}' was compiled for absent hardware, so it has no measurement to export.")
    return RunSource(report)


class Software(TypedDict):
    """The parts of a manifest that say what was measured."""

    machine: str
    started: str
    commit: str
    dirty: bool


def software(manifest: Manifest) -> Software:
    git = manifest.get("git", {})
    return {
        "machine": str(manifest.get("cpu_model") or manifest.get("device_kind", "")),
        "started": str(manifest.get("started", "")),
        "commit": str(git.get("commit", "")),
        "dirty": bool(git.get("dirty", False)),
    }


def settings(source: Source) -> dict[str, object]:
    """The config with one level of names."""
    return flatten(source.config)
