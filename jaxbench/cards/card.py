# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A result card: a run as one document with config, manifest, raw samples, results, the machine profile and a hash.

The schema is `schema/card.schema.json`. A card does not record when it was made, so a run always gives the same card.
The file name comes from the content.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from jaxbench.analysis import machine_profile
from jaxbench.cards import derived, layout
from jaxbench.cards.scrub import scrub
from jaxbench.errors import UserError
from jaxbench.records import sealed
from jaxbench.records.store import RECORDS, RunFolder, write_atomic
from jaxbench.statistics.bootstrap import MIN_ROUNDS
from jaxbench.verdicts import comparable
from jaxbench.verdicts.comparable import FinishedRun


def make(run: Path) -> dict[str, Any]:
    """The card of the run folder `run`, as JSON values.

    Raises:
      UserError: it is not a run folder, it is damaged or of another schema, or it holds no measurement.
    """
    measured = comparable.read(run)
    machine, why_not = _machine(run, measured.manifest)
    folder = RunFolder(run)
    folder.records()  # fills `notes` with what it skipped
    card = scrub(
        {
            "schema": layout.SCHEMA,
            "kind": layout.KIND,
            "name": derived.name(measured),
            "measures": derived.measures(measured),
            "config": measured.config,
            "manifest": measured.manifest,
            "records": _lines(run / RECORDS),
            "points": derived.points(measured, machine),
            "notes": [note.replace(str(run), run.name) for note in folder.notes] + _short(measured),
            "machine": machine,
            "machine_why_not": why_not,
        }
    )
    try:
        return {**card, "sha256": sealed.digest(card)}
    except ValueError as error:
        raise UserError(f"'{run}' has a number that is not finite ({error}), so no card can be made of it.") from error


def write(card: dict[str, Any], folder: Path) -> Path:
    """Writes the card into `folder` under a name made from its content, so the same card is always the same file.

    Raises:
      UserError: another file has that name, or the folder cannot be written.
    """
    name = card["name"]
    path = (
        folder / f"{_slug(name['experiment'])}-{_slug(name['device_kind'])}-{name['devices']}-{card['sha256'][:8]}.json"
    )
    text = layout.to_text(card)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            if path.read_bytes() != text.encode():
                raise UserError(f"'{path}' exists and is not this card: move it away, because it is not overwritten.")
            return path
        write_atomic(path, text)
    except OSError as error:
        raise UserError(f"cannot write '{path}' ({error.strerror}): choose another folder.") from error
    return path


def save(run: Path, folder: Path, console: Console) -> int:
    """Makes and writes the card of a run, and prints its path and notes. Returns the exit code 0. Raises UserError."""
    made = make(run)
    path = write(made, folder)
    for note in made["notes"]:
        console.print(Text(note, style="yellow"), soft_wrap=True)
    if made["machine_why_not"]:
        console.print(Text(f"No link and peak numbers: {made['machine_why_not']}", style="dim"), soft_wrap=True)
    console.print(Text(f"Card: {path}"), soft_wrap=True)
    return 0


def _slug(name: str) -> str:
    """ "NVIDIA H100 80GB" -> "nvidia-h100-80gb": a valid file name on every system."""
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:40] or "unnamed"


def _lines(path: Path) -> list[Any]:
    """Every complete line of a records file that has already been validated."""
    return [json.loads(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def _machine(run: Path, manifest: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """(peaks and links from the machine profile in the run folder, or None; why there are none)."""
    machine = machine_profile.read(run / machine_profile.NAME)
    if machine is None:
        return None, "the run has no machine.json: 'jaxbench machine' makes one, and later runs take it with them."
    why_not = machine_profile.matches(machine, manifest)
    return (None, why_not) if why_not else (machine, "")


def _short(run: FinishedRun) -> list[str]:
    """A sentence for each point that failed, is incomplete or wrong, or has too few rounds for an interval."""
    sentences = [f"{p.point}: {p.status} ({p.reason})." for p in run.points if p.status != "ok"]
    sentences += [f"{p.point}: wrong ({p.reason})." for p in run.points if p.status == "ok" and p.check_ok is False]
    few = MIN_ROUNDS
    return sentences + [
        f"{p.point}: no interval, because it has {len(p.rounds)} of the {few} rounds that an interval needs."
        for p in run.points
        if 0 < len(p.rounds) < few
    ]
