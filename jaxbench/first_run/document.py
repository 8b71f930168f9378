# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`first-run.json`: the results of a first run so far, without private data. The page is made from it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxbench.analysis import machine_card
from jaxbench.analysis.expectations import CANNOT_TELL, NO
from jaxbench.cards.redact import redact, redact_text
from jaxbench.errors import UserError
from jaxbench.first_run import evidence
from jaxbench.first_run.parts import Part
from jaxbench.records import identity
from jaxbench.records.store import read_document, write_json
from jaxbench.report import first_run_tables
from jaxbench.runner.run import SAME_SOFTWARE

NAME = "first-run.json"
KIND, SCHEMA = "jaxbench first run", 1
# The outcome of a part by its command's exit code. None means that it ran out of time; other codes mean BROKEN.
DONE, AMISS, REFUSED, BROKEN = "done", "amiss", "refused", "broken"
STOPPED, SKIPPED, ASKED = "stopped", "skipped", "not yet"
OUTCOMES = {0: DONE, 1: AMISS, 2: REFUSED, None: STOPPED}


def begin(folder: Path, machine: Mapping[str, Any], parts: Sequence[Part]) -> dict[str, Any]:
    """The document of a folder: a new one, or the existing one brought up to date.

    Raises:
      UserError: the document was started on another machine or with other software, or cannot be read.
    """
    made = {"kind": KIND, "schema": SCHEMA, "machine": redact(dict(machine)), "parts": {}, "found": {}, "card": None}
    made["begun"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    path = folder / NAME
    if path.exists():
        old = read_document(
            path, KIND, SCHEMA, ("begun", "machine", "parts", "found", "card"), "choose a new --workdir."
        )
        if other := identity.differences(old["machine"], made["machine"]):
            different = identity.sentence(other)
            raise UserError(f"'{folder}' was started on another machine ({different}): choose a new --workdir.")
        for key in SAME_SOFTWARE:
            was, now = old["machine"].get(key), made["machine"].get(key)
            if was != now:
                changes = identity.changes(was, now)
                raise UserError(f"'{folder}' was started with other {key} ({changes}): choose a new --workdir.")
        made |= {name: old[name] for name in ("begun", "parts", "found", "card")}
    old_parts, made["parts"] = made["parts"], {}
    for number, part in enumerate(parts):
        about = {"stage": part.stage, "about": part.experiment, "outcome": ASKED, "seconds": 0.0, "said": ""}
        made["parts"][part.run] = about | old_parts.get(part.run, {}) | {"number": number, "words": list(part.words)}
    return made


def record(document: dict[str, Any], part: Part, folder: Path, *, outcome: str, seconds: float, message: str) -> None:
    """Adds the outcome of a part, and writes the document. seconds: of this start; the document has the sum."""
    results = evidence.of(part, folder)
    against = any(item["agrees"] == NO for item in results["items"])
    if outcome == AMISS and against:
        message = "Some results are not as expected: see above."  # the command's own last line only names its page
    about = document["parts"][part.run]
    about |= {"outcome": outcome, "seconds": about["seconds"] + seconds, "said": redact_text(message, private=True)}
    if outcome in (REFUSED, BROKEN) or (outcome == AMISS and not against):
        results["items"].append(evidence.complaint(part, NO, outcome, message))
    elif outcome in (STOPPED, SKIPPED):
        results["items"].append(evidence.complaint(part, CANNOT_TELL, outcome, message))
    document["found"][part.run] = redact(results, private=True)
    document["card"] = redact(machine_card.read(folder / "machine" / machine_card.NAME))
    write_json(folder / NAME, document)


def ok(document: Mapping[str, Any]) -> bool:
    """Whether everything was measured and no result contradicts the expectations."""
    measured = all(part["outcome"] == DONE for part in document["parts"].values())
    return measured and not any(item["agrees"] == NO for item in first_run_tables.items(document))
