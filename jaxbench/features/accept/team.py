# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The processes of a test, one on each host: requests to all at once. One that hangs or dies is a result, and ends
nobody."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from jaxbench.processes.child import Child
from jaxbench.processes.launch import Remote
from jaxbench.processes.messages import Answer, Failed, Idle, Ready, Request, Setup, answer_kind, answer_of
from jaxbench.processes.supervisor import Supervisor

EXTRA = ("source", "spent", "spent_on_model")  # what a server adds to its answers for a sweep
Start = Callable[[int, Setup], "Child | Remote"]


class Team:
    """One process on each host, by the number of the host.

    Attributes:
      lost: why a host does not answer any more, as a clause.
    """

    def __init__(self, start: Start, setups: Mapping[int, Setup], limit_s: float):
        """Starts them, and waits until their devices are there. limit_s: for each answer."""
        self.lost: dict[int, str] = {}
        self._limit_s = limit_s
        self._processes = Supervisor({host: start(host, setup) for host, setup in setups.items()})
        self._collect(Ready, self.present)

    @property
    def present(self) -> list[int]:
        """The hosts that still answer."""
        return [host for host in self._processes.children if host not in self.lost]

    def ask(self, request: Request[Answer], among: Sequence[int] | None = None) -> dict[int, Answer]:
        """The answer of each host that gives one in time. All others are `lost` from then on."""
        hosts = [host for host in self.present if among is None or host in among]
        self._processes.send(request, hosts)
        return self._collect(answer_kind(type(request)), hosts)

    def close(self) -> None:
        """Ends all of them."""
        self._processes.close()

    def _collect(self, kind: type[Answer], hosts: Sequence[int]) -> dict[int, Answer]:
        """The answers of hosts that answer in time. Drops the others."""
        waiting, found = [*hosts], {}
        deadline = time.monotonic() + self._limit_s
        while waiting:
            heard = self._processes.hear(deadline - time.monotonic(), waiting)
            if not heard:
                for host in waiting:
                    self._lose_host(host, f"no answer in {self._limit_s:g} s")
                break
            for host, line in heard:
                waiting.remove(host)
                if line is None:  # its pipe has ended: it was killed, or its host is gone
                    self._lose_host(host, f"its process {self._processes.end_of(host).reason}")
                    continue
                for extra in EXTRA:
                    line.pop(extra, None)
                answer = answer_of(line, kind)
                if isinstance(answer, Failed | Idle):
                    reason = answer.reason if isinstance(answer, Failed) else "it owns no device"
                    self._lose_host(host, f"it failed: {reason}")
                else:
                    found[host] = answer
        return found

    def _lose_host(self, host: int, why: str) -> None:
        self.lost[host] = why
        self._processes.kill([host])
