# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A launch: the same command, started several times by a launcher, such as Slurm or Open MPI, or by a person.

Process 0 measures with all processes, and the others follow it. It listens at the address of the launch, and each
follower connects and sends {"process": p}. When all are there, process 0 answers {"joined": true}. From then on both
sides send JSON lines, and a beat every BEAT_S, so that a host that is lost is missed. A follower sends {"hello": its
facts}, and then obeys the commands of process 0:

    {"do": "start", "child": c, "setup": ...}      starts a worker; its answers are sent as {"child": c, "answer": ...},
                                                   its end as {"child": c, "ended": code, "how": ..., "log": ...}
    {"do": "send", "child": c, "line": ...}        a request to a worker
    {"do": "let_go" | "kill", "child": c}          see `child.Child`
    {"do": "exit", "code": n}                      ends with this exit code
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import re
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.errors import UserError
from jaxbench.machine import source, start
from jaxbench.processes.child import Child, JsonLines, ready
from jaxbench.records.documents import flatten

JOIN_LIMIT_S = 60  # for all processes of a launch to join
HELLO_LIMIT_S = 180.0  # for a process to report its resources, for which JAX starts in a child of it
BEAT_S = 3.0
FOLLOWER_LOST_S, LEADER_LOST_S = 15.0, 30.0  # without a beat; both outlast a short network failure
END_LIMIT_S = 15.0  # for a follower to hear that it ends
BEAT = {"beat": True}
SAME = {"versions": "versions of packages", "source": "source of jaxbench", "config": "settings"}
SAME |= {"experiment": "text of the experiment", "devices": "devices"}


@dataclass(frozen=True)
class Launch:
    """The position of this process in a launch.

    address: host:port at which process 0 listens. processes: the number of processes that were started. process: the
    number of this one. device: the only accelerator of this host that it should take; None: all that it sees.
    """

    address: str
    processes: int
    process: int
    device: int | None = None

    @property
    def host(self) -> str:
        """The host at which the others reach process 0: a name, or an IP address."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


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


class Connection:
    """The TCP connection between process 0 and a follower. It can send from any thread."""

    def __init__(self, connected: socket.socket, limit_s: float):
        """limit_s: after this time without a message the other side counts as lost."""
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.settimeout(limit_s)
        self.socket, self._lines, self._lock = connected, connected.makefile("rb"), threading.Lock()

    def send(self, message: dict[str, Any]) -> bool:
        """False: the other side is gone, which the next read finds, too."""
        with self._lock, contextlib.suppress(OSError):
            self.socket.sendall(json.dumps(message).encode() + b"\n")
            return True
        return False

    def read(self) -> dict[str, Any] | None:
        """The next message except beats; None once the other side is lost."""
        with contextlib.suppress(OSError, ValueError):  # ValueError: what has connected is no process of a launch
            while (line := self._lines.readline()).endswith(b"\n"):
                if (message := json.loads(line)) != BEAT:
                    return message
        return None

    def beat(self) -> None:
        """Sends beats from now on, in a thread of its own."""

        def beats() -> None:
            while self.send(BEAT):
                time.sleep(BEAT_S)

        threading.Thread(target=beats, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # ends a read in another thread
            self.socket.shutdown(socket.SHUT_RDWR)
        self._lines.close()
        self.socket.close()


def listen(launch: Launch) -> dict[int, Connection]:
    """Waits, as process 0, for all others. Returns their connections, by process. Raises UserError."""
    start.require_free(launch.address)
    connections: dict[int, Connection] = {}
    deadline = time.monotonic() + JOIN_LIMIT_S
    with socket.create_server((launch.host, launch.port), backlog=launch.processes) as server:
        while len(connections) < launch.processes - 1:
            server.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                connection = Connection(server.accept()[0], FOLLOWER_LOST_S)
            except TimeoutError:
                for connection in connections.values():
                    connection.close()
                raise _not_all(launch) from None
            process = int((connection.read() or {}).get("process", 0))
            if 0 < process < launch.processes and process not in connections:
                connections[process] = connection
            else:
                connection.close()
    for connection in connections.values():
        connection.send({"joined": True})
        connection.beat()
    return connections


def connect(launch: Launch) -> Connection:
    """Connects a follower to process 0, and waits for all others. Raises UserError."""
    deadline = time.monotonic() + JOIN_LIMIT_S
    while True:
        try:
            connected = socket.create_connection((launch.host, launch.port), timeout=5.0)
            break
        except OSError:  # process 0 may start later
            if time.monotonic() > deadline:
                raise _not_all(launch) from None
            time.sleep(0.2)
    connection = Connection(connected, JOIN_LIMIT_S)
    connection.send({"process": launch.process})
    if connection.read() is None:
        connection.close()
        raise _not_all(launch)
    connected.settimeout(LEADER_LOST_S)
    connection.beat()
    return connection


def _not_all(launch: Launch) -> UserError:
    return UserError(
        f"not all of {launch.processes} processes came to {launch.address} within {JOIN_LIMIT_S} s: start each with a "
        "--process of its own, the same --coordinator, and a network that lets them reach it."
    )


def take_part(
    launch: Launch,
    lead: Callable[[Followers], int],
    say: Callable[[], dict[str, Any]],
    experiment: str,
    alone: Callable[[], AbstractContextManager[None]],
) -> int:
    """Leads the launch or follows process 0. Returns the exit code of process 0. Raises UserError.

    say: returns the facts of this process; see `facts`. experiment: its path on this host. alone: a context that holds
    the machine's lock.
    """
    if launch.process:
        connection = connect(launch)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(alone())
                hello = say()
            except UserError as error:  # process 0 says it, and ends all
                hello = {"error": str(error), "host": socket.gethostname()}
            return follow(launch, connection, hello, experiment)
    followers, code = Followers(launch, listen(launch)), 2
    try:
        with alone():
            code = lead(followers)
        return code
    except KeyboardInterrupt:
        code = 130
        raise
    finally:
        followers.end(code)


def follow(launch: Launch, connection: Connection, hello: dict[str, Any], experiment: str) -> int:
    """Obeys process 0. Returns its exit code. Raises UserError if process 0 is gone."""
    children: dict[int, Child] = {}
    reports: list[threading.Thread] = []
    with tempfile.TemporaryDirectory(prefix="jaxbench-launch-") as logs:
        try:
            connection.send({"hello": hello})
            while (asked := connection.read()) and asked["do"] != "exit":
                number = asked["child"]
                if asked["do"] == "start":
                    setup = {**asked["setup"], "experiment": experiment}  # where it is on this host
                    children[number] = Child(setup, Path(logs) / f"child{number}")
                    reports.append(threading.Thread(target=_report, args=(connection, number, children[number])))
                    reports[-1].start()
                elif asked["do"] == "send":
                    children[number].send(asked["line"])
                elif asked["do"] == "let_go":
                    children[number].let_go()
                else:
                    children[number].kill()
        except KeyboardInterrupt:
            return 130
        finally:
            for child in children.values():
                child.kill()
            for report in reports:  # they read the logs, which are removed now
                report.join()
            connection.close()
    if asked is None:
        raise UserError(
            f"process 0, which leads this launch from {launch.host}, is gone, so process {launch.process} ended: start "
            "the same command again to continue."
        )
    return int(asked["code"])


def _report(connection: Connection, number: int, child: Child) -> None:
    """Sends the answers of a child to process 0, and finally how it ended."""
    while (answer := child.read()) is not None:
        if answer.get("source") == source.HERE:
            del answer["source"]  # this copy is process 0's, wherever it lies here
        connection.send({"child": number, "answer": answer})
    code, how = child.end()
    connection.send({"child": number, "ended": code, "how": how, "log": child.log_tail()})


class Followers:
    """Process 0's view of a launch: each host's resources and its workers.

    Attributes:
      hosts: the host name of each process, known after `gather`.
    """

    def __init__(self, launch: Launch, connections: dict[int, Connection]):
        self.launch = launch
        self.hosts = [launch.host] * launch.processes
        self._connections = connections
        self._numbers = itertools.count()
        self._workers: dict[int, Remote] = {}
        self._present = {*connections}
        self._hellos: queue.SimpleQueue[tuple[int, dict[str, Any]]] = queue.SimpleQueue()
        self._facts: list[dict[str, Any]] = []
        self._threads = [threading.Thread(target=self._listen, args=(process,), daemon=True) for process in connections]
        for thread in self._threads:
            thread.start()

    def gather(self, mine: dict[str, Any]) -> list[dict[str, Any]]:
        """The facts of each process, in order. mine: those of this process; see `facts`.

        Raises UserError for a process that cannot measure, does not answer, or differs from this process.
        """
        by_process = {0: mine}
        while len(by_process) < self.launch.processes:
            try:
                process, hello = self._hellos.get(timeout=HELLO_LIMIT_S)
            except queue.Empty:
                missing = min({*range(self.launch.processes)} - {*by_process})
                raise UserError(
                    f"process {missing} did not report its resources within {HELLO_LIMIT_S:.0f} s."
                ) from None
            if "error" in hello:
                raise UserError(f"process {process} (on {hello['host']}): {hello['error']}")
            by_process[process] = hello
        self._facts = [by_process[process] for process in range(self.launch.processes)]
        self.hosts = [facts["host"] for facts in self._facts]
        for process, facts in enumerate(self._facts):
            require_same(mine, facts, process)
        return self._facts

    def setups(self, setup: dict[str, Any], among: Sequence[int] = ()) -> list[dict[str, Any]]:
        """The setup of each process of a worker; the first is on process 0. `client.setups` does the same on one host.

        among: the processes of the launch that take part; (): as many as the worker needs, from the first on.
        """
        count = self.launch.processes if setup["platform"] != "cpu" else setup.get("processes", 1)
        among = among or range(count)
        if len(among) == 1:
            return [setup]
        hosts = [self.hosts[process] for process in among]
        # Each worker is a world of its own, with its own coordination service on a free port of process 0's host.
        address = start.free_address("127.0.0.1" if len(set(self.hosts)) == 1 else self.launch.host)
        setups = []
        for number, process in enumerate(among):
            facts = self._facts[process]
            place: dict[str, Any] = {"address": address, "processes": len(among), "process": number}
            if facts["device"] is not None:
                place["device"] = facts["device"]
            place["devices_here"] = setup["devices"] // len(among) * hosts.count(hosts[number])
            setups.append({**setup, "processes": len(among), "world": place, "order": facts["order"]})
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
        self._connections[process].send(message)

    def end(self, code: int) -> None:
        """Ends the other processes with this exit code."""
        for process in sorted(self._present):
            self.tell(process, {"do": "exit", "code": code})
        for thread in self._threads:  # a connection that is closed too early would lose the message
            thread.join(END_LIMIT_S)
        for connection in self._connections.values():
            connection.close()

    def _listen(self, process: int) -> None:
        while (message := self._connections[process].read()) is not None:
            if "hello" in message:
                self._hellos.put((process, message["hello"]))
            else:
                self._workers[message["child"]].hear(message)
        # The link itself ended, so nobody can be reached any more.
        self._present.discard(process)
        # Wakes whoever waits for this process, in `gather` or in `end`.
        self._hellos.put(
            (process, {"error": "it was lost before it reported its resources.", "host": self.hosts[process]})
        )
        for worker in list(self._workers.values()):
            if worker.process == process:
                worker.lost()

    def has(self, process: int) -> bool:
        """Whether a process of the launch is still there."""
        return process == 0 or process in self._present

    @property
    def missing(self) -> str:
        """A clause that names a process that was lost; "" if there is none."""
        gone = sorted({*self._connections} - self._present)
        return f"process {gone[0]} (on {self.hosts[gone[0]]}) is gone" if gone else ""


class Remote(JsonLines):
    """A worker on another process of the launch, with the methods of `child.Child` that its clients use."""

    stopped = False  # is not known of other hosts
    pid = 0

    def __init__(self, followers: Followers, process: int, number: int):
        # A real pipe, so that `child.ready` can wait for local and remote workers with one selector.
        reading, self._writing = os.pipe()
        super().__init__(reading)
        self.process, self.number = process, number
        self._followers = followers
        self._end: tuple[int, str] | None = None
        self._log = ""

    def hear(self, message: dict[str, Any]) -> None:
        """Takes an answer, or the news of its end. A listening thread calls this."""
        if self._end is not None:  # it was given up already, and the pipe is closed
            return
        if "answer" in message:
            os.write(self._writing, json.dumps(message["answer"]).encode() + b"\n")
            return
        self._end, self._log = (message["ended"], message["how"]), message["log"]
        os.close(self._writing)

    def lost(self) -> None:
        self.hear({"ended": 1, "how": "is gone: its host, its launcher or the network ended", "log": ""})

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
            self._followers.tell(self.process, {**message, "child": self.number})


def facts(launch: Launch, machine: Mapping[str, Any], experiment: str, config: ConfigDict) -> dict[str, Any]:
    """The facts of this process. Those in SAME must be equal in all processes. machine: its manifest."""
    count = machine["devices"]
    one = machine["platform"] != "cpu" and launch.device is not None and launch.device < count
    return {
        "host": socket.gethostname(),
        "order": machine["free_cores"],
        "cpu_quota": machine["cpu_quota"],
        "device": launch.device if one and count > 1 else None,
        "devices": {"kind": machine["device_kind"], "count": 1 if one else count},
        "versions": {**machine["versions"], "python": machine["python"]},
        "source": machine["source_sha256"],
        "experiment": discovery.digest(experiment),
        "config": flatten(config_lib.plain(config)),
    }


def all_hosts(followers: Followers, machine: dict[str, Any], experiment: str, config: ConfigDict) -> dict[str, Any]:
    """The manifest of all hosts as one machine. machine: that of this host. Raises UserError if they differ."""
    return merged_machine(machine, followers.gather(facts(followers.launch, machine, experiment, config)))


def merged_machine(machine: dict[str, Any], processes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The manifest of all hosts as one machine. machine: that of process 0; processes: the facts of each.

    Cores are counted once for each host, because the processes of a host may share them, up to the smallest quota.
    """
    by_host: dict[str, list[Mapping[str, Any]]] = {}
    for each in processes:
        by_host.setdefault(each["host"], []).append(each)
    cores = 0
    for those in by_host.values():
        quotas = [int(each["cpu_quota"]) for each in those if each["cpu_quota"] is not None]
        cores += max(1, min([len({core for each in those for core in each["order"]}), *quotas]))
    devices = machine["devices"] if machine["platform"] == "cpu" else sum(p["devices"]["count"] for p in processes)
    return {**machine, "devices": devices, "cores": cores, "hosts": [each["host"] for each in processes]}


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
