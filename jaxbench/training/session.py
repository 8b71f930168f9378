# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Each start of a training: what it must share with the one before, and the manifest that lists them all."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.records.store import MANIFEST, RunFolder, flatten, write_json
from jaxbench.training.folder import writing


@dataclass(frozen=True, kw_only=True)
class Session:
    """One start of a training.

    Attributes:
      command: as it was typed.
      devices, strategy: where it runs and how; another pair gives the same training up to the order of sums.
      experiment_file, experiment_sha256: the name of the experiment's source, and its hash.
      machine: `manifest.probe`.
    """

    command: list[str]
    devices: int
    strategy: str
    experiment_file: str
    experiment_sha256: str
    machine: dict[str, Any]

    @property
    def place(self) -> str:
        return f"on {self.devices} device{'s' if self.devices > 1 else ''}, strategy {self.strategy}"

    def facts(self) -> dict[str, Any]:
        """What a checkpoint says of the start that saved it."""
        return {
            "devices": self.devices,
            "strategy": self.strategy,
            "experiment_file": self.experiment_file,
            "experiment_sha256": self.experiment_sha256,
        }

    def require_same_experiment(self, progress: dict[str, Any]) -> None:
        """`progress`: a checkpoint's, or {}. Raises UserError when another experiment file was trained."""
        if progress.get("experiment_sha256", self.experiment_sha256) != self.experiment_sha256:
            raise UserError(
                f"the experiment file '{self.experiment_file}' has changed since this training began: choose a new "
                "WORKDIR, or undo the change."
            )

    def moved_from(self, progress: dict[str, Any]) -> str:
        """Where the checkpoint was trained, when that is another place than this; else ''."""
        there = {name: progress.get(name, getattr(self, name)) for name in ("devices", "strategy")}
        before = Session(**{**vars(self), **there}).place
        return "" if before == self.place else before


def record(folder: Path, session: Session, *, step: int) -> None:
    """Writes the manifest of `folder`, or adds this start to it; what the first start wrote stays. `step`: begun at."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    entry = {"started": now, "command": session.command, "from_step": step, **session.facts()}
    with writing(folder):
        if not (folder / MANIFEST).exists():
            first = {"started": now, "command": session.command, **session.facts()}
            del first["devices"]  # of the machine, which may have more than are used
            write_json(folder / MANIFEST, {**session.machine, **first, "sessions": [entry]})
            return
        manifest = RunFolder(folder).manifest()
        then = flatten(manifest)
        changed = {name: value for name, value in flatten(session.machine).items() if then.get(name) != value}
        if changed:
            entry["machine"] = changed  # such as another version of jax
        write_json(folder / MANIFEST, {**manifest, "sessions": [*manifest.get("sessions", []), entry]})
