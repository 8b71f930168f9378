# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The hosts of a test: this machine, or the processes of a launch as process 0 sees them. A process that does not come,
or
cannot start JAX, is a result."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from jaxbench.machine import cores, cpu_quota, manifest, source, start
from jaxbench.machine.position import Position, node
from jaxbench.processes import launch as launches
from jaxbench.processes.child import Child
from jaxbench.processes.launch import Followers, Remote
from jaxbench.processes.messages import KEEP_MEMORY, Devices, HostFacts, Setup, Unfit
from jaxbench.records.documents import JsonObject

WORKER = "jaxbench.features.accept.worker"
BOOT = Path("/proc/sys/kernel/random/boot_id")
DRIVER = Path("/proc/driver/nvidia/version")
# Variables that name a place or a rank, so they differ between healthy hosts.
OF_A_PLACE = ("VISIBLE", "RANK", "ADDR", "PROCESS_ID", "WORKER_ID", "HOSTNAME", "CACHE_DIR", "SOCKET_IFNAME")


def software(found: manifest.Machine) -> dict[str, str]:
    """What should be equal on all hosts: packages, Python, kernel, driver, and variables that change JAX."""
    driver = DRIVER.read_text().splitlines()[0].strip() if DRIVER.exists() else ""
    identity = found.get("identity", {})
    variables = {n: v for n, v in found.get("environment", {}).items() if not any(part in n for part in OF_A_PLACE)}
    return {
        **found["versions"],
        "python": found["python"],
        "kernel": str(identity.get("kernel") or ""),
        "driver": driver,
        **variables,
    }


def facts_here(position: Position | None) -> HostFacts:
    """The facts of this process. Raises UserError if JAX does not start."""
    found = manifest.probe("auto")
    count = found["devices"]
    own = position.device if position is not None and found["platform"] != "cpu" else None
    one = own is not None and own < count
    processor = {name: each for name, each in found["identity"].items() if name != "product_s"}
    about: JsonObject = {
        "platform": found["platform"],
        "machine": BOOT.read_text().strip() if BOOT.exists() else socket.gethostname(),
        "processor": str(sorted(processor.items())),
    }
    return HostFacts(
        host=node(),
        order=tuple(cores.free_cores()),
        cpu_quota=cpu_quota.limit(),
        device=own if one and count > 1 else None,
        devices=Devices(kind=found["device_kind"], count=1 if one else count),
        versions=software(found),
        source=source.HERE["sha256"],
        experiment="",
        config=about,
    )


@dataclass
class Hosts:
    """The hosts that answered, by the number of their process, and why others did not, as clauses.

    Attributes:
      names: of all processes; unique. nodes: the names that the queue knows, which processes may share.
      devices: how many each process tests at most; None: all that it has.
    """

    facts: dict[int, HostFacts]
    nodes: dict[int, str]
    silent: dict[int, str]
    devices: int | None
    logs: Path
    followers: Followers | None = None

    @property
    def names(self) -> dict[int, str]:
        often = Counter(self.nodes.values())
        return {p: f"{name}/{p}" if often[name] > 1 else name for p, name in self.nodes.items()}

    @property
    def platform(self) -> str:
        """Of the devices of the host that leads."""
        return str(next(iter(self.facts.values())).config["platform"])

    def start(self, process: int, setup: Setup) -> Child | Remote:
        if process == 0 or self.followers is None:
            return Child(setup, self.logs / f"{len(list(self.logs.glob('*')))}-{process}.log")
        return self.followers.start(process, setup)

    def setup(self, process: int, folder: Path) -> Setup:
        """Of the process that runs the probes of one host alone."""
        facts = self.facts[process]
        order = self._own_cores(process)
        platform = str(facts.config["platform"])
        environment = dict(KEEP_MEMORY) if platform == "cpu" else {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        if platform == "gpu":  # a program's own variables stay
            # Without it, XLA adds up some gradients in any order, and equal devices would have other bits.
            flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_gpu_deterministic_ops=true".strip()
            environment |= {"XLA_FLAGS": flags}
        if facts.device is not None:  # the launcher gave it one accelerator of the host
            shown = (os.environ.get("CUDA_VISIBLE_DEVICES") or "").split(",")
            environment["CUDA_VISIBLE_DEVICES"] = (
                shown[facts.device] if len(shown) > facts.device else str(facts.device)
            )
        return Setup(
            platform=platform,
            devices=self.count(process),
            module=WORKER,
            environment=environment,
            order=order,
            config={"folder": str(folder)},
        )

    def count(self, process: int) -> int:
        """How many devices a process tests."""
        facts = self.facts[process]
        most = facts.devices.count
        if facts.config["platform"] == "cpu":
            quota = max(1, int(facts.cpu_quota)) if facts.cpu_quota else len(facts.order)
            most = max(1, min(len(self._own_cores(process)), quota))
        return min(most, self.devices or most)

    def _own_cores(self, process: int) -> tuple[int, ...]:
        """The cores of a process. Processes of one machine that may use the same cores divide them."""
        mine = self.facts[process]
        where = mine.config["machine"], frozenset(mine.order)
        same = [p for p, facts in self.facts.items() if (facts.config["machine"], frozenset(facts.order)) == where]
        if len(same) == 1 or len(mine.order) < len(same):
            return mine.order
        return tuple(sorted(mine.order)[same.index(process) :: len(same)])

    def world(self, processes: list[int], folder: Path) -> dict[int, Setup]:
        """The setups of a process group over these hosts, with equally many devices of each."""
        count = min(self.count(process) for process in processes)
        machines = [str(self.facts[process].config["machine"]) for process in processes]
        lead = self.followers.launch.host if self.followers else "127.0.0.1"
        address = start.free_address("127.0.0.1" if len({*self.nodes.values()}) == 1 else lead)
        setups = {}
        for number, process in enumerate(processes):
            position = Position(
                address=address,
                processes=len(processes),
                process=number,
                device=self.facts[process].device,
                devices_here=count * machines.count(machines[number]),
            )
            alone = self.setup(process, folder)
            variables = {n: v for n, v in alone.environment.items() if n != "CUDA_VISIBLE_DEVICES"}
            setups[process] = dataclasses.replace(
                alone, devices=count * len(processes), processes=len(processes), world=position, environment=variables
            )
        return setups


@contextlib.contextmanager
def here(devices: int | None) -> Iterator[Hosts]:
    """This machine alone."""
    with tempfile.TemporaryDirectory(prefix="jaxbench-accept-") as logs:
        yield Hosts({0: facts_here(None)}, {0: node()}, {}, devices, Path(logs))


def take_part(
    position: Position,
    lead: Callable[[Hosts], int],
    alone: Callable[[], AbstractContextManager[None]],
    devices: int | None,
    limit_s: float,
) -> int:
    """Leads the launch or follows process 0. Returns the exit code of process 0. Raises UserError.

    lead: the test, on process 0. alone: a context that holds the machine's lock. limit_s: how long a process may be
    silent.
    """
    with tempfile.TemporaryDirectory(prefix="jaxbench-accept-") as logs:
        return launches.take_part(
            position,
            lambda followers: lead(_hosts(position, followers, devices, Path(logs), limit_s)),
            lambda: facts_here(position),
            "",
            alone,
            name=node,
            without_after_s=limit_s,
        )


def _hosts(position: Position, followers: Followers, devices: int | None, logs: Path, limit_s: float) -> Hosts:
    """What the processes of a launch say about themselves, within `limit_s` seconds."""
    begun, mine = time.monotonic(), facts_here(position)
    known = _names_of_queue(position.processes)
    said: dict[int, HostFacts | Unfit] = {
        0: mine,
        **followers.heard(limit_s - min(limit_s, time.monotonic() - begun) + 5),
    }
    hosts = Hosts({}, {}, {}, devices, logs, followers)
    for process in range(position.processes):
        word = said.get(process)
        hosts.nodes[process] = word.host if word is not None and word.host else known.get(process, f"process-{process}")
        if isinstance(word, HostFacts):
            hosts.facts[process] = word
        else:
            hosts.silent[process] = word.error.rstrip(".") if word is not None else f"no answer in {limit_s:g} s"
    return hosts


def _names_of_queue(processes: int) -> dict[int, str]:
    """The nodes of this Slurm job by process, if each has one process; {} elsewhere."""
    nodes = os.environ.get("SLURM_JOB_NODELIST", "")
    if not nodes or shutil.which("scontrol") is None:
        return {}
    try:
        asked = ["scontrol", "show", "hostnames", nodes]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    names = done.stdout.split()
    return dict(enumerate(names)) if len(names) == processes else {}
