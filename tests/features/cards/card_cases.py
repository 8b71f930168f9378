# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Runs for cards, and cards that were tampered with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fabricate

from jaxbench.core import schema, store
from jaxbench.features.cards import card
from jaxbench.records import documents

CONFIG = {"experiment": "cnn", "model": {"dtype": "float32"}, "report": {"overlay": ""}}
MANIFEST = {
    "platform": "cpu", "device_kind": "cpu", "device_kinds": ["cpu"], "devices": 1, "cores": 8,
    "cpu_model": "Testium 9000", "cache_bytes": 1 << 25, "started": "2026-11-21T21:03:27+00:00",
    "command": ["jaxbench", "run", "cnn"],
}  # fmt: skip


def run(path: Path, *, manifest: dict[str, Any] | None = None, **changes: Any) -> Path:
    """A fabricated run with the machine's entries in its manifest."""
    fabricate.run_folder(path, config={**CONFIG, **changes.pop("config", {})}, **changes)
    edit(path / store.MANIFEST, {**MANIFEST, **(manifest or {})})
    return path


def edit(path: Path, changes: dict[str, Any]) -> None:
    store.write_json(path, {**json.loads(path.read_text()), **changes})


def append(run: Path, record: schema.Record) -> None:
    with open(run / store.RECORDS, "a") as file:
        file.write(json.dumps(schema.to_json(record)) + "\n")


def failure(point: str, reason: str = "no memory", **changes: Any) -> schema.FailureRecord:
    strategy, scaling, devices = point.split("/")
    return schema.FailureRecord(
        point=point, experiment="cnn", devices=int(devices), stage="compile", reason=reason, strategy=strategy,
        scaling=scaling, global_batch=256, **changes,
    )  # fmt: skip


def made(run: Path, folder: Path) -> Path:
    return card.write(card.make(run), folder)


def forge(path: Path, **changes: Any) -> Path:
    """Changes fields of a card and recomputes its hash."""
    data = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps(documents.sealed(data)))
    return path
