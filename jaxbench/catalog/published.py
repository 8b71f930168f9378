# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Published results, each with the paper it comes from. They are never rescaled and never shown as this suite's own."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from importlib import resources

import pandas as pd

from jaxbench.errors import UserError, did_you_mean


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published table.

    Attributes:
      frame: the rows as published; units are in `facts` or in the column names.
      facts: the file's first line: "status" (verified, derived, ...), "note" (may be empty), "unit" if it has one.
      project, where, reference: who published it, which table, and the file or paper to open.
    """

    id: str
    frame: pd.DataFrame
    facts: dict[str, str]
    project: str
    where: str
    reference: str

    @property
    def citation(self) -> str:
        return f"{self.project}: {self.where} ({self.reference})"


def ids() -> list[str]:
    """The ids that `read` knows, sorted."""
    return sorted(_sources())


def read(id: str) -> Published:
    """Reads one published table. Raises UserError for an unknown id."""
    sources = _sources()
    if id not in sources:
        raise UserError(f"unknown published series '{id}': {did_you_mean(id, sources)}")
    first, _, table = _text(f"{id}.csv").partition("\n")
    facts, notes = {}, []
    for part in first.lstrip("# ").split("; "):
        key, _, value = part.partition("=")
        if key in ("status", "unit"):
            facts[key] = value
        elif key != "id":
            notes.append(part)
    source = sources[id]
    return Published(
        id=id,
        frame=pd.read_csv(io.StringIO(table)),
        facts={**facts, "note": "; ".join(notes)},
        project=source["paper_or_project"],
        where=source["where"],
        reference=source["reference"],
    )


def _sources() -> dict[str, dict[str, str]]:
    return {row["id"]: row for row in csv.DictReader(_text("SOURCES.csv").splitlines())}


def _text(name: str) -> str:
    return resources.files("jaxbench.catalog").joinpath("published", name).read_text(encoding="utf-8")
