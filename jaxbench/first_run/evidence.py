# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Reads the run folders of a part: its items, its strategies' outcomes, and the records for the document."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jaxbench import machine_command
from jaxbench.analysis import case_rows, expectations, points, scaling
from jaxbench.analysis.expectations import Item
from jaxbench.errors import UserError
from jaxbench.first_run.parts import MACHINE, PROFILE, SCALING, SMOKE, Part
from jaxbench.records.schema import FailureRecord, PointRecord, ProfileRecord, to_json
from jaxbench.records.store import MANIFEST, RunFolder
from jaxbench.statistics import variance

# The records that the document gets. For cases these are only failures: the machine profile has their numbers.
_SENT = (PointRecord, FailureRecord, ProfileRecord)
_ENDS = "The command ends without an error."
Found = dict[str, Any]


def of(part: Part, folder: Path) -> Found:
    """The results of the part so far. folder: the folder of the whole first run."""
    results: Found = {"items": [], "grid": {}, "records": {}}
    for run in _runs(part, folder):
        name = run.relative_to(folder).as_posix()
        try:
            read = _cases(run) if part.stage == MACHINE else _trainings(part.stage, run)  # items by stage
        except UserError as error:
            results["items"].append(complaint(part, expectations.NO, "its records cannot be read", str(error)))
            continue
        about = part.experiment if part.stage != MACHINE else run.name
        for stage, items in read["items"].items():
            results["items"] += [_json(item, stage, about, name) for item in items]
        results["grid"] |= read.get("grid", {})
        results["records"][name] = read["records"]
    return results


def complaint(part: Part, agrees: str, found: str, why: str) -> dict[str, Any]:
    """The item for a part that did not end well as a whole."""
    item = Item(expected=_ENDS, found=found, agrees=agrees, judged=int(agrees == expectations.NO), why=(why,))
    return _json(item, part.stage, part.experiment, part.run)


def _runs(part: Part, folder: Path) -> Iterator[Path]:
    names = [f"{part.run}/{name}" for name in machine_command.EXPERIMENTS] if part.stage == MACHINE else [part.run]
    return (folder / name for name in names if (folder / name / MANIFEST).exists())


def _trainings(stage: str, path: Path) -> Found:
    run = RunFolder(path)
    rows = scaling.analyse(points.load(run), config=run.config(), spread=variance.read(run.path))
    items = {SMOKE: expectations.of_training(rows)}  # correctness is shown in one place, whatever part ran the program
    if stage == SCALING:
        items[SCALING] = expectations.of_scaling(rows)
    if stage == PROFILE:
        items[PROFILE] = [expectations.of_profile(rows)]
    grid = expectations.grid(rows) if stage == SMOKE else {}
    return {"items": items, "grid": grid, "records": _records(run.records())}


def _cases(path: Path) -> Found:
    run = RunFolder(path)
    manifest = run.manifest()
    rows = case_rows.analyse(points.load_cases(run), manifest=manifest, machine=None, spread=variance.read(run.path))
    items = expectations.of_cases(rows)
    if manifest["plan"].get("view") == "matmul":
        items.append(expectations.of_peak(rows, manifest))
    return {"items": {MACHINE: items}, "records": _records(run.records())}


def _records(records: Iterable[Any]) -> list[dict[str, Any]]:
    return [to_json(record) for record in records if isinstance(record, _SENT)]


def _json(item: Item, stage: str, about: str, run: str) -> dict[str, Any]:
    return {"stage": stage, "about": about, "run": run, **dataclasses.asdict(item), "why": list(item.why)}
