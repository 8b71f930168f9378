# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether two runs may be compared: they must have measured the same thing, except for declared differences.

Baselines are finished runs stored under a name. Each is an ordinary run folder without its report.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbench.analysis import gates, points, run_rows
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.run_rows import Row
from jaxbench.catalog.allocators import SYSTEM
from jaxbench.core import same_model
from jaxbench.core.store import CONFIG, MANIFEST, RECORDS, RunFolder
from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.comparison.calibration import FOLDER
from jaxbench.features.comparison.ratio import Sample, Side, of_rounds
from jaxbench.records import identity
from jaxbench.records.documents import flatten
from jaxbench.records.machine_profile import MachineProfile
from jaxbench.records.manifest import Manifest
from jaxbench.statistics import bootstrap

# The manifests must agree on the machine's identity. The configs must agree on everything except how a run is measured
# and shown (HOW). A difference in SOFTWARE is reported and never refused.
SOFTWARE = ("versions", "python", "environment", "git", "source_sha256", "experiment_sha256", "os")
# Points are matched one by one, so device counts only decide which points there are.
HOW = ("measure.", "report.", "train.", "seed", "profile", "search", "mesh.devices")
ALLOCATOR = "measure.allocator"  # the exception: it is how a run is measured, and changes its speed
POINT = ("strategy", "scaling", "devices", "arm")  # the parts of a point's name, in its order
_BASELINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # a name, also of a folder
# Settings that change the batch, or how the batch and the model are sharded, but not the model itself. Freezing is an
# exception among the levers: it changes the model.
SPREAD, RESHAPED = ("strategy", "scaling", "devices", "batch", "lever.", "mesh.", ALLOCATOR), "lever.freeze"


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A finished run in memory. ablations: its ablation points, which are not compared."""

    path: Path
    config: dict[str, Any]
    manifest: Manifest
    points: Sequence[MeasuredPoint]
    ablations: Sequence[MeasuredPoint] = ()

    def rows(self, machine: MachineProfile | None = None) -> list[Row]:
        """The rows of its points. machine: the profile of the same machine, or None."""
        return run_rows.analyse(
            [*self.points, *self.ablations],
            config=self.config,
            manifest=self.manifest,
            machine=machine,
            spread=bootstrap.read_spread(self.path),
        )


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
    """Reads a run folder. Raises UserError if it is no run folder, has another schema, or measured nothing."""
    folder = RunFolder(path)
    manifest, config = folder.manifest(), folder.config()
    loaded = points.load(folder)
    if not any(point.rounds for point in loaded):
        raise UserError(f"'{path}' has no measured round: continue it with --workdir={path}.")
    own, ablations = ([point for point in loaded if bool(point.explains) is explains] for explains in (False, True))
    return FinishedRun(path=path, config=config, manifest=manifest, points=own, ablations=ablations)


def pair(a: FinishedRun, b: FinishedRun, across: Sequence[str] = ()) -> Pair:
    """Matches the points of two runs. across: the fields that may differ, or prefixes of their names.

    Raises UserError for the same run twice, for undeclared differences (it lists all), and without a common point.
    """
    if a.path.resolve() == b.path.resolve():
        raise UserError(f"A and B are both '{a.path}': give two runs.")
    differing = {**differences(a, b), **separating(a, b)}
    # Points match by name without the declared fields, but a misspelled field must not make them match.
    of_models = models(a, b, tuple(field for field in across if field in differing))
    # A speed needs no declaration, but a reader may give one.
    speed = [identity.SPEED] if identity.other_speed(a.manifest, b.manifest) else []
    for field in across:
        if not any(
            _covered(name, [field]) for name in (*differing, *of_models, *speed)
        ):  # most often a misspelled name
            known = ", ".join((*differing, *of_models)) or "nothing"
            raise UserError(f"--across={field}: A and B do not differ in that field; they differ in {known}.")
    # A declared field may change facts of the model: another batch has other FLOPs. These need no declaration.
    implied = follows(name for name in differing if _covered(name, across))
    of_models = {name: both for name, both in of_models.items() if name not in implied}
    if undeclared := {n: both for n, both in {**differing, **of_models}.items() if not _covered(n, across)}:
        shown = "; ".join(f"{name} is {x!r} in A and {y!r} in B" for name, (x, y) in undeclared.items())
        raise UserError(
            f"these runs did not measure the same thing: {shown}. "
            f"To compare across this difference, add --across={','.join(undeclared)}."
        )
    sides = [_by_name(run, across) for run in (a, b)]
    # A physically impossible time is no time: one such point must not decide the whole table.
    refused, common, left_out = {**impossible(a, "A"), **impossible(b, "B")}, [], []
    for name in dict.fromkeys((*sides[0], *sides[1])):
        faults = [_fault(side.get(name), which, refused) for side, which in zip(sides, "AB", strict=True)]
        if any(faults):  # one bad point costs only itself; without a common point there is nothing to say
            left_out.append(LeftOut(name, ", ".join(filter(None, faults))))
        else:
            common.append(name)
    if not common:
        reasons = "; ".join(map(str, left_out)) or "no points"
        raise UserError(f"no point was measured and correct in both runs: {reasons}.")
    left, right = ({name: _sample(side[name]) for name in common} for side in sides)
    # A copy has another path, so only its times give it away. Two real runs never agree to the last bit.
    if any(np.array_equal(left[name].blocks, right[name].blocks) for name in common):
        raise UserError(f"'{a.path}' and '{b.path}' have the same samples: one is a copy, so give two runs.")
    of_model = [same_model.model_sentence({name: both}, "in A", "in B") for name, both in of_models.items()]
    return Pair(a=left, b=right, left_out=tuple(left_out), software=(*of_model, *software(a, b)))


def models(a: FinishedRun, b: FinishedRun, across: Sequence[str] = ()) -> identity.Differences:
    """{fact: (A's value, B's value)} where the models differ, with the values of the first point that differs."""
    left, right = (_by_name(run, across) for run in (a, b))
    found: identity.Differences = {}
    for name in (name for name in left if name in right):
        one, other = left[name].prepared, right[name].prepared
        if one is not None and other is not None:
            found = {**same_model.model_differences(one, other), **found}  # the first point's values win
    return found


def follows(declared: Iterable[str]) -> tuple[str, ...]:
    """The facts of a model that may differ when these fields do. Another machine or kernel changes none of them."""
    fields = [name for name in declared if name not in identity.FACTS or name == "devices"]
    if not fields:
        return ()
    if all(name.startswith(SPREAD) and name != RESHAPED for name in fields):
        return tuple(name for name in (*same_model.STEP_FACTS, *same_model.CASE_FACTS) if name != "parameters")
    return (*same_model.STEP_FACTS, *same_model.CASE_FACTS)


def differences(a: FinishedRun, b: FinishedRun) -> identity.Differences:
    """{name: (A's value, B's value)} of the fields that must be equal but differ."""
    left, right = (
        {
            **{n: value for n, value in flatten(run.config).items() if not n.startswith(HOW) and n not in POINT},
            ALLOCATOR: _allocator(run),
        }
        for run in (a, b)
    )
    return {**identity.differences(a.manifest, b.manifest), **_differing(left, right)}


def _allocator(run: FinishedRun) -> str:
    """Of its processes; runs from before this setting had the default."""
    return str(flatten(run.config).get(ALLOCATOR, SYSTEM))


def _differing(left: dict[str, Any], right: dict[str, Any]) -> identity.Differences:
    """The names with different values, in the order of `left`, then `right`."""
    return {n: (left.get(n), right.get(n)) for n in left | right if left.get(n) != right.get(n)}


def measured(run: FinishedRun) -> str:
    """A sha256 of what was measured, with which software, in which environment: equal for repetitions."""
    config = {name: value for name, value in flatten(run.config).items() if not name.startswith(HOW)}
    if (allocator := _allocator(run)) != SYSTEM:  # the default adds nothing, so that older calibrations stay valid
        config[ALLOCATOR] = allocator
    # Not the commit: most commits change no measured program, and a calibration takes three sessions.
    facts = {name: run.manifest.get(name) for name in ("versions", "experiment_sha256", "environment")}
    return hashlib.sha256(json.dumps([config, facts], sort_keys=True, default=str).encode()).hexdigest()


def software(a: FinishedRun, b: FinishedRun) -> list[str]:
    """Sentences: differences in versions, flags, sources and the machine's speed, and a doubt whether both machines are
    the same."""
    left, right = (flatten({name: run.manifest.get(name) for name in SOFTWARE}) for run in (a, b))
    found = [f"{name}: {one} in A, {other} in B" for name, (one, other) in _differing(left, right).items()]
    found += identity.cautions(a.manifest, b.manifest, "in A", "in B")
    unknown = identity.cannot_tell(a.manifest, b.manifest)
    return [*found, unknown] if unknown else found


def separating(a: FinishedRun, b: FinishedRun) -> identity.Differences:
    """The fields in which every point of A differs from every point of B, so that no point would match."""
    differing: identity.Differences = {}
    for field in POINT:
        left, right = ({str(getattr(point, field, "")) for point in run.points} for run in (a, b))
        if not left & right:
            differing[field] = (", ".join(sorted(left)), ", ".join(sorted(right)))
    return differing


def _covered(name: str, across: Sequence[str]) -> bool:
    """Whether a field was declared to differ, by its name or a group that it is in."""
    return any(name == field or name.startswith(f"{field}.") for field in across)


def name_of(point: MeasuredPoint, across: Sequence[str]) -> str:
    """A point's name without the fields that may differ."""
    if point.of_case:
        return point.point
    return "/".join(str(getattr(point, f)) for f in POINT if f not in across and str(getattr(point, f)))


def _by_name(run: FinishedRun, across: Sequence[str]) -> dict[str, MeasuredPoint]:
    """Points by name, without the fields that may differ."""
    result: dict[str, MeasuredPoint] = {}
    for point in run.points:
        name = name_of(point, across)
        if name in result:
            raise UserError(f"'{run.path}' has several points that are '{name}' when {', '.join(across)} may differ.")
        result[name] = point
    return result


def impossible(run: FinishedRun, which: str = "") -> dict[tuple[str, str], str]:
    """{(which, point id): reason} of the points with a physically impossible result, as a gate found it."""
    found = {row.point_id: gates.impossible(row.gates) for row in run.rows()}
    return {(which, name): f"{refused[0].name}: {refused[0].reason}" for name, refused in found.items() if refused}


def _fault(point: MeasuredPoint | None, which: str, impossible: dict[tuple[str, str], str]) -> str:
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
    """Every measured point by its own name. Raises UserError if all of them are physically impossible."""
    refused = impossible(run)  # its keys have the side "": there is only one run here
    found = {point.point: _sample(point) for point in run.points if point.rounds and ("", point.point) not in refused}
    if not found:
        reasons = "; ".join(f"{name} is impossible ({why})" for (_, name), why in refused.items())
        raise UserError(f"'{run.path}' has no point that can be true: {reasons}.")
    return found


def _sample(point: MeasuredPoint) -> Sample:
    """The rounds of a point, with the examples of its step."""
    # The throughput of a case is not in examples: its own work is the same on both sides and cancels.
    return of_rounds(point.rounds, 1.0 if point.of_case else float(point.global_batch))


def baseline_path(name: str, folder: Path = FOLDER) -> Path:
    """The folder of the baseline `name`. Raises UserError for an invalid name, so no path can leave `folder`."""
    if not _BASELINE.fullmatch(name):
        legal = "use at most 100 letters, digits, dots and dashes, such as main-cnn"
        raise UserError(f"'{name[:120]}' is not a valid name for a baseline: {legal}.")
    return folder / name


def keep_baseline(run: Path, name: str, folder: Path = FOLDER) -> Path:
    """Copies the run folder `run` to the baseline `name`. Returns its folder.

    Raises UserError if the run is incomplete or incorrect, or if the name is taken.
    """
    target, source = baseline_path(name, folder), read(run)
    faults = [
        f"{point.point} ({point.reason or 'never checked'})"
        for point in source.points
        if point.status != "ok" or point.check_ok is not True
    ]
    if faults:
        raise UserError(f"'{run}' cannot be a baseline, because it is incomplete or incorrect: {'; '.join(faults)}.")
    if target.exists():
        raise UserError(f"there is a baseline '{name}' already: choose another NAME, or delete '{target}'.")
    folder.mkdir(parents=True, exist_ok=True)
    # Copied to a temporary folder, then renamed: an interrupted copy never looks like a baseline.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        part = Path(scratch) / name
        part.mkdir()
        for file in (CONFIG, MANIFEST, RECORDS):  # the report can be made again; a baseline is often committed
            shutil.copyfile(run / file, part / file)
        part.rename(target)
    return target


def find_baseline(name: str, folder: Path = FOLDER) -> Path:
    """The folder of the baseline `name`. Raises UserError with similar names if there is none."""
    path = baseline_path(name, folder)
    if not (path / RECORDS).is_file():
        known = sorted(each.parent.name for each in folder.glob(f"*/{RECORDS}"))
        hint = did_you_mean(name, known) if known else "keep one with jaxbench baseline --run=DIR --name=NAME."
        raise UserError(f"there is no baseline '{name}': {hint}")
    return path
