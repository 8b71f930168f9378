# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Each start of a training: what it must share with the one before, and the manifest that lists them all."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.levers import LEVERS
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
      levers: those of the workload and of the program; an absent one is at its default.
    """

    command: list[str]
    devices: int
    strategy: str
    experiment_file: str
    experiment_sha256: str
    machine: dict[str, Any]
    levers: dict[str, str] = field(default_factory=dict)

    @property
    def layout(self) -> str:
        """What levers add to the strategy, "mesh=data=2,tensor=2"; "" for nothing. As the strategy, it may change."""
        mine = [lever for lever in LEVERS.values() if lever.changes == "program"]
        return ", ".join(f"{m.name}={self.levers[m.name]}" for m in mine if m.of(self.levers) != m.of({}))

    @property
    def place(self) -> str:
        return _place(self.devices, self.strategy, self.layout)

    def facts(self) -> dict[str, Any]:
        """What a checkpoint says of the start that saved it."""
        return {
            "devices": self.devices,
            "strategy": self.strategy,
            "layout": self.layout,
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
        before = _place(*(progress.get(name, getattr(self, name)) for name in ("devices", "strategy", "layout")))
        return "" if before == self.place else before


def _place(devices: int, strategy: str, layout: str) -> str:
    where = f"on {devices} device{'s' if devices > 1 else ''}, strategy {strategy}"
    return f"{where}, {layout}" if layout else where


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
