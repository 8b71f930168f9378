# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Process 0's view of a launch: the resources of each process (its followers), and the workers it starts on them."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.machine import world
from jaxbench.machine.launch import JOIN_LIMIT_S, Launch
from jaxbench.runner.child import Child, JsonLines, ready

HELLO_LIMIT_S = 180.0  # for a process to report its resources, for which JAX starts in a child of it
BYE_LIMIT_S = 15.0
SAME = {"versions": "versions of packages", "source": "source of jaxbench", "config": "settings"}
SAME |= {"experiment": "text of the experiment", "devices": "devices"}


def join(launch: Launch, folder: str) -> Child:
    """Starts the link of this process to the others, and waits for them. folder: of its log. Raises UserError."""
    if launch.process == 0:
        world.require_free(launch.address)
    place = {"address": launch.address, "processes": launch.processes, "process": launch.process}
    link = Child(place, Path(folder) / "link", "jaxbench.runner.link")
    if not ready([link], JOIN_LIMIT_S + 10) or link.read() is None:
        link.kill()
        raise UserError(
            f"not all of {launch.processes} processes came to {launch.address} within {JOIN_LIMIT_S} s: start each "
            "with a --process of its own, the same --coordinator, and a network that lets them reach it."
        )
    return link


def follow(launch: Launch, link: Child, mine: Mapping[str, Any]) -> int:
    """Lets the link follow process 0. Returns the exit code of process 0. Raises UserError if process 0 is gone.

    mine: the facts about this process that the link sends; see `link.obey`.
    """
    link.send(dict(mine))
    try:
        last = link.read()
        link.end()
    except KeyboardInterrupt:
        return 130
    finally:
        link.close()
    if last is None:
        raise UserError(
            f"process 0, which leads this launch from {launch.host}, is gone, so process {launch.process} ended: start "
            "the same command again to continue."
        )
    return last["exit"]


class Crew:
    """Process 0's connection to the other processes of a launch.

    Attributes:
      hosts: the host name of each process, known after `gather`.
    """

    def __init__(self, launch: Launch, link: Child):
        self.launch = launch
        self.hosts = [launch.host] * launch.processes
        self._link = link
        self._numbers = itertools.count()
        self._workers: dict[int, Remote] = {}
        self._present = set(range(1, launch.processes))
        self._hellos: queue.SimpleQueue[tuple[int, dict[str, Any]]] = queue.SimpleQueue()
        self._byes: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._about: list[dict[str, Any]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def gather(self, mine: dict[str, Any]) -> list[dict[str, Any]]:
        """The facts of each process, in order. mine: those of this process; see `facts`.

        Raises UserError for a process that cannot measure, does not answer, or differs from this process.
        """
        about_by_process = {0: mine}
        while len(about_by_process) < self.launch.processes:
            try:
                process, about = self._hellos.get(timeout=HELLO_LIMIT_S)
            except queue.Empty:
                missing = min({*range(self.launch.processes)} - {*about_by_process})
                raise UserError(
                    f"process {missing} did not report its resources within {HELLO_LIMIT_S:.0f} s."
                ) from None
            if "error" in about:
                raise UserError(f"process {process} (on {about['host']}): {about['error']}")
            about_by_process[process] = about
        self._about = [about_by_process[process] for process in range(self.launch.processes)]
        self.hosts = [about["host"] for about in self._about]
        for process, about in enumerate(self._about):
            require_same(mine, about, process)
        return self._about

    def setups(self, setup: dict[str, Any], among: Sequence[int] = ()) -> list[dict[str, Any]]:
        """The setup of each process of a worker; the first is on process 0. `members.setups` does the same on one host.

        among: the processes of the launch that take part; (): as many as the worker needs, from the first on.
        """
        count = self.launch.processes if setup["platform"] != "cpu" else setup.get("processes", 1)
        if among:
            count = len(among)
        if count == 1:
            return [setup]
        among = among or range(count)
        hosts = [self.hosts[process] for process in among]
        # Each worker is a world of its own, with its own coordination service on a free port of process 0's host.
        address = world.free_address("127.0.0.1" if len(set(self.hosts)) == 1 else self.launch.host)
        setups = []
        for process, (host, about) in enumerate(zip(hosts, (self._about[i] for i in among), strict=True)):
            place: dict[str, Any] = {"address": address, "processes": count, "process": process}
            if about["device"] is not None:
                place["device"] = about["device"]
            place["devices_here"] = setup["devices"] // count * hosts.count(host)
            setups.append({**setup, "processes": count, "world": place, "order": about["order"]})
        return setups

    def start(self, process: int, setup: dict[str, Any]) -> Remote:
        """Starts a worker on another process of the launch."""
        worker = Remote(self, process, next(self._numbers))
        self._workers[worker.number] = worker
        if process in self._present:
            self.tell(process, {"do": "start", "child": worker.number, "setup": setup})
        else:
            worker.lost()
        return worker

    def tell(self, process: int, message: dict[str, Any]) -> None:
        self._link.send({"to": process, "message": message})

    def end(self, code: int) -> None:
        """Ends the other processes with this exit code."""
        for process in self._present:
            self.tell(process, {"do": "exit", "code": code})
        with contextlib.suppress(queue.Empty):
            for _ in sorted(self._present):
                self._byes.get(timeout=BYE_LIMIT_S)
        self._link.close()

    def _listen(self) -> None:
        while (sent := self._link.read()) is not None:
            process, message = sent["from"], sent.get("message", {})
            if "lost" in sent:
                self._lose(process)
            elif "hello" in message:
                self._hellos.put((process, message["hello"]))
            elif "bye" in message:
                self._byes.put(process)
            else:
                self._workers[message["child"]].hear(message)
        # The link itself ended, so nobody can be reached any more.
        for process in sorted(self._present):
            self._lose(process)

    def _lose(self, process: int) -> None:
        self._present.discard(process)
        # Wakes whoever waits for this process, in `gather` or in `end`.
        self._hellos.put(
            (process, {"error": "it was lost before it reported its resources.", "host": self.hosts[process]})
        )
        self._byes.put(process)
        for worker in list(self._workers.values()):
            if worker.process == process:
                worker.lost()

    def has(self, process: int) -> bool:
        """Whether a process of the launch is still there."""
        return process == 0 or process in self._present

    @property
    def missing(self) -> str:
        """A clause that names a process that was lost; "" if there is none."""
        gone = sorted({*range(1, self.launch.processes)} - self._present)
        return f"process {gone[0]} (on {self.hosts[gone[0]]}) is gone" if gone else ""


def require_same(mine: Mapping[str, Any], other: Mapping[str, Any], process: int) -> None:
    """Raises UserError if another process has other versions, source, settings or devices than process 0."""
    for name, words in SAME.items():
        if mine[name] == other[name]:
            continue
        a, b = (_text(each, others) for each, others in ((mine[name], other[name]), (other[name], mine[name])))
        raise UserError(
            f"the {words} of process 0 (on {mine['host']}: {a}) and process {process} (on {other['host']}: {b}) "
            "differ: start the same command with the same installation on all hosts."
        )


def _text(value: Any, other: Any) -> str:
    """The part of a value that is not in the other value."""
    if not isinstance(value, dict):
        return str(value)[:12] if isinstance(value, str) else str(value)
    differing = {name: each for name, each in value.items() if name not in other or other[name] != each}
    return ", ".join(f"{name} {each}" for name, each in sorted(differing.items())[:3]) or "nothing more"


class Remote(JsonLines):
    """A worker on another process of the launch, with the methods of `child.Child` that `client.Worker` uses."""

    stopped = False  # is not known of other hosts
    pid = 0

    def __init__(self, crew: Crew, process: int, number: int):
        # A real pipe, so that `child.ready` can wait for local and remote workers with one selector.
        reading, self._writing = os.pipe()
        super().__init__(reading)
        self.process, self.number = process, number
        self._crew = crew
        self._end: tuple[int, str] | None = None
        self._log = ""

    def hear(self, message: dict[str, Any]) -> None:
        """Takes an answer, or the news of its end. The listening thread calls this."""
        if self._end is not None:  # it was given up already, and the pipe is closed
            return
        if "answer" in message:
            os.write(self._writing, json.dumps(message["answer"]).encode() + b"\n")
            return
        self._end, self._log = (message["ended"], message["how"]), message["log"]
        os.close(self._writing)

    def lost(self) -> None:
        how = "is gone: its host, its launcher or the network ended"
        self.hear({"ended": 1, "how": how, "log": ""})

    @property
    def ended(self) -> bool:
        return self._end is not None

    def end(self) -> tuple[int, str]:
        """See `Child.end`. Only for a worker that has ended."""
        return self._end or (0, "did not end")

    def log_tail(self) -> str:
        return self._log

    def send(self, message: dict[str, Any]) -> None:
        self._tell({"do": "send", "line": message})

    def let_go(self) -> None:
        self._tell({"do": "let_go"})

    def close(self) -> None:
        """Waits until it has ended, for 10 s, then kills it."""
        while not self.ended and ready([self], 10.0) and self.read() is not None:
            pass
        if not self.ended:
            self.kill()

    def kill(self) -> None:
        self._tell({"do": "kill"})

    def _tell(self, message: dict[str, Any]) -> None:
        if not self.ended:
            self._crew.tell(self.process, {**message, "child": self.number})


def merged_machine(machine: dict[str, Any], abouts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The manifest of all hosts as one machine. machine: that of process 0; abouts: as `Crew.gather` returns them.

    Cores are counted once for each host, because the processes of a host may share them.
    """
    by_host: dict[str, list[Mapping[str, Any]]] = {}
    for about in abouts:
        by_host.setdefault(about["host"], []).append(about)
    cores = sum(_cores(those) for those in by_host.values())
    devices = machine["devices"] if machine["platform"] == "cpu" else sum(about["devices"]["count"] for about in abouts)
    return {**machine, "devices": devices, "cores": cores, "hosts": [about["host"] for about in abouts]}


def _cores(abouts: Sequence[Mapping[str, Any]]) -> int:
    """The cores of one host: all that its processes may use, limited by the smallest quota."""
    cores = len({core for about in abouts for core in about["order"]})
    quotas = [about["cpu_quota"] for about in abouts if about["cpu_quota"] is not None]
    return max(1, min([cores, *map(int, quotas)]))


def facts(machine: Mapping[str, Any], launch: Launch, host: str, **same: Any) -> dict[str, Any]:
    """The facts of this process. machine: its manifest. same: the facts that must be equal in all; see SAME."""
    count = machine["devices"]
    one = machine["platform"] != "cpu" and launch.device is not None and launch.device < count
    return {
        "host": host,
        "order": machine["free_cores"],
        "cpu_quota": machine["cpu_quota"],
        "device": launch.device if one and count > 1 else None,
        "devices": {"kind": machine["device_kind"], "count": 1 if one else count},
        "versions": {**machine["versions"], "python": machine["python"]},
        "source": machine["source_sha256"],
        **same,
    }
