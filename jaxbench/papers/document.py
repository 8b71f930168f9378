# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`paper.json`: a paper's runs, its claims with their verdicts, and the machine. Page and gallery are made from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxbench.cards.redact import redact, redact_text
from jaxbench.command_form import as_typed
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.papers.evidence import Evidence, NotTestable
from jaxbench.papers.paper import Claim, Paper
from jaxbench.records.store import read_document, write_json
from jaxbench.verdicts.judge import CANNOT_TELL, NOT_TESTABLE, decide_claim, why_undecided

NAME = "paper.json"
KIND, SCHEMA = "jaxbench paper", 1
Document = dict[str, Any]


def begin(paper: Paper, folder: Path, preset: str) -> Document:
    """The document of a folder: a new one, or the existing one with this version's claims.

    Raises:
      UserError: the folder is of another paper or preset, or its document cannot be read.
    """
    old = read(folder / NAME) if (folder / NAME).exists() else {"runs": {}}
    for key, now in (("id", paper.id), ("preset", preset)):
        if old.get(key, now) != now:
            raise UserError(f"'{folder}' holds {key} '{old[key]}', not '{now}': choose a new --workdir.")
    runs = {run.name: {"outcome": "not yet", "seconds": 0.0, "said": ""} for run in paper.runs}
    for run in paper.runs:
        runs[run.name] |= old["runs"].get(run.name, {})
        runs[run.name]["words"] = list(run.at(preset))
    about = {"id": paper.id, "title": paper.title, "citation": paper.citation, "preset": preset}
    return {"kind": KIND, "schema": SCHEMA, **about, "runs": runs, "claims": [], "machine": old.get("machine", {})}


def read(path: Path) -> Document:
    """Raises UserError for a file that is no document of a paper."""
    fields = ("id", "title", "citation", "preset", "runs", "claims", "machine")
    return read_document(path, KIND, SCHEMA, fields, "delete it, and the command makes it again.")


def record(document: Document, run: str, *, outcome: str, seconds: float, message: str) -> None:
    """Adds how a run ended. seconds: of this start; the document has their sum."""
    about = document["runs"][run]
    about |= {"outcome": outcome, "seconds": about["seconds"] + seconds, "said": redact_text(message, private=True)}


def judge(document: Document, paper: Paper, found: Evidence) -> None:
    """Reads every claim of the paper from the runs so far, and writes the document."""
    document["claims"] = [redact(judged(claim, found), private=True) for claim in paper.claims]
    manifests = found.manifests()
    if manifests:
        document["machine"] = redact({name: value for name, value in manifests[0].items() if name != "plan"})
    write_json(found.folder / NAME, document)


def judged(claim: Claim, found: Evidence) -> Document:
    """A claim with its number, its verdict and the reason for one that decides nothing."""
    entry: Document = {"value": None, "lo": None, "hi": None, "detail": "", "why": ""}
    try:
        reading = claim.read(found)
    except NotTestable as reason:
        entry |= {"verdict": reason.verdict, "why": str(reason)}
    except UserError as error:
        entry |= {"verdict": NOT_TESTABLE, "why": f"Its records cannot be read: {error}"}
    else:
        value, verdict = reading.value, decide_claim(reading.value, claim.low, claim.high)
        ends = {"value": value.value, "lo": value.lo, "hi": value.hi}
        entry |= {name: each if math.isfinite(each) else None for name, each in ends.items()}
        why = why_undecided(value, claim.low, claim.high) if verdict == CANNOT_TELL else ""
        entry |= {"verdict": verdict, "why": why, "detail": reading.detail}
    names = ("name", "sentence", "source", "quantity", "limit", "here")
    return {**{name: getattr(claim, name) for name in names}, **entry}


def number(claim: Mapping[str, Any]) -> str:
    """ "0.93 [0.91, 0.95]"; a number without noise stands alone; "" without one."""
    value, lo, hi = claim["value"], claim["lo"], claim["hi"]
    if value is None:
        return ""
    between = lo is not None and hi is not None and lo != hi
    return digits(value) + (f" [{digits(lo)}, {digits(hi)}]" if between else "")


def command(document: Mapping[str, Any]) -> str:
    """What makes it again."""
    preset = "" if document["preset"] == "auto" else f" --preset={document['preset']}"
    return as_typed(f"jaxbench paper {document['id']}{preset}")
