# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A Slurm of two nodes on this machine, for root, with all of its files in one folder."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

CONF = """ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool-%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/%n.pid
ReturnToService=2
NodeName=t[0-1] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[2]}] CPUs=1
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
"""


def happens(condition: Callable[[], bool], limit_s: float = 120) -> bool:
    """Whether a condition of another program becomes true before the limit."""
    end = time.monotonic() + limit_s
    while not (done := condition()) and time.monotonic() < end:
        time.sleep(0.2)
    return done


def answers() -> bool:
    done = subprocess.run(["sinfo", "--noheader", "--format=%t"], capture_output=True, text=True)
    return done.returncode == 0 and "idle" in done.stdout.split()


def idle() -> bool:
    """Whether no job waits or runs."""
    return not subprocess.run(["squeue", "--noheader"], capture_output=True, text=True).stdout.strip()


def start(home: Path) -> list[subprocess.Popen[bytes]]:
    """A key for munge, munge, the controller and two nodes, all in the foreground with their files in one folder."""
    conf, key, user = home / "slurm.conf", home / "munge.key", getpass.getuser()
    first = free_ports(3)
    conf.write_text(CONF.format(home=home, host=socket.gethostname().split(".")[0], user=user, ports=first))
    (home / "state").mkdir()
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    os.environ["SLURM_CONF"] = str(conf)
    files = {"socket": "munge.socket", "pid-file": "munge.pid", "log-file": "munge.log", "seed-file": "munge.seed"}
    munge = ["munged", "--foreground", "--force", f"--key-file={key}"]
    commands = [
        [*munge, *(f"--{flag}={home / name}" for flag, name in files.items())],
        ["slurmctld", "-D", "-f", str(conf)],
        *(["slurmd", "-D", "-f", str(conf), "-N", node] for node in ("t0", "t1")),
    ]
    daemons = []
    for command in commands:
        with open(home / f"{len(daemons)}.log", "wb") as log:
            daemons.append(subprocess.Popen(command, stdout=log, stderr=log))
        happens((home / "munge.socket").exists, 20)
    return daemons


def free_ports(count: int) -> list[int]:
    """Free neighbouring ports, different in each process of pytest."""
    for first in range(21000 + 3 * (os.getpid() % 1000), 29000, count):
        probes = [socket.socket() for _ in range(count)]
        try:
            for offset, probe in enumerate(probes):
                probe.bind(("127.0.0.1", first + offset))
        except OSError:
            continue
        finally:
            for probe in probes:
                probe.close()
        return [first + offset for offset in range(count)]
    raise AssertionError("no free ports")
