# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Real launchers. Uses a running Slurm; otherwise root starts one with two nodes, if it is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from cluster.own_slurm import answers, happens, idle, start


@pytest.fixture(scope="session")
def slurm_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Slurm with at least two nodes."""
    if shutil.which("sbatch") is None:
        pytest.skip("Slurm is not installed")
    if answers():
        yield
        return
    needed = [name for name in ("slurmctld", "slurmd", "munged") if shutil.which(name) is None]
    if needed or os.geteuid() != 0:
        pytest.skip(f"no Slurm answers, and starting one needs {', '.join(needed) or 'root'}")
    home, before = tmp_path_factory.mktemp("slurm"), os.environ.get("SLURM_CONF")
    daemons = start(home)
    try:
        if not happens(answers, 30):
            pytest.skip(f"the Slurm that is installed does not start: its logs are in {home}")
        yield
    finally:
        happens(idle, 60)  # otherwise the daemon of a running job would remain
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(30)
        os.environ.pop("SLURM_CONF")
        if before is not None:
            os.environ["SLURM_CONF"] = before
