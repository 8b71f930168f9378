# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether two runs may be compared: they must have measured the same thing, except for declared differences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbench.analysis import case_rows, gates, points, scaling
from jaxbench.analysis.points import CasePoint, MeasuredPoint
from jaxbench.errors import UserError
from jaxbench.records import identity, model
from jaxbench.records.store import RunFolder, flatten
from jaxbench.statistics import variance
from jaxbench.verdicts import samples
from jaxbench.verdicts.samples import Side

# The manifests must agree on the machine's identity. The configs must agree on everything except how a run is measured
# and shown (HOW). A difference in SOFTWARE is reported and never refused.
SOFTWARE = ("versions", "python", "environment", "git", "source_sha256", "experiment_sha256", "os")
HOW = ("measure.", "report.", "train.", "seed", "profile", "search", "mesh.devices")
POINT = ("strategy", "scaling", "devices", "arm")
# Settings that change the batch, or how the batch and the model are sharded, but not the model itself. Freezing is an
# exception among the levers: it changes the model.
SPREAD, RESHAPED = ("strategy", "scaling", "devices", "batch", "lever.", "mesh."), "lever.freeze"


class NotComparable(UserError):
    """The two runs cannot be compared."""


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A finished run in memory. explaining: its ablation points, which are not compared."""

    path: Path
    config: dict[str, Any]
    manifest: dict[str, Any]
    points: Sequence[MeasuredPoint] | Sequence[CasePoint]
    explaining: Sequence[MeasuredPoint] = ()


class LeftOut(NamedTuple):
    """A point that is not compared, and why not."""

    point: str
    why: str

    def __str__(self) -> str:
        return f"{self.point}: {self.why}"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The comparable points of two runs.

    Attributes:
      a, b: the samples by point name; both have the same names.
      left_out: the points that are not compared.
      software: a sentence for each difference in software, and for each undeclared consequence for the model.
    """

    a: Side
    b: Side
    left_out: tuple[LeftOut, ...]
    software: tuple[str, ...]


def read(path: Path) -> FinishedRun:
    """Reads a run folder. Raises NotComparable if it is no run folder, has another schema, or measured nothing."""
    try:
        if not path.is_dir():
            raise UserError(f"'{path}' is not a folder: give the results folder of a 'jaxbench run'.")
        folder = RunFolder(path)
        manifest, config = folder.manifest(), folder.config()
        plan = manifest.get("plan")
        of_cases = isinstance(plan, dict) and plan.get("measures") == "cases"
        loaded = points.load_cases(folder) if of_cases else points.load(folder)
    except UserError as error:
        raise NotComparable(str(error)) from error
    if not any(point.rounds for point in loaded):
        raise NotComparable(f"'{path}' has no measured round: continue it with --workdir={path}.")
    explaining = [point for point in loaded if isinstance(point, MeasuredPoint) and point.explains]
    own: Any = [point for point in loaded if not getattr(point, "explains", "")]
    return FinishedRun(path=path, config=config, manifest=manifest, points=own, explaining=explaining)


def pair(a: FinishedRun, b: FinishedRun, across: Sequence[str] = ()) -> Pair:
    """Matches the points of two runs. across: the fields that may differ, or prefixes of their names.

    Raises NotComparable for the same run twice, for undeclared differences (it lists all), and without a common point.
    """
    if a.path.resolve() == b.path.resolve():
        raise NotComparable(f"A and B are both '{a.path}': give two runs.")
    differing = {**differences(a, b), **places(a, b)}
    of_models = models(a, b, tuple(field for field in across if field in differing))
    _require_used(across, {**differing, **of_models})
    implied = follows(name for name in differing if _covered(name, across))
    of_models = {name: both for name, both in of_models.items() if name not in implied}
    _require_same({**differing, **of_models}, across)
    sides = [_by_name(run, across) for run in (a, b)]
    common, left_out = _matched(sides[0], sides[1], {**impossible(a, "A"), **impossible(b, "B")})
    if not common:
        reasons = "; ".join(map(str, left_out)) or "no points"
        raise NotComparable(f"no point was measured and correct in both runs: {reasons}.")
    left, right = ({name: _sample(side[name]) for name in common} for side in sides)
    if any(np.array_equal(left[name].blocks, right[name].blocks) for name in common):
        raise NotComparable(f"'{a.path}' and '{b.path}' have the same samples: one is a copy, so give two runs.")
    of_model = [model.sentence({name: both}, "in A", "in B") for name, both in of_models.items()]
    return Pair(a=left, b=right, left_out=tuple(left_out), software=(*of_model, *software(a, b)))


def _require_same(differing: dict[str, tuple[Any, Any]], across: Sequence[str]) -> None:
    """Raises NotComparable for the differences that `across` does not declare."""
    undeclared = {name: both for name, both in differing.items() if not _covered(name, across)}
    if undeclared:
        shown = "; ".join(f"{name} is {x!r} in A and {y!r} in B" for name, (x, y) in undeclared.items())
        raise NotComparable(
            f"these runs did not measure the same thing: {shown}. "
            f"To compare across this difference, add --across={','.join(undeclared)}."
        )


def models(a: FinishedRun, b: FinishedRun, across: Sequence[str] = ()) -> dict[str, tuple[Any, Any]]:
    """{fact: (A's value, B's value)} where the models differ, with the values of the first point that differs."""
    left, right = (_by_name(run, across) for run in (a, b))
    found: dict[str, tuple[Any, Any]] = {}
    for name in (name for name in left if name in right):
        one, other = left[name].record, right[name].record
        if one is not None and other is not None:
            found = {**model.differences(one, other), **found}
    return found


def follows(declared: Iterable[str]) -> tuple[str, ...]:
    """The facts of a model that may differ when these fields do. Another machine or kernel changes none of them."""
    fields = [name for name in declared if name not in identity.FACTS or name == "devices"]
    if not fields:
        return ()
    if all(name.startswith(SPREAD) and name != RESHAPED for name in fields):
        return tuple(name for name in (*model.STEP_FACTS, *model.CASE_FACTS) if name != "parameters")
    return (*model.STEP_FACTS, *model.CASE_FACTS)


def differences(a: FinishedRun, b: FinishedRun) -> dict[str, tuple[Any, Any]]:
    """{name: (A's value, B's value)} of the fields that must be equal but differ."""
    left, right = (
        {name: value for name, value in flatten(run.config).items() if not name.startswith(HOW) and name not in POINT}
        for run in (a, b)
    )
    names = [*left, *(name for name in right if name not in left)]
    settings = {name: (left.get(name), right.get(name)) for name in names if left.get(name) != right.get(name)}
    return {**identity.differences(a.manifest, b.manifest), **settings}


def measured(run: FinishedRun) -> str:
    """A sha256 of what was measured, with which software, in which environment: equal for repetitions."""
    config = {name: value for name, value in flatten(run.config).items() if not name.startswith(HOW)}
    facts = {name: run.manifest.get(name) for name in ("versions", "experiment_sha256", "environment")}
    return hashlib.sha256(json.dumps([config, facts], sort_keys=True, default=str).encode()).hexdigest()


def software(a: FinishedRun, b: FinishedRun) -> list[str]:
    """Sentences: differences in versions, flags and sources, and a doubt whether both machines are the same."""
    left, right = (flatten({name: run.manifest.get(name) for name in SOFTWARE}) for run in (a, b))
    names = [*left, *(name for name in right if name not in left)]
    found = [f"{n}: {left.get(n)} in A, {right.get(n)} in B" for n in names if left.get(n) != right.get(n)]
    unknown = identity.cannot_tell(a.manifest, b.manifest)
    return [*found, unknown] if unknown else found


def places(a: FinishedRun, b: FinishedRun) -> dict[str, tuple[Any, Any]]:
    """The fields in which every point of A differs from every point of B, so that no point would match."""
    differing = {}
    for field in POINT:
        left, right = ({str(getattr(point, field, "")) for point in run.points} for run in (a, b))
        if not left & right:
            differing[field] = (", ".join(sorted(left)), ", ".join(sorted(right)))
    return differing


def _require_used(across: Sequence[str], differing: dict[str, tuple[Any, Any]]) -> None:
    for field in across:
        if not any(_covered(name, [field]) for name in differing):
            known = ", ".join(differing) or "nothing"
            raise NotComparable(f"--across={field}: A and B do not differ in that field; they differ in {known}.")


def _covered(name: str, across: Sequence[str]) -> bool:
    return any(name == field or name.startswith(f"{field}.") for field in across)


def name_of(point: MeasuredPoint | CasePoint, across: Sequence[str]) -> str:
    """A point's name without the fields that may differ."""
    if not isinstance(point, MeasuredPoint):
        return point.point
    return "/".join(str(getattr(point, f)) for f in POINT if f not in across and str(getattr(point, f)))


def _by_name(run: FinishedRun, across: Sequence[str]) -> dict[str, MeasuredPoint | CasePoint]:
    """Points by name, without the fields that may differ."""
    result: dict[str, MeasuredPoint | CasePoint] = {}
    for point in run.points:
        name = name_of(point, across)
        if name in result:
            raise NotComparable(
                f"'{run.path}' has several points that are '{name}' when {', '.join(across)} may differ."
            )
        result[name] = point
    return result


def impossible(run: FinishedRun, which: str = "") -> dict[tuple[str, str], str]:
    """{(which, point id): reason} of the points with a physically impossible result, as a gate found it."""
    every: Any = [*run.points, *run.explaining]
    training = [point for point in every if isinstance(point, MeasuredPoint)]
    known = variance.read(run.path)
    rows: Any = (
        scaling.analyse(training, config=run.config, spread=known)
        if training
        else case_rows.analyse(every, manifest=run.manifest, machine=None, spread=known)
    )
    found = {row.point.point: gates.impossible(row.gates) for row in rows}
    return {(which, name): f"{refused[0].name}: {refused[0].reason}" for name, refused in found.items() if refused}


def _matched(
    a: dict[str, Any], b: dict[str, Any], impossible: dict[tuple[str, str], str]
) -> tuple[list[str], list[LeftOut]]:
    """(the names that both runs have, the points that are not compared)."""
    common, left_out = [], []
    for name in dict.fromkeys((*a, *b)):
        faults = [_fault(side.get(name), which, impossible) for side, which in ((a, "A"), (b, "B"))]
        if any(faults):
            left_out.append(LeftOut(name, ", ".join(filter(None, faults))))
        else:
            common.append(name)
    return common, left_out


def _fault(point: MeasuredPoint | CasePoint | None, which: str, impossible: dict[tuple[str, str], str]) -> str:
    """Why a point of one side cannot be compared; "" if it can."""
    if point is None:
        return f"not in {which}"
    if not point.rounds:
        return f"{point.status} in {which}" + (f" ({point.reason})" if point.reason else "")
    if point.check_ok is False:
        return f"incorrect in {which} ({point.reason})"
    why = impossible.get((which, point.point), "")
    return f"impossible in {which} ({why})" if why else ""


def samples_of(run: FinishedRun) -> Side:
    """Every measured point by its own name. Raises NotComparable if all of them are physically impossible."""
    refused = impossible(run)
    found = {point.point: _sample(point) for point in run.points if point.rounds and ("", point.point) not in refused}
    if not found:
        reasons = "; ".join(f"{name} is impossible ({why})" for (_, name), why in refused.items())
        raise NotComparable(f"'{run.path}' has no point that can be true: {reasons}.")
    return found


def _sample(point: MeasuredPoint | CasePoint) -> samples.Sample:
    work = float(point.global_batch) if isinstance(point, MeasuredPoint) else 1.0
    return samples.of_rounds(point.rounds, work)
