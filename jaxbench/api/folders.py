# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What `load` returns for the folders of trainings, `ab`, `compare`, `audit` and papers, from their files. No jax."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from jaxbench.api.results import Result, ResultFigure, frame
from jaxbench.features.audit import page as audit
from jaxbench.features.time_to_target import analysis
from jaxbench.features.time_to_target import page as targets
from jaxbench.features.training import page as training
from jaxbench.features.training import trainings
from jaxbench.features.training.figures import draw_learning
from jaxbench.records.reading import read_json
from jaxbench.report import page
from jaxbench.report.drawing.canvas import Plot
from jaxbench.report.page import Page, Section
from jaxbench.report.table import TEXT, Table, plain
from jaxbench.suites.papers import figure
from jaxbench.suites.papers import page as papers

COMPARISON = "comparison.json"
Json = Mapping[str, Any]  # as json reads it


class Training(Result):
    """A training. table: one row for each evaluation, with the fields of metrics.jsonl."""


class Trainings(Result):
    """Trainings to a target over batch sizes. table: one row for each training, with the columns of targets.csv."""


class Comparison(Result):
    """What `ab` or `compare` wrote. verdict: faster, slower, same, or cannot tell. table: one row for each point."""

    def __init__(self, page: Page, path: Path, table: pd.DataFrame, verdict: str):
        super().__init__(page, path, table, [])
        self.verdict = verdict


class Audit(Result):
    """An audit of a table. table: one row for each of its rows, with the columns of audit.csv."""


class Paper(Result):
    """A paper. table: one row for each claim: name, verdict, value with its interval lo and hi, limit, and why."""


def load(path: Path) -> Result | None:
    """The result in a folder; None if it is of another kind. Raises JaxbenchError for a damaged one."""
    kinds: dict[str, Callable[[Path], Result]] = {
        trainings.LEDGER: _training,
        trainings.METRICS: _training,
        trainings.TARGETS: _trainings,
        audit.CSV: _audit,
        papers.DOCUMENT: _paper,
        COMPARISON: _comparison,
    }
    return next((read(path) for name, read in kinds.items() if (path / name).is_file()), None)


def _training(path: Path) -> Result:
    """The result of a folder of `train`."""
    curve = trainings.read_curve(path)
    content = training.page_of(path)
    title = f"{curve.experiment}: loss and {curve.metric} of its training"
    figures = [ResultFigure(draw_learning, {curve.experiment: [curve]}, title=title)] if curve.rows else []
    return Training(content, path, pd.DataFrame([*curve.rows]), figures)


def _trainings(path: Path) -> Result:
    """The result of a folder of `targets`."""
    trained = trainings.read_trained(path)
    curves = analysis.curves(trained)
    title = f"{path.name}: steps and time to a target"
    figures = [ResultFigure(targets.draw_targets, curves, title=title)] if curves else []
    return Trainings(targets.page_of(path, trained), path, frame(targets.csv_of(trained)), figures)


def _audit(path: Path) -> Result:
    """The result of a folder of `audit`."""
    table = frame((path / audit.CSV).read_text(encoding="utf-8"))
    counts = ", ".join(f"{count} {verdict}" for verdict, count in table["verdict"].value_counts().items())
    wrong = table[table["verdict"] == audit.INCONSISTENT]
    sentences = [f"Row {row['row']} {row['model']}: {row['disagree']}." for _, row in wrong.iterrows()]
    return Audit(_page("audit", f"{len(table)} rows: {counts}.", {"Inconsistent": sentences}), path, table, [])


def _paper(path: Path) -> Result:
    """The result of a folder of `paper`."""
    document = papers.read(path / papers.DOCUMENT)
    fields = ("name", "verdict", "value", "lo", "hi", "limit", "why")
    table = pd.DataFrame([{field: claim.get(field) for field in fields} for claim in document["claims"]])
    said = {"Claims": [f"{claim['name']}: {claim['verdict']}." for claim in document["claims"]]}
    shown = f"{document['title']}: {papers.counts(document['claims'])}."
    return Paper(_page(str(document["id"]), shown, said), path, table, _drawn(path, figure.NAME))


def _comparison(path: Path) -> Result:
    """The result of a folder of `compare` or `ab`."""
    points, verdict, headline = read_json(path / COMPARISON, _judged, "run the comparison again.")
    figures = _drawn(path, "comparison")
    result = Comparison(_page("comparison", headline, {}), path, pd.DataFrame(points), verdict)
    result.figures = {each.name: each for each in figures}
    return result


def _judged(document: Json) -> tuple[list[dict[str, object]], str, str]:
    """(the points, the verdict, one sentence) of comparison.json."""
    names = {"ratio": "value", "ratio_lo": "lo", "ratio_hi": "hi"}
    points: list[dict[str, object]] = []
    for point in document["points"]:
        ratio = point["ratio"] or {}
        ends = {name: ratio.get(end) for name, end in names.items()}
        points.append({"point": point["name"], "a": point["a"], "b": point["b"], **ends, "verdict": point["verdict"]})
    return points, str(document["verdict"]), f"{document['b']} against {document['a']}: {document['verdict']}."


def _drawn(path: Path, name: str) -> list[ResultFigure]:
    """The figure that the command drew; [] without its file."""
    file = path / "figures" / f"{name}.png"
    plot = Plot(name=name, caption=f"The figure that the command wrote into {path.name}.", make=lambda: None)
    return [ResultFigure(plot, file=file)] if file.is_file() else []


def _page(name: str, headline: str, sentences: Mapping[str, list[str]]) -> Page:
    """A page with sentences only, for results without a table of their own."""
    sections = [Section(heading, texts) for heading, texts in sentences.items() if texts]
    empty: Table = plain({"": TEXT}, [])
    return page.Page(name=name, heading=name, headlines=[headline], pictures=(), table=empty, sections=sections)
