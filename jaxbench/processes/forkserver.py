# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forks worker processes from one that has imported JAX, which saves each of them two seconds of CPU time.

A fork is safe only while its parent has a single thread. Importing JAX starts none if libraries for linear algebra use
one thread, and a backend starts many, so the server has no backend. Where it finds more threads, it forks nothing.

A fork has the memory layout of its parent, and the layout is part of how processes differ. So each fork first moves
its heap and its mappings by a random distance, as the system does for a new program.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import mmap
import os
import random
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO

from absl import logging

from jaxbench.machine.manifest import ONE_THREAD

HEAP_BYTES, MAPPED_BYTES = 2**24, 2**30  # a fork moves its heap, and its later mappings, by less than this
_gaps: list[object] = []  # what moves them, kept until the process ends


class Forked:
    """A forked process, with the attributes of a `subprocess.Popen` with pipes that `child.Child` uses.

    The server waits for the process and writes its exit code into the pipe `status`.
    """

    def __init__(self, pid: int, stdin: int, stdout: int, status: int):
        self.pid, self.stdin, self.stdout = pid, os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        self._status = status
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises TimeoutExpired."""
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._status, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
            # Without a code the server was killed. The process has lost its pipes' other end only if this one dies.
            self.returncode = int(os.read(self._status, 64) or -signal.SIGKILL)
            os.close(self._status)
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class _Server:
    """The parent's side of one server. environment: of the server and its forks. modules: that it imports."""

    def __init__(self, environment: Mapping[str, str], modules: Sequence[str]):
        self._socket, its = socket.socketpair()
        self._answers = self._socket.makefile("rb")
        command = [sys.executable, "-P", "-m", __name__, str(its.fileno()), *modules]
        with its:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                pass_fds=[its.fileno()],
            )
        self._threads: int | None = None  # None: it may still import, and its answer is read at the first fork

    def fork(self, module: str, stderr: int) -> Forked | None:
        """A process that runs `module`; None if a fork would not be safe."""
        if self._threads is None:
            self._threads = self._number()
            if self._threads != 1:
                logging.info("Workers start one by one: %d threads after the imports.", self._threads)
        if self._threads != 1:
            return None
        (in_, stdin), (stdout, out), (status, told) = os.pipe(), os.pipe(), os.pipe()
        try:
            socket.send_fds(self._socket, [module.encode()], [in_, out, stderr, told])
            pid = self._number()
        except OSError:  # the server has ended
            pid = 0
        # Theirs in any case: with a copy of the other end here, neither side would see that the other has gone.
        for each in (in_, out, told, *(() if pid else (stdin, stdout, status))):
            os.close(each)
        return Forked(pid, stdin, stdout, status) if pid else None

    def _number(self) -> int:
        """The next answer of the server; 0 if it has ended."""
        return int(self._answers.readline() or 0)

    def close(self) -> None:
        self._answers.close()  # else the socket would stay open, and the server would not end
        self._socket.close()
        self._process.wait()


class ForkServers:
    """A server for each environment in which workers run. modules: that all workers import. Close it at the end."""

    def __init__(self, modules: Sequence[str]):
        self._modules = modules
        self._servers: dict[tuple[tuple[str, str], ...], _Server] = {}

    def start(self, module: str, environment: Mapping[str, str], stderr: IO[bytes]) -> Forked | None:
        """A process that runs `module`, such as "jaxbench.worker"; None where only a new program is safe."""
        if not sys.platform.startswith("linux"):  # elsewhere system libraries may have threads
            return None
        key = tuple(sorted(environment.items()))
        if key not in self._servers:
            self._servers[key] = _Server(environment, self._modules)
        return self._servers[key].fork(module, stderr.fileno())

    def close(self) -> None:
        while self._servers:
            self._servers.popitem()[1].close()


def main(connection: socket.socket, modules: Sequence[str]) -> None:
    """Imports the modules, and then forks a process for each message: the module to run, with four descriptors: its
    stdin, stdout and stderr, and where to write its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides what it means
    before = {name: os.environ[name] for name in ONE_THREAD if name in os.environ}
    os.environ.update(ONE_THREAD)
    for module in modules:
        importlib.import_module(module)
    for name in ONE_THREAD:  # workers see the user's values
        os.environ.pop(name)
    os.environ.update(before)
    gc.freeze()  # a collection in a fork would copy the pages of all these objects
    statuses: dict[int, int] = {}

    def reap(*_: object) -> None:
        with contextlib.suppress(ChildProcessError):  # no process is left
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:  # one signal may stand for several ends
                if (told := statuses.pop(ended[0], None)) is None:  # a child that an imported module has started
                    continue
                with contextlib.suppress(BrokenPipeError):  # the parent no longer asks
                    os.write(told, b"%d" % os.waitstatus_to_exitcode(ended[1]))
                os.close(told)

    signal.signal(signal.SIGCHLD, reap)
    connection.sendall(b"%d\n" % len(os.listdir("/proc/self/task")))
    while True:
        data, theirs, _, _ = socket.recv_fds(connection, 1024, 4)
        if not data:  # the parent has closed the socket, or has died
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until the process is known
        pid = os.fork()
        if not pid:
            connection.close()
            for each in (*statuses.values(), theirs.pop()):  # an open copy would hide the end of the server
                os.close(each)
            become(data.decode(), theirs)
            return
        statuses[pid] = theirs.pop()
        for each in theirs:
            os.close(each)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        connection.sendall(b"%d\n" % pid)


def become(module: str, streams: Sequence[int]) -> None:
    """Runs a module as `python -m` would, in a fork of the server. streams: its stdin, stdout and stderr."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, closefd=False)
    chance = random.SystemRandom(time.time_ns())
    # Neither touches the memory, so they cost none.
    _gaps.append(bytes(chance.randrange(HEAP_BYTES)))
    _gaps.append(mmap.mmap(-1, mmap.PAGESIZE * chance.randrange(1, MAPPED_BYTES // mmap.PAGESIZE), prot=0))
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
