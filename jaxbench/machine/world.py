# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A *world*: several JAX processes that run the same programs on the devices of all of them.

Every process executes the same requests in the same order. A fact that may differ between processes, such as a clock or
free memory, must not decide in one process alone which program runs next: the others would wait forever in a
collective. So the processes of a world agree first. They do so through JAX's coordination service, without devices.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import re
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import jax

from jaxbench.errors import UserError

Answer = TypeVar("Answer")

MEETING_LIMIT_S = 600.0  # one process may compile, or compute a reference, for this time while the others wait


def join(place: Mapping[str, Any]) -> None:
    """Joins this process to a world, before JAX has a backend.

    place: "address", host:port of the coordination service, which process 0 starts; "processes": their number;
    "process": the number of this one; optionally "device": the only local accelerator that it takes, and
    "devices_here": the number of the world's devices on this host, if not all.

    Raises UserError if the port is taken.
    """
    address, mine = str(place["address"]), [place["device"]] if "device" in place else None
    if place["process"] == 0:
        require_free(address)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")  # MPI would need its own launcher
    jax.distributed.initialize(
        coordinator_address=address,
        num_processes=place["processes"],
        process_id=place["process"],
        local_device_ids=mine,
        cluster_detection_method="deactivate",
        coordinator_bind_address=address,  # by default JAX listens on all interfaces
    )


def require_free(address: str) -> None:
    """Raises UserError if another process uses the port, and for an address that this host does not have.

    JAX's service would share the port with the other process, and processes of another world would join this one.
    """
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        try:
            probe.bind((host, int(port)))
        except OSError as error:
            if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                raise UserError(
                    f"process 0 must be reachable at {address}, which is no address of its host "
                    f"({socket.gethostname()}): give all processes one with --coordinator=host:port."
                ) from error
            raise UserError(
                f"the port {port} of {host}, where the processes of a world meet, is taken "
                f"({error.strerror}): choose another, or run again."
            ) from error


def free_address(host: str = "127.0.0.1") -> str:
    """A free "host:port". host: a name or an address of this host, by default the loopback."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return f"{host}:{probe.getsockname()[1]}"


# The system calls epoll_wait, epoll_pwait and epoll_pwait2, and epoll_pwait of arm64.
EPOLL = {"232", "281", "441", "22"}


def read_sockets_last(tasks: Path = Path("/proc/self/task")) -> int:
    """Gives the threads of this process that wait for sockets the lowest priority, once it has devices (Linux).

    From the moment when another process sends until this one receives, Gloo's thread polls for data without a pause. It
    occupied the core of the receiving thread for a whole time slice: an all-reduce of 100 kB took 3.6 ms, and now takes
    0.7 ms. gRPC's threads, which have names of their own, are not changed. Returns the number of threads found.
    """
    found = set()
    for _ in range(5):  # a thread that is not waiting now will be soon
        for task in tasks.iterdir() if tasks.exists() else ():
            with contextlib.suppress(OSError):
                mine = (task / "comm").read_text() == (tasks.parent / "comm").read_text()
                if mine and (task / "syscall").read_text().split()[0] in EPOLL:
                    os.setpriority(os.PRIO_PROCESS, int(task.name), 19)
                    found.add(task.name)
        time.sleep(0.01)
    return len(found)


# The number of barriers of each set of processes so far. It is equal in all of them, because they do the same in order.
_meetings: defaultdict[tuple[int, ...], Iterator[int]] = defaultdict(itertools.count)


@dataclass(frozen=True)
class Members:
    """The process group that owns some devices: process numbers. A single process agrees with itself at no cost."""

    processes: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, devices: Sequence[jax.Device]) -> Members:
        if jax.process_count() == 1:  # also devices that are not here have processes
            return cls()
        return cls(tuple(sorted({device.process_index for device in devices})))

    @property
    def alone(self) -> bool:
        return len(self.processes) == 1

    @property
    def include_this(self) -> bool:
        return self.alone and jax.process_count() == 1 or self.here in self.processes

    @property
    def here(self) -> int:
        """The number of this process."""
        return jax.process_index()

    @property
    def service(self) -> Any:
        """The client of the coordination service. JAX has no public name for it; only this property uses it."""
        from jax._src import distributed

        return distributed.global_state.client

    @property
    def leads(self) -> bool:
        """Whether this process is the first of the group, its leader."""
        return self.alone or jax.process_index() == self.processes[0]

    def meet(self) -> None:
        """A barrier of all processes. Raises TimeoutError, which names a missing process, after MEETING_LIMIT_S."""
        if not self.alone:
            self._wait(f"{self._next()}/met")

    def meet_at(self, name: str) -> None:
        """A barrier for use in another thread. name: used for one barrier only."""
        if not self.alone:
            self._wait(f"jaxbench/at/{name}")

    def gathered(self, value: Any) -> list[Any]:
        """All-gather: the value of each process, in their order. value: JSON."""
        if self.alone:
            return [value]
        name = self._next()
        service = self.service
        service.key_value_set(f"{name}/{self.here:08}", json.dumps(value))
        self._wait(f"{name}/given")  # all values are set
        values = [json.loads(text) for _, text in sorted(service.key_value_dir_get(f"{name}/"))]
        self._wait(f"{name}/taken")  # all have read them, so the leader may delete them
        if self.here == self.processes[0]:
            service.key_value_delete(f"{name}/")
        return values

    def decided(self, value: Any) -> Any:
        """Broadcast: the value of the leader."""
        return self.gathered(value)[0]

    def led(self, call: Callable[[], Any]) -> Any:
        """Runs `call` on the leader only, and returns its result, JSON, on all. Raises its UserError on all."""
        answer: dict[str, Any] = {}
        if self.leads:
            try:
                answer = {"value": call()}
            except UserError as error:
                answer = {"error": str(error)}
        answer = self.decided(answer)
        if "error" in answer:
            raise UserError(answer["error"])
        return answer["value"]

    def all(self, value: bool) -> bool:
        """Whether `value` is true in every process."""
        return all(self.gathered(value))

    def together(self, call: Callable[..., Answer]) -> Callable[..., Answer]:
        """`call` after a barrier, so all processes start it together: some collectives wait only half a minute."""

        def met(*args: Any) -> Answer:
            self.meet()
            return call(*args)

        return call if self.alone else met

    def _next(self) -> str:
        return f"jaxbench/{'-'.join(map(str, self.processes))}/{next(_meetings[self.processes])}"

    def _wait(self, name: str) -> None:
        try:
            self.service.wait_at_barrier(name, int(1000 * MEETING_LIMIT_S), process_ids=list(self.processes))
        except jax.errors.JaxRuntimeError as error:
            if missing := re.findall(r"^(\d+)$", str(error), re.MULTILINE):
                limit = f"within {MEETING_LIMIT_S:.0f} s at the point where the others wait for it"
                raise TimeoutError(f"process {missing[0]} did not arrive {limit}") from error
            raise


@dataclass(frozen=True)
class Trainings(Members):
    """Co-runners: concurrent trainings of one process each. They agree like a world, but do not join their devices."""

    number: int = 0
    client: Any = None

    @property
    def here(self) -> int:
        return self.number

    @property
    def service(self) -> Any:
        return self.client


def beside(place: Mapping[str, Any]) -> Trainings:
    """Connects this process to its co-runners, the concurrent trainings. place: as for `join`, without a device.

    Raises UserError if the port is taken.
    """
    from jax._src.lib import _jax  # no public name: `jax.distributed` would join the devices as well

    address, count, number = str(place["address"]), place["processes"], place["process"]
    if number == 0:
        require_free(address)
        _services.append(_jax.get_distributed_runtime_service(address, count))
    client = _jax.get_distributed_runtime_client(address, number, shutdown_on_destruction=False)
    client.connect()
    return Trainings(tuple(range(count)), number, client)


_services: list[Any] = []  # keeps the service alive: it ends with its last reference
