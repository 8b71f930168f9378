# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where a process stands in a process group. Without jax: a worker reads it before it may import jax."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Position:
    """The position of a process in a process group, among concurrent trainings, or in a launch.

    Attributes:
      address: host:port of process 0: of the coordination service that it starts, or where it listens in a launch.
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

    @property
    def host(self) -> str:
        """The host at which the others reach process 0: a name, or an IP address."""
        return self.address.rpartition(":")[0].strip("[]")  # "[::1]:1234" has the brackets of an IPv6 address

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


def node() -> str:
    """The name of this host as its queue knows it, else its own."""
    return os.environ.get("SLURMD_NODENAME") or os.environ.get("NODE_NAME") or socket.gethostname()
