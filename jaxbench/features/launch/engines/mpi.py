# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Open MPI: the mpirun command line, run here until it ends.

JAX finds the processes by the variables that mpirun of Open MPI 4 sets. The first process is on the host of mpirun.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence

from jaxbench.errors import UserError
from jaxbench.features.launch.job import Job, Submitted
from jaxbench.machine import cores

OPTIONS = 'words of mpirun, such as --options="--hostfile hosts"'
ALLOCATIONS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE")  # set by queues that tell mpirun its hosts
PASSED_ON = ("JAX_", "XLA_", "LIBTPU_", "NCCL_")  # prefixes of variables that mpirun passes to processes on other hosts


def check(job: Job) -> None:
    """Raises UserError if mpirun cannot know the hosts."""
    if job.nodes > 1 and not _hosts(job.options) and not any(name in os.environ for name in ALLOCATIONS):
        raise UserError(
            f"--nodes={job.nodes} needs the names of the hosts: add --options='--host a:{job.processes_per_node},"
            f"b:{job.processes_per_node}' or --options='--hostfile FILE', or start it inside a job of your queue."
        )


def text(job: Job) -> str:
    return shlex.join(line(job, root=os.geteuid() == 0, slots=len(cores.physical_cores())))


def line(job: Job, *, root: bool, slots: int) -> list[str]:
    """The words of mpirun. root: whether root starts it. slots: the processes that it starts here by default."""
    words = ["mpirun", "-n", str(job.processes), "--bind-to", "none"]  # each process pins its own threads
    if job.nodes > 1:
        words += ["--map-by", f"ppr:{job.processes_per_node}:node"]
    elif job.processes > slots and not _hosts(job.options):
        words += ["--oversubscribe"]
    words += ["--allow-run-as-root"] if root else []  # mpirun refuses root, which is the usual user of a container
    for name in sorted(name for name in os.environ if name.startswith(PASSED_ON)):
        words += ["-x", name]
    return [*words, *job.options, *job.argv()]


def require_here() -> None:
    """Raises UserError if there is no mpirun."""
    if shutil.which("mpirun") is None:
        raise UserError("there is no mpirun on this machine: install Open MPI (Debian: openmpi-bin).")


def submit(job: Job) -> Submitted:
    """Runs it."""
    words = line(job, root=os.geteuid() == 0, slots=len(cores.physical_cores()))
    code = subprocess.run(words).returncode
    return Submitted("mpirun has ended." if code == 0 else f"mpirun ended with exit code {code}.", code=code)


def _hosts(options: Sequence[str]) -> bool:
    """Whether options for mpirun name hosts."""
    return any(word.lstrip("-") in ("H", "host", "hostfile", "machinefile", "default-hostfile") for word in options)
