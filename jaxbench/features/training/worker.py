# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A worker of a training in several processes.

Its first line on stdin is the `Setup`; further lines are `StopBy`. The process ends when stdin does. It writes `Beat`s,
what process 0 prints, and how the training ended, as JSON lines on stdout. After that it waits until stdin ends.
"""

from __future__ import annotations

import io
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxbench.errors import present
from jaxbench.processes.messages import Failed, Message, Setup, message_of
from jaxbench.processes.server import Answers, failed, follow, pin

if TYPE_CHECKING:  # they import jax, and the cores are chosen before that
    from jaxbench.features.training.loop import Stop
    from jaxbench.features.training.train import ProcessRole


class StopBy(Message):
    """From the parent: end after a step that all processes agree on. name: of a signal."""

    name: str


class Beat(Message):
    """What the process is doing, as `folder.TimeLedger` knows it, so that a hang can be told from long work."""

    kind: str
    ticks: int
    step: int


class Say(Message):
    """Text of process 0, to be printed."""

    text: str


class Done(Message):
    """The training has ended."""

    code: int


NEWS: tuple[type[Message], ...] = (Beat, Say, Done, Failed)


class Said(io.StringIO):
    """A file that sends the text written to it."""

    def __init__(self, send: Answers):
        super().__init__()
        self._send = send

    def write(self, text: str) -> int:
        self._send(Say(text=text))
        return len(text)


def serve(lines: Iterator[str], send: Answers) -> None:
    setup = message_of(json.loads(next(lines)), [Setup])
    train, training = present(setup.train), Training()
    # From the first line on, so that a process that hangs while it imports or compiles is noticed, too.
    threading.Thread(target=_send_beats, args=(send, training, train.beat_s), daemon=True).start()
    pin(setup)
    from rich.console import Console

    from jaxbench.features.training.loop import Stop
    from jaxbench.features.training.train import ProcessRole, code_of, take

    role = training.role = ProcessRole(stop=Stop())
    threading.Thread(target=_listen_for_stop, args=(lines, role.stop), daemon=True).start()
    console = Console(file=Said(send), width=train.width, force_terminal=train.terminal, markup=False)
    send(Done(code=code_of(take(setup, console, role))))


@dataclass
class Training:
    """role: what this process does in the training, once jax is imported."""

    role: ProcessRole | None = None

    def beat(self) -> Beat:
        ledger = self.role.ledger if self.role else None
        if ledger is None:
            return Beat(kind="start", ticks=0, step=0)
        return Beat(kind=ledger.kind, ticks=ledger.ticks, step=ledger.step)


def _send_beats(send: Answers, training: Training, beat_s: float) -> None:
    while True:
        send(training.beat())
        time.sleep(beat_s)


def _listen_for_stop(lines: Iterator[str], stop: Stop) -> None:
    for line in lines:
        stop.ask(message_of(json.loads(line), [StopBy]).name)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # they reach the whole terminal or job; the parent decides
        signal.signal(number, signal.SIG_IGN)
    send = Answers()

    def end(error: BaseException | None = None) -> None:
        """Waits until stdin ends, so that the others see no closed connection and JAX does not wait for all."""
        if error is not None:
            send(failed(error))
        threading.Event().wait()

    # Any exception of a model or a compiler ends the training, and its message names it.
    sys.excepthook = lambda kind, error, trace: end(error)
    serve(follow(sys.stdin), send)
    end()


if __name__ == "__main__":
    main()
