# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM end a command at any moment with one sentence and exit code 130.

Python raises KeyboardInterrupt wherever the main thread is. Three places lose it. A callback of the garbage collector,
`__del__` and some C code print the exception and go on. An extension module that is being imported turns it into an
ImportError. A compiler in C++ does not return to Python for minutes. So:

- The exception is raised again, every AGAIN_S, until it is on its way out or the command has `heard` it. It waits until
  an extension module is loaded.
- After a signal, any exception that nobody catches ends the command as the signal would.
- If the main thread does not run Python code within STUCK_S, another thread ends the process. Nothing is lost: records
  are complete on disk, and workers end with the pipes of their parent.

This module is imported before all others, so it imports only what Python has loaded already, or loads in a millisecond.
"""

from __future__ import annotations

import atexit
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ExtensionFileLoader
from types import FrameType, TracebackType
from typing import Any, NoReturn

STOPPED = 130  # the exit code, as of a shell for a program that SIGINT ended
AGAIN_S = 0.05
STUCK_S = 5.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _State:
    """Of this process.

    Attributes:
      asked: a signal has arrived.
      heard: the command stops.
      over: the command has ended, and the interpreter shuts down.
      said: the sentence was written.
      spared: the next signal is for a handler of the caller, which may take its time.
      alive_s: when the main thread last ran a handler, by the monotonic clock.
      loading: how many extension modules are being loaded, one inside the other.
      sentence: returns what a stopped command says.
    """

    listening = asked = heard = over = said = spared = False
    alive_s, loading = 0.0, 0
    sentence: Callable[[], str]


_state = _State()
_state.sentence = lambda: "Stopped."


def listen() -> None:
    """From now on, signals end this process as described above. One that was ignored before stays ignored, as for a
    command in the background of a script."""
    if not _state.listening and threading.current_thread() is threading.main_thread():
        _state.listening = True
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _stop)
        signal.signal(signal.SIGALRM, _again)
        atexit.register(_ignore)  # the first to be registered is the last to run
        _watch()
        _spare_extensions()
        sys.excepthook, sys.unraisablehook = _uncaught(sys.excepthook), _unraisable(sys.unraisablehook)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # `replace` has blocked them


def heard() -> None:
    """The caller has caught the KeyboardInterrupt and stops the command, so it is not raised again."""
    _state.heard = True
    if _state.listening:
        signal.setitimer(signal.ITIMER_REAL, 0)


def spare(next_one: bool = True) -> None:
    """Whether the next signal is no stop at once: the caller has a handler for it, such as a training's, which saves
    first. The one after that is."""
    _state.spared = next_one


def pending() -> bool:
    """Whether a signal has arrived that no caller has `heard`."""
    return _state.asked and not _state.heard


def ends_with(sentence: Callable[[], str]) -> None:
    """sentence: returns what a stopped command says."""
    _state.sentence = sentence


@contextmanager
def ending() -> Iterator[None]:
    """The outermost context of a command: ends the process. A signal becomes one sentence and the exit code STOPPED."""
    code: Any = 0
    try:
        yield
    except KeyboardInterrupt:
        _state.asked, code = True, STOPPED  # also if code raised it by itself
    except SystemExit as end:
        code = end.code
    if pending():  # it may have been lost, or turned into a refusal
        heard()
        _say()
        code = STOPPED
    _state.over = True
    if _state.asked:  # libraries that were loaded by half may crash when the interpreter shuts down
        _leave(code)
    sys.exit(code)


def replace(program: str, words: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """`os.execve`. Signals wait until the new program listens."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    os.execve(program, [*words], {**environment})


def _stop(number: int, frame: FrameType | None) -> None:
    """Handles Ctrl-C and SIGTERM, and asks again while the exception is swallowed."""
    _state.asked, _state.alive_s = True, time.monotonic()
    if _state.over:
        if not _state.heard:
            _say()
        _leave()
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
    if not _state.loading:
        raise KeyboardInterrupt


def _again(number: int, frame: FrameType | None) -> None:
    """Raises a lost KeyboardInterrupt again. One that is being handled at this moment is on its way out."""
    _state.alive_s = time.monotonic()
    error = sys.exception()
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    if error is None and pending() and not _state.loading:
        raise KeyboardInterrupt


def _ignore() -> None:
    """The command has ended with its own exit code, and Python has no handlers while it tears down its modules."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _spare_extensions() -> None:
    """No KeyboardInterrupt is raised while an extension module is loaded: several crash, or report another error."""
    for name in ("create_module", "exec_module"):
        load = getattr(ExtensionFileLoader, name)

        @functools.wraps(load)
        def whole(*arguments: Any, load: Callable[..., Any] = load) -> Any:
            _state.loading += 1
            try:
                return load(*arguments)
            finally:
                _state.loading -= 1

        setattr(ExtensionFileLoader, name, whole)


def _watch() -> None:
    """Starts a thread that ends the process if a signal has arrived and the main thread does not react."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)  # written by the system's handler, before Python's

    def wait() -> None:
        while data := os.read(read, 64):
            for _ in filter(SIGNALS.__contains__, data):
                _state.asked, _state.spared = _state.asked or not _state.spared, False
            while pending():
                time.sleep(STUCK_S)
                if pending() and time.monotonic() - _state.alive_s > STUCK_S:
                    _say()
                    _leave()

    threading.Thread(target=wait, name="interrupts", daemon=True).start()


def _say() -> None:
    """Prints once that the command was stopped."""
    if not _state.said:
        _state.said = True
        with suppress(OSError, ValueError):  # nobody reads any more
            sys.stdout.flush()
            os.write(1, f"{_state.sentence()}\n".encode(errors="replace"))


def _leave(code: int = STOPPED) -> NoReturn:
    """Ends the process without running handlers that could block."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _uncaught(before: Callable[..., Any]) -> Callable[..., Any]:
    """The hook for uncaught exceptions: after a stop it prints no traceback."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if _state.asked:
            _say()
            _leave()
        before(kind, error, trace)

    return hook


def _unraisable(before: Callable[..., Any]) -> Callable[..., Any]:
    """The hook for exceptions in destructors: it hides a stop."""

    def hook(about: Any) -> None:
        if not (_state.asked and isinstance(about.exc_value, KeyboardInterrupt)):
            before(about)

    return hook
