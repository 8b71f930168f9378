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
    """A published table: its rows as published, and who published it. ``SOURCES.csv`` says which table of which paper.

    A table's first line states its unit and whether it was verified or derived.
    """

    frame: pd.DataFrame
    project: str


def overlays() -> tuple[str, ...]:
    """The ids that the scaling figure can draw behind measured speed-ups: throughput by GPU count, from 1 GPU on."""
    return ("tf_dgx1_p100_synth",)


def read(id: str) -> Published:
    """Reads one published table. Raises UserError for an unknown id."""
    sources = _sources()
    if id not in sources:
        raise UserError(f"unknown published series '{id}': {did_you_mean(id, sources)}")
    _, _, table = _text(f"{id}.csv").partition("\n")
    return Published(frame=pd.read_csv(io.StringIO(table)), project=sources[id]["paper_or_project"])


def _sources() -> dict[str, dict[str, str]]:
    return {row["id"]: row for row in csv.DictReader(_text("SOURCES.csv").splitlines())}


def _text(name: str) -> str:
    return resources.files("jaxbench.catalog").joinpath("published", name).read_text(encoding="utf-8")
