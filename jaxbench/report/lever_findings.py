# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Everything a page says about a run that sweeps levers, computed once and shown on every page alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.analysis import arms, batches, largest_batch, lever_headline, phases, points, remat_law, scaling, tokens
from jaxbench.analysis.arms import Arm, Place
from jaxbench.analysis.batches import Knee, Latency
from jaxbench.analysis.headline import devices, seconds
from jaxbench.analysis.largest_batch import Search
from jaxbench.analysis.phases import Phases
from jaxbench.analysis.remat_law import Law
from jaxbench.analysis.scaling import Row
from jaxbench.records.store import RunFolder
from jaxbench.report.findings import card_of, excused, names, notes, shortfalls, utilisation

# Which view shows the sweep of one lever; what is not here, or combined, has the general one.
_VIEWS = {
    "precision": "precision", "remat": "remat", "accumulate": "accumulate", "freeze": "freeze", "batch": "batch",
    "part": "phases", "input": "inputs", "ladder": "ladder",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LeverFindings:
    """A run's conclusions. repairs: what reading the records had to pass over. card: this machine's, or None."""

    experiment: str
    view: str
    swept: list[str]
    headlines: list[str]
    rows: list[Row]
    places: list[Place]
    phases: list[Phases]
    knees: list[Knee]
    latencies: list[tuple[Place, list[Latency]]]
    search: Search | None
    laws: list[Law]
    repairs: list[str]
    config: dict[str, Any]
    manifest: dict[str, Any]
    path: Path
    card: dict[str, Any] | None = None

    @property
    def arms(self) -> list[Arm]:
        return arms.arms_of(self.places)

    def sections(self) -> list[tuple[str, list[str]]]:
        """(heading, sentences), empty ones left out, most urgent first."""
        sections = [
            ("Not as asked", self.shortfalls()),
            ("Not supported", excused(self.rows, self.config)),
            ("Baseline", baselines(self.places)),
            ("Cannot tell", unclear(self.arms)),
            ("Notes", [*self.repairs, *notes(self.rows)]),
            ("Phases", [one.sentence for one in self.phases]),
            ("Largest batch", [self.search.sentence] if self.search is not None else []),
            ("Memory over depth", [law.sentence for law in self.laws]),
            ("Real tokens", tokens.sentences(self.rows)),
            ("Utilisation", utilisation(self.rows)),
        ]
        return [(heading, sentences) for heading, sentences in sections if sentences]

    def shortfalls(self) -> list[str]:
        """Why the run is not complete and correct, each distinct reason once; empty when it is."""
        return shortfalls(self.rows, self.config)


def find(run: RunFolder) -> LeverFindings:
    """Reads and analyses a run folder. Raises UserError when it is not one, is damaged or has another schema."""
    config, manifest = run.config(), run.manifest()
    loaded = points.load(run)
    plan = manifest["plan"]
    swept = [str(name) for name in plan.get("swept") or ()]
    card, why_not = card_of(run, manifest)
    rows = scaling.analyse(loaded, config=config, machine=card)
    places = arms.analyse(rows, swept)
    view = view_of(swept, places)
    split = phases.find(places)
    bends = [knee for place in places if (knee := batches.knee(place))] if view == "batch" else []
    latencies = batches.latencies(places)
    search = largest_batch.read(run.path)
    said = lever_headline.headlines(view, places, phases=split, knees=bends, latencies=latencies)
    return LeverFindings(
        experiment=rows[0].point.experiment if rows else str(plan.get("experiment", "")),
        view=view,
        swept=swept,
        headlines=[*said, *([search.sentence] if search is not None else [])],
        rows=rows,
        places=places,
        phases=split,
        knees=bends,
        latencies=latencies,
        search=search,
        laws=remat_law.read(run.path),
        repairs=[*dict.fromkeys(run.notes), *why_not],
        config=config,
        manifest=manifest,
        path=run.path,
        card=card,
    )


def view_of(swept: Sequence[str], places: Sequence[Place]) -> str:
    """Which figures and sentences a sweep gets: those of its one lever, of parts over batches, or the general ones."""
    asked = {arm.point.levers.get("part", "step") for place in places for arm in place.arms}
    if asked == {"inference"} and list(swept) == ["batch"]:
        return "inference"
    if "part" in swept and set(swept) <= {"part", "batch"} and len(asked & set(phases.PARTS)) > 1:
        return "phases"
    return _VIEWS.get(swept[0], "arms") if len(swept) == 1 and asked != {"inference"} else "arms"


def baselines(places: Sequence[Place]) -> list[str]:
    """What counts as 1, with its absolute time."""
    said = []
    for place in places:
        base = place.arms[0]
        where = f"{place.strategy} {place.scaling}, {devices(place.devices)}"
        if not base.timing.step_s.known:
            why = f" ({base.point.reason})" if base.point.reason else ""
            said.append(f"{where}: {base.label} comes first and has no times{why}, so nothing is compared.")
            continue
        said.append(
            f"{where}: {base.label}, {seconds(base.timing.step_s.value)} per step of {base.point.global_batch}, "
            f"{base.timing.samples} blocks in {base.timing.rounds} rounds."
        )
    return said


def unclear(found: Sequence[Arm]) -> list[str]:
    """The arms of which it cannot be told whether they are faster, by reason."""
    about: dict[str, list[str]] = {}
    for arm in found:
        if arm.verdict == "cannot tell":
            about.setdefault(arm.why, []).append(arm.point.point)
    return [f"{names(mine)}: {why}." for why, mine in about.items()]
