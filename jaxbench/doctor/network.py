# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether several processes can find each other over the loop-back port, as a run of many processes has to."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import numpy as np

from jaxbench.doctor.child import module
from jaxbench.doctor.finding import Finding

HOST = "127.0.0.1"
ECHOES = 200
_ADVICE = "Allow TCP on 127.0.0.1 (sandbox, firewall): several processes on one machine meet there."


def meet(port: int, limit_s: float = 20.0) -> None:
    """The child: connects, and returns each byte it gets until the other side closes."""
    with socket.create_connection((HOST, port), timeout=limit_s) as other:
        other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while byte := other.recv(1):
            other.sendall(byte)


def examine(limit_s: float = 20.0, command: list[str] | None = None) -> list[Finding]:
    """Opens a port, starts a child that connects to it, and times single bytes there and back.

    command: starts the child; the port is added to it.
    """
    name = "loop-back port"
    try:
        with socket.create_server((HOST, 0)) as server:
            port = server.getsockname()[1]
            child = subprocess.Popen(
                [*(command or module("jaxbench.doctor.network")), str(port)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                echoes = _echoes(server, limit_s)
            finally:
                child.kill()
                child.wait()
    except TimeoutError:
        said = f"A port opened on {HOST}, but no second process came to it within {limit_s:g} s."
        return [Finding(name, "bad", said, _ADVICE)]
    except OSError as error:
        return [Finding(name, "bad", f"No port on {HOST} can be used ({error.strerror or error}).", _ADVICE)]
    middle = float(np.median(echoes))
    said = f"Two processes met on port {port} of {HOST}; a byte is there and back in {1e6 * middle:.0f} us."
    return [Finding(name, "good", said, "", {"round_trip_s": middle})]


def _echoes(server: socket.socket, limit_s: float) -> list[float]:
    """Seconds of each byte there and back. Raises OSError, TimeoutError."""
    server.settimeout(limit_s)
    other, _ = server.accept()
    took = []
    with other:
        other.settimeout(limit_s)
        other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(ECHOES):
            start = time.perf_counter()
            other.sendall(b"x")
            if not other.recv(1):
                raise ConnectionError("the second process went away")
            took.append(time.perf_counter() - start)
    return took


if __name__ == "__main__":
    meet(int(sys.argv[1]))
