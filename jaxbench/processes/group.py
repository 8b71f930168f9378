# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A process group: several JAX processes that run the same programs on the devices of all of them.

Every process executes the same requests in the same order. A fact that may differ between processes, such as a clock or
free memory, must not decide in one process alone which program runs next: the others would wait forever in a
collective. So the processes of a group agree first. They do so through JAX's coordination service, without devices.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import jax

from jaxbench.errors import UserError
from jaxbench.machine.position import Position
from jaxbench.machine.start import require_free

P = ParamSpec("P")
T = TypeVar("T")

BARRIER_LIMIT_S = 600.0  # one process may compile, or compute a reference, for this time while the others wait

# The number of barriers of each group so far. It is equal in all its processes, because they do the same in order.
_barriers: defaultdict[tuple[int, ...], Iterator[int]] = defaultdict(itertools.count)


@dataclass(frozen=True)
class ProcessGroup:
    """The processes, by number, that own some devices. A single process agrees with itself at no cost.

    Or co-runners: concurrent trainings of one process each. They agree likewise, but do not join their devices, so JAX
    knows neither their numbers nor their service: `join_co_runners` does.
    """

    processes: tuple[int, ...] = (0,)
    number: int | None = None  # of this process; None: as JAX numbers it
    client: Any = None  # of the coordination service; None: JAX's own

    @classmethod
    def of(cls, devices: Sequence[jax.Device]) -> ProcessGroup:
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
        return jax.process_index() if self.number is None else self.number

    @property
    def service(self) -> Any:
        """The client of the coordination service."""
        from jax._src import distributed  # no public name; only this line uses it

        return self.client or distributed.global_state.client

    @property
    def leads(self) -> bool:
        """Whether this process is the first of the group, its leader."""
        return self.alone or self.here == self.processes[0]

    def barrier(self) -> None:
        """Waits for all processes. Raises TimeoutError, which names a missing process, after BARRIER_LIMIT_S."""
        if not self.alone:
            self._wait_at(f"{self._next_name()}/barrier")

    def named_barrier(self, name: str) -> None:
        """A barrier for use in another thread. name: used for one barrier only."""
        if not self.alone:
            self._wait_at(f"jaxbench/at/{name}")

    def all_gather(self, value: T) -> list[T]:
        """The value of each process, in their order. value: JSON, so a tuple may return as a list."""
        if self.alone:
            return [value]
        name, service = self._next_name(), self.service
        service.key_value_set(f"{name}/{self.here:08}", json.dumps(value))
        self._wait_at(f"{name}/given")  # all values are set
        values = [json.loads(text) for _, text in sorted(service.key_value_dir_get(f"{name}/"))]
        self._wait_at(f"{name}/taken")  # all have read them, so the leader may delete them
        if self.leads:
            service.key_value_delete(f"{name}/")
        return values

    def broadcast(self, value: T) -> T:
        """The value of the leader. value: JSON."""
        return self.all_gather(value)[0]

    def on_leader(self, call: Callable[[], T]) -> T:
        """Runs `call` on the leader only, and returns its result, JSON, on all. Raises its UserError on all."""
        answer: dict[str, Any] = {}
        if self.leads:
            try:
                answer = {"value": call()}
            except UserError as error:
                answer = {"error": str(error)}
        answer = self.broadcast(answer)
        if "error" in answer:
            raise UserError(answer["error"])
        return answer["value"]

    def all(self, value: bool) -> bool:
        """Whether `value` is true in every process."""
        return all(self.all_gather(value))

    def after_barrier(self, call: Callable[P, T]) -> Callable[P, T]:
        """`call` after a barrier, so all processes start it together."""

        def started_together(*args: P.args, **named: P.kwargs) -> T:
            self.barrier()  # some collectives wait only half a minute for the others
            return call(*args, **named)

        return call if self.alone else started_together

    def _next_name(self) -> str:
        return f"jaxbench/{'-'.join(map(str, self.processes))}/{next(_barriers[self.processes])}"

    def _wait_at(self, name: str) -> None:
        try:
            self.service.wait_at_barrier(name, int(1000 * BARRIER_LIMIT_S), process_ids=list(self.processes))
        except jax.errors.JaxRuntimeError as error:
            if missing := re.findall(r"^(\d+)$", str(error), re.MULTILINE):
                limit = f"within {BARRIER_LIMIT_S:.0f} s at the point where the others wait for it"
                raise TimeoutError(f"process {missing[0]} did not arrive {limit}") from error
            raise


def members_of(mesh: jax.sharding.Mesh) -> ProcessGroup:
    """The processes that run a program on this mesh."""
    return ProcessGroup.of(list(mesh.devices.flat))


def join_co_runners(position: Position) -> ProcessGroup:
    """Connects this process to its co-runners. Raises UserError if the port is taken."""
    from jax._src.lib import _jax  # no public name: `jax.distributed` would join the devices as well

    address, count, number = position.address, position.processes, position.process
    if number == 0:
        require_free(address)
        _services.append(_jax.get_distributed_runtime_service(address, count))
    client = _jax.get_distributed_runtime_client(address, number, shutdown_on_destruction=False)
    client.connect()
    return ProcessGroup(tuple(range(count)), number, client)


_services: list[Any] = []  # keeps the service alive: it ends with its last reference
