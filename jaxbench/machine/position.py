# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where a process stands in a process group. Without jax: a worker reads it before it may import jax."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Position:
    """The position of a process in a process group, or among concurrent trainings.

    Attributes:
      address: host:port of the coordination service, which process 0 starts.
      processes: the number of processes in the group.
      process: the number of this one.
      device: the only accelerator of this host that it takes; None: all that it sees.
      devices_here: the number of the group's devices on this host; None: all of them.
    """

    address: str
    processes: int
    process: int
    device: int | None = None
    devices_here: int | None = None
