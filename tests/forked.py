# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A process that imports what the app's verbs import, once, and forks a process for each command of a test.

Every line on stdin is a command: the words after `jaxbench`, its environment, folder and files for its output. The
answers are two lines: its process id when it begins, and its exit code when it has ended.

The processes that a command starts, such as workers, are forks as well: of a copy of the command from before it ran.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import warnings
from typing import Any

IMPORTED = (
    *("jax", "optax", "flax.linen", "matplotlib.figure", "matplotlib.backends.backend_svg", "rich.progress"),
    *("jaxbench.app", "jaxbench.report.build", "jaxbench.sweep.run"),
    *("jaxbench.workloads", "jaxbench.processes.launch", "jaxbench.features.training.run"),
)


def become(asked: dict[str, Any]) -> None:
    """Turns this fork into the process of a command."""
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["cwd"])
    for descriptor, file in enumerate((os.devnull, asked["out"], asked["err"])):
        opened = os.open(file, os.O_RDWR)
        os.dup2(opened, descriptor)
        os.close(opened)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[0] = asked["cwd"]
    sys.argv = ["jaxbench", *asked["words"]]
    sys.orig_argv = asked["command"]  # what a training starts again as its worker


def serve() -> dict[str, Any]:
    """Returns in each fork, with its command; the process itself ends with its stdin."""
    with os.fdopen(os.dup(0), "rb") as requests:
        for line in requests:
            asked = json.loads(line)
            if not (pid := os.fork()):
                return asked
            os.write(1, b"%d\n" % pid)
            os.write(1, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


class Started(subprocess.Popen):
    """A child process; a fork if it runs a module of ours, `python -P -m jaxbench.worker`."""

    nursery: socket.socket
    lock = threading.Lock()

    def _execute_child(  # type: ignore[override]
        self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any, env: Any, *more: Any
    ) -> None:
        ends, new_session, variables = more[3:9], more[14], env or {**os.environ}
        ours = list(args[:3]) == [sys.executable, "-P", "-m"] and not (cwd or new_session)
        # Python and JAX have read these.
        changed = {name for name, _ in variables.items() ^ os.environ.items() if name.startswith(("JAX_", "PYTHON"))}
        if not ours or changed - {"PYTHONUNBUFFERED"}:
            return super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *more)
        streams = [end if end >= 0 else own for own, end in enumerate((ends[0], ends[3], ends[5]))]
        asked = {"words": [*map(str, args[3:])], "environment": variables, "kept": [*pass_fds]}
        with self.lock:
            socket.send_fds(self.nursery, [json.dumps(asked).encode()], [*streams, *pass_fds])
            self.pid = int(self.nursery.recv(64))
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]


SUBREAPER = 36  # prctl(2): the parent of processes that lose theirs


def nurse(connection: socket.socket) -> None:
    """Forks a process for each message, a child of the process that asked. Returns in the fork, to run its module."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 16)
        if not message:
            os._exit(0)
        (ended, told), middle = os.pipe(), os.fork()
        if not middle:
            if pid := os.fork():  # it loses its parent, and becomes a child of the subreaper
                os.write(told, b"%d" % pid)
                os._exit(0)
            for each in (connection.detach(), ended, told):
                os.close(each)
            return become_module(json.loads(message), descriptors)
        os.waitpid(middle, 0)
        connection.send(os.read(ended, 64))
        for each in (*descriptors, ended, told):
            os.close(each)


def become_module(asked: dict[str, Any], descriptors: list[int]) -> None:
    """Turns this fork into the process of a module. descriptors: of its streams, and of those that it keeps."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(asked["environment"])
    # Above all numbers in use, so that none of the copies below closes another.
    copies = [fcntl.fcntl(each, fcntl.F_DUPFD, 500) for each in descriptors]
    for each in descriptors:
        os.close(each)
    for number, each in zip((0, 1, 2, *asked["kept"]), copies, strict=True):
        os.dup2(each, number)
        os.close(each)
    sys.stdin = open(0, closefd=False)
    del sys.path[0]
    module, *words = asked["words"]
    sys.orig_argv = [sys.executable, "-P", "-m", module, *words]
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit()


def with_nursery() -> None:
    """From here on, `subprocess.Popen` is `Started`."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    if not os.fork():
        mine.close()
        nurse(its)
    its.close()
    Started.nursery = mine
    subprocess.Popen = Started  # type: ignore[misc]


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    os.fsync = lambda descriptor: None  # as in conftest.py
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # pytest ends this process
    # NumPy's idle threads are no danger to a fork, and no backend of jax has been started here.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    command = serve()
    become(command)
    if sys.platform.startswith("linux"):
        with_nursery()
    from jaxbench import app
    from jaxbench.report import build
    from jaxbench.report.drawing import canvas

    canvas.FORMATS = ("svg",)
    if not command["drawn"]:
        build.pictures = lambda run: []
    app.main()
