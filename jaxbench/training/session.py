# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One start of a training: the facts that must equal those of the previous start, and the manifest of all starts."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.levers import LEVERS
from jaxbench.records import identity
from jaxbench.records.documents import flatten
from jaxbench.records.store import MANIFEST, RunFolder, write_json
from jaxbench.training.folder import writing


@dataclass(frozen=True, kw_only=True)
class Session:
    """One start of a training.

    Attributes:
      command: as it was typed.
      devices, strategy, processes: different values give the same training, up to the order of sums.
      experiment_file, experiment_sha256: the name of the experiment's source, and its hash.
      machine: `manifest.probe`.
      levers: of the workload and of the program; an absent lever has its default.
      begun_ns: Unix time in ns at which its process was created, for the time ledger; default: when this object was
        made.
    """

    command: list[str]
    devices: int
    strategy: str
    experiment_file: str
    experiment_sha256: str
    machine: dict[str, Any]
    levers: dict[str, str] = field(default_factory=dict)
    begun_ns: int = field(default_factory=time.time_ns)
    processes: int = 1

    @property
    def layout(self) -> str:
        """The levers that change the program, such as "mesh=data=2,tensor=2". Like the strategy, they may change."""
        levers = [lever for lever in LEVERS.values() if lever.changes == "program"]
        return ", ".join(f"{one.name}={self.levers[one.name]}" for one in levers if one.of(self.levers) != one.of({}))

    @property
    def place(self) -> str:
        return _place(self.devices, self.strategy, self.layout, processes=self.processes)

    def facts(self) -> dict[str, Any]:
        """The facts about this start that its checkpoints store."""
        return {
            "devices": self.devices,
            "processes": self.processes,
            "strategy": self.strategy,
            "layout": self.layout,
            "experiment_file": self.experiment_file,
            "experiment_sha256": self.experiment_sha256,
        }

    def require_same_experiment(self, progress: dict[str, Any]) -> None:
        """Raises UserError if `progress`, that of a checkpoint or {}, comes from another experiment file."""
        if progress.get("experiment_sha256", self.experiment_sha256) != self.experiment_sha256:
            raise UserError(
                f"the experiment file '{self.experiment_file}' has changed since this training started, or a module "
                "that it loads: choose a new --workdir, or undo the change."
            )

    def moved_from(self, progress: dict[str, Any]) -> str:
        """Where the checkpoint was trained, if the devices, strategy or layout differ; otherwise ''."""
        if not progress:
            return ""
        facts = [progress.get(name, getattr(self, name)) for name in ("devices", "strategy", "layout")]
        before = _place(*facts, processes=progress.get("processes", 1))
        return "" if before == self.place else before


def _place(devices: int, strategy: str, layout: str, *, processes: int) -> str:
    several = f" in {processes} processes" if processes > 1 else ""
    where = f"on {devices} device{'s' if devices > 1 else ''}{several}, strategy {strategy}"
    return f"{where}, {layout}" if layout else where


def record(folder: Path, session: Session, *, step: int) -> None:
    """Writes the manifest of `folder`, or adds this start to it. step: the step at which this start begins."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    entry = {"started": now, "command": session.command, "from_step": step, **session.facts()}
    with writing(folder):
        if not (folder / MANIFEST).exists():
            first = {"started": now, "command": session.command, **session.facts()}
            del first["devices"]  # the manifest's own "devices" counts those of the machine
            write_json(folder / MANIFEST, {**session.machine, **first, "sessions": [entry]})
            return
        manifest = RunFolder(folder).manifest()
        then = flatten(manifest)
        facts = {name: value for name, value in flatten(session.machine).items() if not name.startswith("identity.")}
        changed = {name: value for name, value in facts.items() if then.get(name) != value}
        changed |= {name: now for name, (_, now) in identity.differences(manifest, session.machine).items()}
        if changed:
            entry["machine"] = changed  # such as another version of jax
        write_json(folder / MANIFEST, {**manifest, "sessions": [*manifest.get("sessions", []), entry]})
