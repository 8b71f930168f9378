# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A job: the command of one node count with its resources; and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PLATFORMS = ("cpu", "gpu", "tpu")


@dataclass(frozen=True, kw_only=True)
class Job:
    """The same command in `processes_per_node` processes on each of `nodes` hosts.

    Attributes:
      name: for the queue: lower-case letters, digits and hyphens.
      platform: of the devices: cpu, gpu or tpu. devices_per_node: the number of devices of a host.
      command: the words that each process executes, program first, without the folder of the run.
      folder: of the run, absolute.
      minutes: after which the queue may end it.
      options: further words for the engine, from --options.
    """

    name: str
    nodes: int
    processes_per_node: int
    platform: str
    devices_per_node: int
    command: tuple[str, ...]
    folder: Path
    minutes: int
    options: tuple[str, ...] = ()

    @property
    def processes(self) -> int:
        return self.nodes * self.processes_per_node

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node

    def argv(self, folder: Path | None = None) -> list[str]:
        """The words that each process executes. folder: that of the run, if those processes see it at another path."""
        return [*self.command, f"--workdir={folder or self.folder}"]

    @property
    def text(self) -> str:
        """ "2 nodes x 1 process, 4 devices"."""
        return f"{_count(self.nodes, 'node')} x {_processes(self.processes_per_node)}, {_count(self.devices, 'device')}"


@dataclass(frozen=True)
class Submitted:
    """The outcome of a job. id: that of the queue, "" without one. code: the exit code if the job is over, else None.

    sentence: for the user.
    """

    sentence: str
    id: str = ""
    code: int | None = None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _processes(number: int) -> str:
    return f"{number} process{'es' if number != 1 else ''}"
