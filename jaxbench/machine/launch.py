# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A *launch*: the same command, started several times by a launcher, such as Slurm or Open MPI, or by a person."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxbench.errors import UserError

JOIN_LIMIT_S = 60  # for all processes of a launch to join


@dataclass(frozen=True)
class Launch:
    """The position of this process in a launch.

    address: host:port of the coordination service, which process 0 starts. processes: the number of processes that were
    started. process: the number of this one. device: the only accelerator of this host that it should take; None: all
    that it sees.
    """

    address: str
    processes: int
    process: int
    device: int | None = None

    @property
    def host(self) -> str:
        """The host at which the others reach process 0: a name, or an IP address."""
        return self.address.rpartition(":")[0].strip("[]")


def of(coordinator: str | None, processes: int | None, process: int | None) -> Launch | None:
    """The launch that the flags describe or, without flags, the one that JAX detects; None for a single process.

    Raises UserError for flags that do not describe a launch.
    """
    given = {"coordinator": coordinator, "processes": processes, "process": process}
    if all(value is None for value in given.values()):
        return detected()
    if missing := [name for name, value in given.items() if value is None]:
        raise UserError(
            f"--{missing[0]} is missing: a process takes --coordinator=host:port, --processes=2 and --process=0."
        )
    assert coordinator is not None and processes is not None and process is not None
    if not (port := re.fullmatch(r".+:(\d+)", coordinator)) or not 0 < int(port[1]) < 2**16:
        raise UserError(f"--coordinator={coordinator} is no address: use host:port, such as 10.0.0.1:12345.")
    if processes < 1 or not 0 <= process < processes:
        raise UserError(
            f"--process={process} of --processes={processes} is not possible: number the processes from 0 to "
            f"{max(processes, 1) - 1}."
        )
    return Launch(coordinator, processes, process) if processes > 1 else None


def detected() -> Launch | None:
    """The launch in which Slurm, Open MPI, Kubernetes or a Cloud TPU has started this process; None if there is none.

    The detection is that of `jax.distributed.initialize`. That function joins the launch at once, and JAX has no public
    function that only detects it.
    """
    from jax._src import clusters

    found = clusters.ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, None, JOIN_LIMIT_S)
    address, processes, process, devices = found
    if address is None or processes is None or process is None or processes == 1:
        return None
    return Launch(address, processes, process, devices[0] if devices else None)
