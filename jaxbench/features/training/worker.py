# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A worker of a training in several processes.

Its first line on stdin is the setup of `train.take`, with "order": the cores to take first, "beat_s", and "shown":
{"width", "terminal"} of the console of the first process. Further lines on stdin: {"stop": the name of a signal}. The
process ends when stdin does. Lines on stdout:

    {"beat": {"kind", "ticks", "step"}}         every beat_s: what it is doing, as `ledger.TimeLedger` knows it
    {"say": text}                               from the first process, to be printed
    {"done": exit code}                         the training has ended; the process waits until stdin ends
    {"failed": {"reason", "detail", "own", "user"}}  own: the loss of another process does not explain it; user: a
                                                UserError
    {"concurrent_collectives": n}               it needs threads for n collectives
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from jaxbench.errors import MoreCollectives, UserError
from jaxbench.machine.cores import pin_to_cores
from jaxbench.processes.server import follow

if TYPE_CHECKING:  # it imports jax, and the cores are chosen before that
    from jaxbench.features.training.train import ProcessRole


class Sender:
    """Sends lines, from any thread."""

    def __init__(self, answers: TextIO):
        self._answers, self._lock = answers, threading.Lock()

    def __call__(self, **message: Any) -> None:
        with self._lock:
            self._answers.write(json.dumps(message) + "\n")
            self._answers.flush()


class Said(io.StringIO):
    """A file that sends the text written to it."""

    def __init__(self, send: Sender):
        super().__init__()
        self._send = send

    def write(self, text: str) -> int:
        self._send(say=text)
        return len(text)


def serve(requests: Iterator[str], send: Sender) -> None:
    setup = json.loads(next(requests))
    training = Training()
    threading.Thread(target=_beat, args=(send, training, setup["beat_s"]), daemon=True).start()
    if setup["platform"] == "cpu":  # before anything imports jax: threads inherit the cores of the one that makes them
        here = (setup.get("world") or {}).get("devices_here", setup["devices"])
        pin_to_cores(here, setup["order"])
    try:
        from rich.console import Console

        from jaxbench.features.training.loop import Stop
        from jaxbench.features.training.train import ProcessRole, code_of, take

        role = training.role = ProcessRole(stop=Stop())
        threading.Thread(target=_listen, args=(requests, role.stop), daemon=True).start()
        shown = setup["shown"]
        console = Console(file=Said(send), width=shown["width"], force_terminal=shown["terminal"], markup=False)
        send(done=code_of(take(setup, console, role)))
    except MoreCollectives as error:
        send(concurrent_collectives=error.count)


def _failure(error: BaseException) -> dict[str, Any]:
    reason = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, UserError):
        reason = f"{type(error).__name__}: {reason}"
    detail = "".join(traceback.format_exception(error))
    # These may follow from the loss of another process; any other exception is this process's own fault.
    own = type(error).__name__ not in ("JaxRuntimeError", "XlaRuntimeError", "TimeoutError")
    return {"reason": reason[:1000], "detail": detail[-8000:], "own": own, "user": isinstance(error, UserError)}


@dataclasses.dataclass
class Training:
    """role: what this process does in the training, once jax is imported."""

    role: ProcessRole | None = None

    def beat(self) -> dict[str, Any]:
        ledger = self.role.ledger if self.role else None
        if ledger is None:
            return {"kind": "start", "ticks": 0, "step": 0}
        return {"kind": ledger.kind, "ticks": ledger.ticks, "step": ledger.step}


def _beat(send: Sender, training: Training, beat_s: float) -> None:
    while True:
        send(beat=training.beat())
        time.sleep(beat_s)


def _listen(requests: Iterator[str], stop: Any) -> None:
    for line in requests:
        stop.ask(json.loads(line)["stop"])


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # they reach the whole terminal or job; the parent decides
        signal.signal(number, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the output of libraries must not mix with the answers
    send = Sender(answers)

    def end(*raised: Any) -> None:
        """Waits until stdin ends, so that the others see no closed connection and JAX does not wait for all."""
        if raised:
            send(failed=_failure(raised[1]))
        threading.Event().wait()

    sys.excepthook = end  # any exception of a model or a compiler ends the training, and its message names it
    serve(follow(sys.stdin), send)
    end()


if __name__ == "__main__":
    main()
