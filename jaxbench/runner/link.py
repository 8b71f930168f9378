# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The relay process that connects one process of a launch with the others, through JAX's coordination service.

It is a child of the app, because JAX ends a process when its coordination service is gone. So the app survives, and
reports what has happened. The relay follows the app's lines on stdin, and ends when stdin does. The first line is
{"address", "processes", "process"}. Its own first line on stdout is {"joined": true}.

The relay of process 0 carries messages: {"to": p, "message": ...} from the app, {"from": p, "message": ...} to the app,
or {"from": p, "lost": true} when there was no message from process p for LOST_S. The relay of another process takes one
line from its app, {"hello": ..., "experiment": ..., "logs": a folder}. Then it follows process 0, and at the end sends
{"exit": code} to its app. The commands of process 0 are:

    {"do": "start", "child": c, "setup": ...}      starts a worker; its answers are sent as {"child": c, "answer": ...},
                                                   its end as {"child": c, "ended": code, "how": ..., "log": ...}
    {"do": "send", "child": c, "line": ...}        a request to a worker
    {"do": "let_go" | "kill", "child": c}          see `child.Child`
    {"do": "exit", "code": n}                      ends with this exit code
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from jaxbench.machine import source
from jaxbench.machine.launch import JOIN_LIMIT_S
from jaxbench.runner.child import Child
from jaxbench.runner.worker import follow

BEAT_S, LOST_S = 3.0, 15.0  # each process sends a beat every BEAT_S; LOST_S outlasts a short network failure
LONGEST_S = 7 * 24 * 3600.0  # between two requests of process 0
SERVICE_LOST_S = 30  # then JAX ends the link of a process that cannot reach the service


class Channel:
    """Messages between process 0 and each other process, in order, as keys of the coordination service."""

    def __init__(self, address: str, processes: int, process: int):
        """Waits for all processes. JAX ends this process if one of them does not join within JOIN_LIMIT_S."""
        from jax._src.lib import _jax  # no public name: `jax.distributed` would join the devices as well

        self.process = process
        if process == 0:
            # recoverable: the service does not end all processes when one is lost
            about: dict[str, Any] = {"heartbeat_timeout": SERVICE_LOST_S, "recoverable": True}
            self._service = _jax.get_distributed_runtime_service(address, processes, **about)
        self._client = _jax.get_distributed_runtime_client(
            address, process, init_timeout=JOIN_LIMIT_S, heartbeat_timeout=SERVICE_LOST_S, shutdown_on_destruction=False
        )
        self._client.connect()
        self._lock = threading.Lock()
        self._sent: dict[int, Iterator[int]] = {}
        self._taken: dict[int, Iterator[int]] = {}

    def send(self, to: int, message: dict[str, Any]) -> None:
        with self._lock:
            number = next(self._sent.setdefault(to, itertools.count()))
            self._client.key_value_set(f"jaxbench/{self.process}-{to}/{number}", json.dumps(message))

    def receive(self, sender: int, limit_s: float) -> dict[str, Any] | None:
        """The next message of `sender`; None if there is none within `limit_s`, and from then on always None."""
        import jax

        key = f"jaxbench/{sender}-{self.process}/{next(self._taken.setdefault(sender, itertools.count()))}"
        try:
            text = self._client.blocking_key_value_get(key, int(1000 * limit_s))
        except jax.errors.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise
            return None
        self._client.key_value_delete(key)  # the service would keep every message in memory
        return json.loads(text)


def lead(channel: Channel, processes: int, requests: Iterator[str], answers: TextIO) -> None:
    """Relays the app's messages to the other processes, and their messages to the app."""
    lock = threading.Lock()

    def listen(process: int) -> None:
        while (message := channel.receive(process, LOST_S)) is not None:
            if "beat" not in message:
                with lock:
                    _say(answers, {"from": process, "message": message})
        with lock:
            _say(answers, {"from": process, "lost": True})

    for process in range(1, processes):
        threading.Thread(target=listen, args=(process,), daemon=True).start()
    for line in requests:
        asked = json.loads(line)
        channel.send(asked["to"], asked["message"])


def obey(channel: Channel, requests: Iterator[str], answers: TextIO) -> None:
    """Follows the commands of process 0, until it sends the exit code."""

    def beat() -> None:
        while True:
            time.sleep(BEAT_S)
            channel.send(0, {"beat": True})

    threading.Thread(target=beat, daemon=True).start()
    mine = json.loads(next(requests))
    channel.send(0, {"hello": mine["hello"]})
    children: dict[int, Child] = {}
    while (asked := channel.receive(0, LONGEST_S)) and asked["do"] != "exit":
        number = asked["child"]
        if asked["do"] == "start":
            setup = {**asked["setup"], "experiment": mine["experiment"]}  # its path on this host
            children[number] = Child(setup, Path(mine["logs"]) / f"child{number}")
            threading.Thread(target=_report, args=(channel, number, children[number]), daemon=True).start()
        elif asked["do"] == "send":
            children[number].send(asked["line"])
        elif asked["do"] == "let_go":
            children[number].let_go()
        else:
            children[number].kill()
    for child in children.values():
        child.kill()
    # first to the app: process 0 takes the service away as soon as it has the farewell, at which JAX ends this process
    _say(answers, {"exit": asked["code"] if asked else 1})
    channel.send(0, {"bye": True})


def _report(channel: Channel, number: int, child: Child) -> None:
    """Sends the answers of a child to process 0, and finally how it ended."""
    while (answer := child.read()) is not None:
        if answer.get("source") == source.HERE:
            del answer["source"]  # this copy is process 0's, wherever it lies here
        channel.send(0, {"child": number, "answer": answer})
    code, how = child.end()
    channel.send(0, {"child": number, "ended": code, "how": how, "log": child.log_tail()})


def _say(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # a launcher may send it to all its processes
        signal.signal(number, signal.SIG_IGN)  # the app decides what it means, and this ends with it
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the output of libraries must not mix with the answers
    requests = follow(sys.stdin)
    place = json.loads(next(requests))
    channel = Channel(place["address"], place["processes"], place["process"])
    _say(answers, {"joined": True})
    if place["process"] == 0:
        lead(channel, place["processes"], requests, answers)
    obey(channel, requests, answers)
    os._exit(0)  # without JAX's own farewell, which waits for all


if __name__ == "__main__":
    main()
