# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A launch: the same command, started several times by a launcher, such as Slurm or Open MPI, or by a person.

Process 0 measures with all processes, and the others follow it. It listens at the address of the launch, and each
follower connects and sends `Join`. When all are there, process 0 answers `Joined`. From then on both sides send JSON
lines, and a `Beat` every BEAT_S, so that a host that is lost is missed. A follower sends its `HostFacts`, or `Unfit`,
and then obeys the commands of process 0. It reports the answers and the end of each worker that it has started.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import queue
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from ml_collections import ConfigDict

from jaxbench import config as config_lib
from jaxbench import discovery, interrupts
from jaxbench.errors import UserError
from jaxbench.machine import source, start
from jaxbench.machine.position import Position
from jaxbench.processes import messages
from jaxbench.processes.child import Child, JsonLines, ready
from jaxbench.processes.messages import Answered, Ended, Exit, Fields, HostFacts, Join, LaunchMessage, Setup, Unfit
from jaxbench.records.documents import decode, flatten
from jaxbench.records.manifest import Machine

JOIN_LIMIT_S = 60  # for all processes of a launch to join
HELLO_LIMIT_S = 180.0  # for a process to report its resources, for which JAX starts in a child of it
BEAT_S = 3.0
FOLLOWER_LOST_S, LEADER_LOST_S = 15.0, 30.0  # without a beat; both outlast a short network failure
END_LIMIT_S = 15.0  # for a follower to hear that it ends
SAME = {"versions": "versions of packages", "source": "source of jaxbench", "config": "settings"}
SAME |= {"experiment": "text of the experiment", "devices": "devices"}


def of(coordinator: str | None, processes: int | None, process: int | None) -> Position | None:
    """The launch that the flags describe or, without flags, the one that JAX detects; None for a single process.

    Raises UserError for flags that do not describe a launch.
    """
    given = {"coordinator": coordinator, "processes": processes, "process": process}
    if all(value is None for value in given.values()):
        return detected()
    if coordinator is None or processes is None or process is None:
        missing = next(name for name, value in given.items() if value is None)
        raise UserError(
            f"--{missing} is missing: a process takes --coordinator=host:port, --processes=2 and --process=0."
        )
    if not (port := re.fullmatch(r".+:(\d+)", coordinator)) or not 0 < int(port[1]) < 2**16:
        raise UserError(f"--coordinator={coordinator} is no address: use host:port, such as 10.0.0.1:12345.")
    if processes < 1 or not 0 <= process < processes:
        raise UserError(
            f"--process={process} of --processes={processes} is not possible: number the processes from 0 to "
            f"{max(processes, 1) - 1}."
        )
    return Position(address=coordinator, processes=processes, process=process) if processes > 1 else None


def detected() -> Position | None:
    """The launch in which Slurm, Open MPI, Kubernetes or a Cloud TPU has started this process; None outside of one."""
    # The detection of `jax.distributed.initialize`, which would join the launch at once. JAX has no public function
    # that only detects it.
    from jax._src import clusters

    found = clusters.ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, None, JOIN_LIMIT_S)
    address, processes, process, devices = found
    if address is None or processes is None or process is None or processes == 1:
        return None
    device = devices[0] if devices else None
    return Position(address=_reachable(address), processes=processes, process=process, device=device)


def _reachable(address: str) -> str:
    """The address, with the host by which Slurm reaches its node if no host has the node's name, as in some clouds."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError):
        socket.getaddrinfo(host, port)
        return address
    if shutil.which("scontrol") is None:
        return address
    asked = ["scontrol", "show", "node", host, "--oneliner"]
    shown = subprocess.run(asked, capture_output=True, text=True, timeout=10).stdout
    known = re.search(r"\bNodeAddr=(\S+)", shown)
    return f"{known[1]}:{port}" if known else address


class Connection:
    """The TCP connection between process 0 and a follower. It can send from any thread."""

    def __init__(self, connected: socket.socket, limit_s: float):
        """limit_s: after this time without a message the other side counts as lost."""
        # Messages are short and each waits for an answer, so collecting them into larger packets only delays.
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.settimeout(limit_s)
        self.socket, self._lines, self._lock = connected, connected.makefile("rb"), threading.Lock()

    def send(self, message: LaunchMessage) -> bool:
        """False: the other side is gone, which the next read finds, too."""
        with self._lock, contextlib.suppress(OSError):
            self.socket.sendall(json.dumps(messages.line_of(message)).encode() + b"\n")
            return True
        return False

    def read(self) -> LaunchMessage | None:
        """The next message except beats; None once the other side is lost."""
        with contextlib.suppress(OSError, ValueError):  # ValueError: what has connected is no process of a launch
            while (line := self._lines.readline()).endswith(b"\n"):
                fields = decode(Fields, json.loads(line))
                if (message := messages.message_of(fields, messages.LAUNCH_MESSAGES)) != messages.Beat():
                    return message
        return None

    def beat(self) -> None:
        """Sends beats from now on, in a thread of its own."""

        def beats() -> None:
            while self.send(messages.Beat()):
                time.sleep(BEAT_S)

        threading.Thread(target=beats, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # ends a read in another thread
            self.socket.shutdown(socket.SHUT_RDWR)
        self._lines.close()
        self.socket.close()


def listen(launch: Position, *, all_within_s: float = JOIN_LIMIT_S, require_all: bool = True) -> dict[int, Connection]:
    """Waits, as process 0, for all others. Returns their connections, by process. Raises UserError.

    require_all: whether a process that does not come within the limit is an error. Otherwise it is left out.
    """
    start.require_free(launch.address)
    connections: dict[int, Connection] = {}
    deadline = time.monotonic() + all_within_s
    # At this address only, so that nothing listens on the other networks of the host.
    with socket.create_server((launch.host, launch.port), backlog=launch.processes) as server:
        while len(connections) < launch.processes - 1:
            server.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                connection = Connection(server.accept()[0], FOLLOWER_LOST_S)
            except TimeoutError:
                if not require_all:
                    break
                for connection in connections.values():
                    connection.close()
                raise _not_all(launch, all_within_s) from None
            join = connection.read()
            if isinstance(join, Join) and 0 < join.process < launch.processes and join.process not in connections:
                connections[join.process] = connection
            else:
                connection.close()
    for connection in connections.values():
        connection.send(messages.Joined())
        connection.beat()
    return connections


def connect(launch: Position, wait_s: float = JOIN_LIMIT_S) -> Connection:
    """Connects a follower to process 0, and waits for all others. Raises UserError.

    wait_s: for each of both. Process 0 may begin to wait for the others later than this process.
    """
    deadline = time.monotonic() + wait_s
    while True:
        try:
            connected = socket.create_connection((launch.host, launch.port), timeout=5.0)
            break
        except OSError:  # process 0 may start later
            if time.monotonic() > deadline:
                raise _not_all(launch, wait_s) from None
            time.sleep(0.2)
    connection = Connection(connected, wait_s)
    connection.send(Join(process=launch.process))
    if connection.read() is None:
        connection.close()
        raise _not_all(launch, wait_s)
    connected.settimeout(LEADER_LOST_S)
    connection.beat()
    return connection


def _not_all(launch: Position, within_s: float) -> UserError:
    return UserError(
        f"not all of {launch.processes} processes came to {launch.address} within {within_s:g} s: start each with a "
        "--process of its own, the same --coordinator, and a network that lets them reach it."
    )


def take_part(
    launch: Position,
    lead: Callable[[Followers], int],
    say: Callable[[], HostFacts],
    experiment: str,
    alone: Callable[[], AbstractContextManager[None]],
    *,
    name: Callable[[], str] = socket.gethostname,
    without_after_s: float | None = None,
) -> int:
    """Leads the launch or follows process 0. Returns the exit code of process 0. Raises UserError.

    say: returns the facts of this process; see `facts`. experiment: its path on this host. alone: a context that holds
    the machine's lock. name: of this host, if it is unfit. without_after_s: seconds after which process 0 goes on
    without the processes that have not come; None: all must come.
    """
    if launch.process:
        connection = connect(launch) if without_after_s is None else connect(launch, wait_s=2 * without_after_s)
        hello: HostFacts | Unfit
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(alone())
                hello = say()
            except UserError as error:  # process 0 says it, and ends all
                hello = Unfit(error=str(error), host=name())
            return follow(launch, connection, hello, experiment)
    if without_after_s is None:
        connections = listen(launch)
    else:
        connections = listen(launch, all_within_s=without_after_s, require_all=False)
    followers, code = Followers(launch, connections), 2
    try:
        with alone():
            code = lead(followers)
        return code
    except KeyboardInterrupt:
        code = 130
        raise
    finally:
        followers.end(code)


def follow(launch: Position, connection: Connection, hello: HostFacts | Unfit, experiment: str) -> int:
    """Obeys process 0. Returns its exit code. Raises UserError if process 0 is gone."""
    children: dict[int, Child] = {}
    reports: list[threading.Thread] = []
    with tempfile.TemporaryDirectory(prefix="jaxbench-launch-") as logs:
        try:
            connection.send(hello)
            while (asked := connection.read()) and not isinstance(asked, Exit):
                match asked:
                    case messages.Start(child=number, setup=setup):
                        here = dataclasses.replace(setup, experiment=experiment)  # where it is on this host
                        children[number] = Child(here, Path(logs) / f"child{number}")
                        reports.append(threading.Thread(target=_report, args=(connection, number, children[number])))
                        reports[-1].start()
                    case messages.Send(child=number, line=line):
                        children[number].send(line)
                    case messages.LetGo(child=number):
                        children[number].let_go()
                    case messages.Kill(child=number):
                        children[number].kill()
        except KeyboardInterrupt:
            interrupts.heard()
            return interrupts.STOPPED
        finally:
            for child in children.values():
                child.kill()
            for report in reports:  # they read the logs, which are removed now
                report.join()
            connection.close()
    if not isinstance(asked, Exit):
        raise UserError(
            f"process 0, which leads this launch from {launch.host}, is gone, so process {launch.process} ended: start "
            "the same command again to continue."
        )
    return asked.code


def _report(connection: Connection, number: int, child: Child) -> None:
    """Sends the answers of a child to process 0, and finally how it ended."""
    while (answer := child.read()) is not None:
        if answer.get("source") == source.HERE:
            del answer["source"]  # this copy is process 0's, wherever it lies here
        connection.send(Answered(child=number, answer=answer))
    code, how = child.end()
    connection.send(Ended(child=number, code=code, how=how, log=child.log_tail()))


class Followers:
    """Process 0's view of a launch: each host's resources and its workers.

    Attributes:
      hosts: the host name of each process, known after `gather`.
    """

    def __init__(self, launch: Position, connections: dict[int, Connection]):
        self.launch = launch
        self.hosts = [launch.host] * launch.processes
        self._connections = connections
        self._numbers = itertools.count()
        self._workers: dict[int, Remote] = {}
        self._present = {*connections}
        self._hellos: queue.SimpleQueue[tuple[int, HostFacts | Unfit]] = queue.SimpleQueue()
        self._facts: list[HostFacts] = []
        self._threads = [threading.Thread(target=self._listen, args=(process,), daemon=True) for process in connections]
        for thread in self._threads:
            thread.start()

    def gather(self, mine: HostFacts) -> list[HostFacts]:
        """The facts of each process, in order. mine: those of this process.

        Raises UserError for a process that cannot measure, does not answer, or differs from this process.
        """
        by_process = {0: mine}
        while len(by_process) < self.launch.processes:
            try:
                process, hello = self._hellos.get(timeout=HELLO_LIMIT_S)
            except queue.Empty:
                late = min({*range(self.launch.processes)} - {*by_process})
                limit = f"within {HELLO_LIMIT_S:.0f} s."
                raise UserError(f"process {late} did not report its resources {limit}") from None
            if isinstance(hello, Unfit):
                raise UserError(f"process {process} (on {hello.host}): {hello.error}")
            by_process[process] = hello
        self._facts = [by_process[process] for process in range(self.launch.processes)]
        self.hosts = [facts.host for facts in self._facts]
        for process, facts in enumerate(self._facts):
            require_same(mine, facts, process)
        return self._facts

    def heard(self, limit_s: float) -> dict[int, HostFacts | Unfit]:
        """What each other process says about itself, as far as they do within the limit."""
        found: dict[int, HostFacts | Unfit] = {}
        deadline = time.monotonic() + limit_s
        while len(found) < len(self._connections):
            try:
                process, hello = self._hellos.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            found.setdefault(process, hello)  # one that is lost after its answer is missed by its workers
        return found

    def setups(self, setup: Setup, among: Sequence[int] = ()) -> list[Setup]:
        """The setup of each process of a worker; the first is on process 0. `client.setups` does the same on one host.

        among: the processes of the launch that take part; (): as many as the worker needs, from the first on.
        """
        count = self.launch.processes if setup.platform != "cpu" else setup.processes
        among = among or range(count)
        if len(among) == 1:
            return [setup]
        hosts = [self.hosts[process] for process in among]
        setups = []
        # Each worker is a world of its own, with its own coordination service on a free port of process 0's host.
        address = start.free_address("127.0.0.1" if len(set(self.hosts)) == 1 else self.launch.host)
        for number, process in enumerate(among):
            about = self._facts[process]
            here = setup.devices // len(among) * hosts.count(hosts[number])  # they share the cores of this host
            place = Position(
                address=address, processes=len(among), process=number, device=about.device, devices_here=here
            )
            setups.append(dataclasses.replace(setup, processes=len(among), world=place, order=about.order))
        return setups

    def start(self, process: int, setup: Setup) -> Remote:
        """Starts a worker on another process of the launch."""
        worker = Remote(self, process, next(self._numbers))
        self._workers[worker.number] = worker
        if process in self._present:
            self.tell(process, messages.Start(child=worker.number, setup=setup))
        else:
            worker.lost()
        return worker

    def tell(self, process: int, message: LaunchMessage) -> None:
        self._connections[process].send(message)

    def end(self, code: int) -> None:
        """Ends the other processes with this exit code."""
        for process in sorted(self._present):
            self.tell(process, Exit(code=code))
        for thread in self._threads:  # a connection that is closed too early would lose the message
            thread.join(END_LIMIT_S)
        for connection in self._connections.values():
            connection.close()

    def _listen(self, process: int) -> None:
        """Passes on what a host sends until its connection ends."""
        while (message := self._connections[process].read()) is not None:
            if isinstance(message, HostFacts | Unfit):
                self._hellos.put((process, message))
            elif isinstance(message, Answered | Ended):
                self._workers[message.child].hear(message)
                if isinstance(message, Ended):  # else it and its pipe would live as long as the launch
                    del self._workers[message.child]
        # The link itself ended, so nobody can be reached any more.
        self._present.discard(process)
        # Wakes whoever waits for this process, in `gather` or in `end`.
        lost = Unfit(error="it was lost before it reported its resources.", host=self.hosts[process])
        self._hellos.put((process, lost))
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
        # A real pipe, so that `child.ready` can wait for local and remote workers with one selector. It gets one byte
        # for each answer: a whole answer may not fit, and the thread that hears this worker hears others, too.
        self._answers: queue.SimpleQueue[Fields] = queue.SimpleQueue()
        reading, self._writing = os.pipe()
        super().__init__(reading)
        weakref.finalize(self, os.close, reading)  # not in `close`: a worker that was killed is not closed
        self.process, self.number = process, number
        self._followers = followers
        self._end: tuple[int, str] | None = None
        self._log = ""

    def read(self) -> Fields | None:
        return self._answers.get() if os.read(self.descriptor, 1) else None

    def hear(self, message: Answered | Ended) -> None:
        """Takes an answer, or the news of its end. A listening thread calls this."""
        if self._end is not None:  # it was given up already, and the pipe is closed
            return
        if isinstance(message, Answered):
            self._answers.put(message.answer)
            os.write(self._writing, b"\n")
            return
        self._end, self._log = (message.code, message.how), message.log
        os.close(self._writing)

    def lost(self) -> None:
        how = "is gone: its host, its launcher or the network ended"
        self.hear(Ended(child=self.number, code=1, how=how, log=""))

    @property
    def ended(self) -> bool:
        return self._end is not None

    def end(self) -> tuple[int, str]:
        """See `Child.end`. Only for a worker that has ended."""
        return self._end or (0, "did not end")

    def log_tail(self) -> str:
        return self._log

    def send(self, line: Fields) -> None:
        self._tell_child(messages.Send(child=self.number, line=line))

    def let_go(self) -> None:
        self._tell_child(messages.LetGo(child=self.number))

    def close(self) -> None:
        """Waits until it has ended, for 10 s, then kills it."""
        while not self.ended and ready([self], 10.0) and self.read() is not None:
            pass
        if not self.ended:
            self.kill()

    def kill(self) -> None:
        self._tell_child(messages.Kill(child=self.number))

    def _tell_child(self, message: LaunchMessage) -> None:
        if not self.ended:
            self._followers.tell(self.process, message)


def facts(launch: Position, machine: Machine, experiment: str, config: ConfigDict) -> HostFacts:
    """The facts of this process. machine: its manifest."""
    count = machine["devices"]
    one = machine["platform"] != "cpu" and launch.device is not None and launch.device < count
    return HostFacts(
        host=socket.gethostname(),
        order=tuple(machine["free_cores"]),
        cpu_quota=machine["cpu_quota"],
        device=launch.device if one and count > 1 else None,
        devices=messages.Devices(kind=machine["device_kind"], count=1 if one else count),
        versions={**machine["versions"], "python": machine["python"]},
        source=machine["source_sha256"],
        experiment=discovery.digest(experiment),
        config=flatten(config_lib.plain(config)),
    )


def all_hosts(followers: Followers, machine: Machine, experiment: str, config: ConfigDict) -> Machine:
    """The manifest of all hosts as one machine. machine: that of this host. Raises UserError if they differ."""
    return merged_machine(machine, followers.gather(facts(followers.launch, machine, experiment, config)))


def merged_machine(machine: Machine, processes: Sequence[HostFacts]) -> Machine:
    """The manifest of all hosts as one machine. machine: that of process 0; processes: the facts of each."""
    by_host: dict[str, list[HostFacts]] = {}
    for each in processes:
        by_host.setdefault(each.host, []).append(each)
    cores = 0
    for those in by_host.values():
        # Once for each host, because its processes may share cores, and up to the smallest quota among them.
        quotas = [int(each.cpu_quota) for each in those if each.cpu_quota is not None]
        cores += max(1, min([len({core for each in those for core in each.order}), *quotas]))
    devices = machine["devices"] if machine["platform"] == "cpu" else sum(each.devices.count for each in processes)
    return {**machine, "devices": devices, "cores": cores, "hosts": [each.host for each in processes]}


def require_same(mine: HostFacts, other: HostFacts, process: int) -> None:
    """Raises UserError if another process has other versions, source, settings or devices than process 0."""
    # As JSON, because the facts of another process came through it: a tuple of a config is a list there.
    here, there = (json.loads(json.dumps(dataclasses.asdict(each))) for each in (mine, other))
    for name, words in SAME.items():
        if here[name] == there[name]:
            continue
        a, b = (_text(each, others) for each, others in ((here[name], there[name]), (there[name], here[name])))
        raise UserError(
            f"the {words} of process 0 (on {mine.host}: {a}) and process {process} (on {other.host}: {b}) "
            "differ: start the same command with the same installation on all hosts."
        )


def _text(value: object, other: object) -> str:
    """The part of a value that is not in the other value."""
    if not isinstance(value, dict) or not isinstance(other, dict):
        return str(value)[:12] if isinstance(value, str) else str(value)
    differing = {name: each for name, each in value.items() if name not in other or other[name] != each}
    return ", ".join(f"{name} {each}" for name, each in sorted(differing.items())[:3]) or "nothing more"
