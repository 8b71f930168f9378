# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The processes of a test, one on each host: requests to all at once. One that hangs or dies is a result, and ends
nobody."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from jaxbench.processes.child import Child, ready
from jaxbench.processes.launch import Remote
from jaxbench.processes.messages import Answer, Failed, Idle, Ready, Request, Setup, answer_kind, answer_of, line_of

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
        self._children = {host: start(host, setup) for host, setup in setups.items()}
        self._collect(Ready, self.present)

    @property
    def present(self) -> list[int]:
        """The hosts that still answer."""
        return [host for host in self._children if host not in self.lost]

    def ask(self, request: Request[Answer], among: Sequence[int] | None = None) -> dict[int, Answer]:
        """The answer of each host that gives one in time. All others are `lost` from then on."""
        hosts = [host for host in self.present if among is None or host in among]
        for host in hosts:
            self._children[host].send(line_of(request))
        return self._collect(answer_kind(type(request)), hosts)

    def close(self) -> None:
        """Ends all of them."""
        for host, child in self._children.items():
            if host in self.lost:
                child.kill()
            else:
                child.let_go()
        for child in self._children.values():
            child.close()

    def _collect(self, kind: type[Answer], hosts: Sequence[int]) -> dict[int, Answer]:
        waiting, found = dict.fromkeys(hosts), {}
        deadline = time.monotonic() + self._limit_s
        while waiting:
            children = {self._children[host].descriptor: host for host in waiting}
            come = ready([self._children[host] for host in waiting], deadline - time.monotonic())
            if not come:
                for host in waiting:
                    self._lose(host, f"no answer in {self._limit_s:g} s")
                break
            for child in come:
                host = children[child.descriptor]
                del waiting[host]
                line = child.read()
                if line is None:  # its pipe has ended: it was killed, or its host is gone
                    self._lose(host, f"its process {child.end()[1]}")
                    continue
                for extra in EXTRA:
                    line.pop(extra, None)
                answer = answer_of(line, kind)
                if isinstance(answer, Failed | Idle):
                    reason = answer.reason if isinstance(answer, Failed) else "it owns no device"
                    self._lose(host, f"it failed: {reason}")
                else:
                    found[host] = answer
        return found

    def _lose(self, host: int, why: str) -> None:
        self.lost[host] = why
        self._children[host].kill()
