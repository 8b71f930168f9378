# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`first-run.json`: all that a first run has found so far, without what is private. The page is made of it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxbench.analysis import machine_card
from jaxbench.analysis.expectations import CANNOT_TELL, NO
from jaxbench.cards.scrub import scrub, text
from jaxbench.errors import UserError
from jaxbench.first_run import evidence
from jaxbench.first_run.parts import Part
from jaxbench.records.store import write_json
from jaxbench.report import first_run_tables
from jaxbench.runner.run import SAME_SESSION_KEYS

NAME = "first-run.json"
KIND, SCHEMA = "jaxbench first run", 1
# What a part came to: by the exit code of its command; any other code is BROKEN, None is that of no time left.
DONE, AMISS, REFUSED, BROKEN = "done", "amiss", "refused", "broken"
STOPPED, SKIPPED, ASKED = "stopped", "skipped", "not yet"
OUTCOMES = {0: DONE, 1: AMISS, 2: REFUSED, None: STOPPED}
_IDENTITY = [key for key in SAME_SESSION_KEYS if key != "experiment_sha256"]


def begin(folder: Path, machine: Mapping[str, Any], asked: Sequence[Part]) -> dict[str, Any]:
    """The document of a folder: new, or the one that is there, brought up to date.

    Raises:
      UserError: it was begun on another machine or with other software, or cannot be read.
    """
    made = {"kind": KIND, "schema": SCHEMA, "machine": scrub(dict(machine)), "parts": {}, "found": {}, "card": None}
    made["begun"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    path = folder / NAME
    if path.exists():
        old = _read(path)
        for key in _IDENTITY:
            was, now = old["machine"].get(key), made["machine"].get(key)
            if was != now:
                raise UserError(f"'{folder}' was begun with {key} {was}, now it is {now}: choose a new WORKDIR.")
        made |= {name: old[name] for name in ("begun", "parts", "found", "card")}
    kept, made["parts"] = made["parts"], {}
    for number, part in enumerate(asked):
        about = {"stage": part.stage, "about": part.experiment, "outcome": ASKED, "seconds": 0.0, "said": ""}
        made["parts"][part.run] = about | kept.get(part.run, {}) | {"number": number, "words": list(part.words)}
    return made


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' cannot be read ({error}): choose a new WORKDIR.") from error
    if not isinstance(found, dict) or (found.get("kind"), found.get("schema")) != (KIND, SCHEMA):
        raise UserError(f"'{path}' is not what this jaxbench writes of a first run: choose a new WORKDIR.")
    if missing := {"begun", "machine", "parts", "found", "card"} - found.keys():
        raise UserError(f"'{path}' is damaged, it has no '{min(missing)}': choose a new WORKDIR.")
    return found


def record(document: dict[str, Any], part: Part, folder: Path, *, outcome: str, seconds: float, said: str) -> None:
    """Adds what a part came to, and writes the document. seconds: of this start; they add up over several."""
    found = evidence.of(part, folder)
    against = any(item["agrees"] == NO for item in found["items"])
    if outcome == AMISS and against:
        said = "Not all is as expected: see above."  # the command's own last line names its page
    about = document["parts"][part.run]
    about |= {"outcome": outcome, "seconds": about["seconds"] + seconds, "said": text(said, private=True)}
    if outcome in (REFUSED, BROKEN) or (outcome == AMISS and not against):
        found["items"].append(evidence.complaint(part, NO, outcome, said))
    elif outcome in (STOPPED, SKIPPED):
        found["items"].append(evidence.complaint(part, CANNOT_TELL, outcome, said))
    document["found"][part.run] = scrub(found, private=True)
    card = machine_card.read(folder / "machine" / machine_card.NAME)
    document["card"] = scrub(card)
    write_json(folder / NAME, document)


def ok(document: Mapping[str, Any]) -> bool:
    """Whether all was measured, and nothing is against expectation."""
    measured = all(part["outcome"] == DONE for part in document["parts"].values())
    return measured and not any(item["agrees"] == NO for item in first_run_tables.items(document))
