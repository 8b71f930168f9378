# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A process that imports what the app's verbs import, once, and forks a process for each command of a test.

Every line on stdin is a command: the words after `jaxbench`, its environment, folder and files for its output. The
answers are two lines: its process id when it begins, and its exit code when it has ended.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import warnings
from typing import Any

IMPORTED = (
    *("jax", "optax", "flax.linen", "matplotlib.figure", "matplotlib.backends.backend_svg", "rich.progress"),
    *("jaxbench.app", "jaxbench.report.build", "jaxbench.report.build", "jaxbench.sweep.run"),
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


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # pytest ends this process
    # NumPy's idle threads are no danger to a fork, and no backend of jax has been started here.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    command = serve()
    become(command)
    from jaxbench import app
    from jaxbench.report import build
    from jaxbench.report.drawing import canvas

    canvas.FORMATS = ("svg",)
    if not command["drawn"]:
        build.pictures = lambda run: []
    app.main()
