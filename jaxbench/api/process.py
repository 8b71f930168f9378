# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The command line in a child process, for the Python API: both of its sides.

The child writes as to a terminal. A notebook shows the last lines of that terminal while the child runs, and folds
them when it ends. Anywhere else, what the child writes goes to sys.stdout. The child stops, as at Ctrl-C, when its
stdin ends: when the caller is interrupted, and also when it is killed. So no measurement outlives its notebook.
"""

from __future__ import annotations

import codecs
import contextlib
import html
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.text import Text

from jaxbench import interrupts
from jaxbench.command_form import FORM
from jaxbench.errors import JaxbenchError, present

_REFUSED = 2  # the exit code after bad input
_CRASHED = 70  # after an exception that the command line does not explain; EX_SOFTWARE of sysexits.h
_EVERY_S = 0.5  # between two updates of a notebook's display: they take time on a core that may be measured
_LINES, _WIDTH = 30, 100  # of the terminal that the child writes to
_STOP_S = 60.0  # how long an interrupted child may take to stop
_TOKEN = re.compile(r"\x1b\[([\d;?]*)([A-Za-z])|(\n)|\r|([^\x1b\n\r]+)")


def call(words: Sequence[str], title: str, variables: Mapping[str, str] | None = None) -> tuple[int, Text]:
    """Runs `jaxbench WORDS` in a child process and shows its progress. Returns its exit code, 0 or 1, and its output.

    title: of the folded progress in a notebook. variables: more environment variables.

    Raises:
      JaxbenchError: the command refused its input, with the sentence that the command line prints, or it crashed.
      KeyboardInterrupt: this process was interrupted. The child has stopped and kept what it measured.
    """
    notebook = Console().is_jupyter
    # The child writes lines of _WIDTH. A narrower terminal would wrap them, and its cursor movements would go wrong.
    live = notebook or (sys.stdout.isatty() and shutil.get_terminal_size().columns >= _WIDTH)
    colours = {"FORCE_COLOR": "1", "TERM": "xterm-256color"} if live else {}
    unset = (FORM, "MPLBACKEND")  # messages in the form of this API; a kernel's backend draws into the notebook
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"PYTHONUTF8": "1", "COLUMNS": str(_WIDTH), "LINES": str(_LINES), **colours, **(variables or {})}
    view = _View(title, notebook=notebook)
    with tempfile.TemporaryFile() as errors:  # not a pipe, which would fill up and block the child
        child = subprocess.Popen(
            # -P: the caller's folder may hold a file named like a module of ours.
            [sys.executable, "-P", "-m", "jaxbench.api.process", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,  # an interrupt of the kernel's process group must reach it once, and through stdin
        )
        stdin, stdout = present(child.stdin), present(child.stdout)
        try:
            # Incremental, because a read may end within a character.
            decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
            while data := os.read(stdout.fileno(), 1 << 16):
                view.write(decode(data))
            code = child.wait()
        except KeyboardInterrupt:
            stdin.close()  # which stops the child as Ctrl-C would, so that it keeps what it measured
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_STOP_S)
            raise
        finally:
            child.kill()  # no effect if it has ended
            child.wait()
            stdin.close()
            stdout.close()
            view.end()
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    if code == _REFUSED and (sentences := re.findall("^jaxbench: (.*)", said, re.MULTILINE)):
        raise JaxbenchError(sentences[-1])
    if code not in (0, 1):
        raise JaxbenchError(f"jaxbench {words[0]} ended with exit code {code}. {said[-4000:]}".strip())
    return code, view.screen.text()


class Screen:
    """The lines of a terminal, from the text that a program with a live display writes to it."""

    def __init__(self) -> None:
        self._lines, self._row, self._rest = [""], 0, ""

    def feed(self, text: str) -> None:
        """Takes text with the escape sequences that rich writes: colours, cursor up, erase line."""
        text = self._rest + text
        cut = text.rfind("\x1b")  # a read may end within an escape sequence, which then waits for the rest
        self._rest = text[cut:] if cut >= 0 and not _TOKEN.match(text, cut) else ""
        for match in _TOKEN.finditer(text.removesuffix(self._rest)):
            number, command, newline, written = match.groups()
            if newline:
                self._row += 1
                self._lines += [""] * (self._row == len(self._lines))
            elif command == "A":
                self._row = max(0, self._row - int(number or 1))
            elif command == "K":
                self._lines[self._row] = ""
            elif written or command == "m":
                self._lines[self._row] += match[0]

    def text(self, last: int = 0) -> Text:
        """What the terminal shows. last: only this number of lines, from the last one that is not empty."""
        lines = "\n".join(self._lines).rstrip().split("\n")
        return Text.from_ansi("\n".join(lines[-last:]), no_wrap=True)


class _View:
    """Shows a screen in the output of the notebook's cell. Elsewhere, what is written goes to sys.stdout."""

    def __init__(self, title: str, *, notebook: bool) -> None:
        self.screen, self._title, self._handle, self._folded = Screen(), title, None, False
        self._begun, self._shown = time.monotonic(), 0.0
        if notebook:
            from IPython.display import display

            self._handle = display(self, display_id=True)

    def write(self, text: str) -> None:
        self.screen.feed(text)
        if self._handle is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        elif time.monotonic() - self._shown >= _EVERY_S:
            self._shown = time.monotonic()
            self._handle.update(self)

    def end(self) -> None:
        if self._handle is not None:
            self._title, self._folded = f"{self._title}: {time.monotonic() - self._begun:.0f} s", True
            self._handle.update(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The last lines of the screen; in the end, the title, which unfolds to all of them."""
        if not self._folded:
            return self.screen.text(last=_LINES)._repr_mimebundle_((), ())
        text, title = self.screen.text()._repr_mimebundle_((), ())["text/html"], html.escape(self._title)
        return {"text/html": f"<details><summary>{title}</summary>{text}</details>", "text/plain": self._title}


def _stop_with_caller() -> None:
    while os.read(0, 1):  # not sys.stdin: its lock would be held when the interpreter shuts down
        pass
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Ends the child with a code of its own after an exception that no verb handles."""
    traceback.print_exception(kind, error, trace)
    sys.stderr.flush()
    os._exit(_CRASHED)  # Python's own code, 1, means that points failed


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a caller in the background may ignore it
    sys.excepthook = _crash
    interrupts.listen()
    threading.Thread(target=_stop_with_caller, daemon=True).start()
    from jaxbench import app

    app.main()
