# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench run` or `train` as one process of a launch: process 0 measures with all processes; the others follow it."""

from __future__ import annotations

import contextlib
import socket
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ml_collections import ConfigDict

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.errors import UserError
from jaxbench.machine.launch import Launch
from jaxbench.records.documents import flatten
from jaxbench.runner import crew as crew_lib
from jaxbench.runner.crew import Crew
from jaxbench.runner.studies import STUDIES


def take_part(
    launch: Launch,
    lead: Callable[[Crew], int],
    say: Callable[[], dict[str, Any]],
    experiment: str,
    alone: Callable[[], AbstractContextManager[None]],
) -> int:
    """Leads the launch or follows process 0. Returns the exit code of process 0. Raises UserError.

    say: returns the facts of this process; see `mine`. experiment: its path on this host. alone: a context that holds
    the machine's lock.
    """
    with tempfile.TemporaryDirectory(prefix="jaxbench-launch-") as folder:
        link = crew_lib.join(launch, folder)
        if launch.process:
            with contextlib.ExitStack() as stack:
                try:
                    stack.enter_context(alone())
                    hello = say()
                except UserError as error:  # process 0 says it, and ends all
                    hello = {"error": str(error), "host": socket.gethostname()}
                return crew_lib.follow(launch, link, {"hello": hello, "experiment": experiment, "logs": folder})
        crew, code = Crew(launch, link), 2
        try:
            with alone():
                code = lead(crew)
            return code
        except KeyboardInterrupt:
            code = 130
            raise
        finally:
            crew.end(code)


def mine(launch: Launch, machine: dict[str, Any], experiment: str, config: ConfigDict) -> dict[str, Any]:
    """The facts of this process. machine: its manifest."""
    digest, settings = discovery.digest(experiment), flatten(config_lib.plain(config))
    return crew_lib.facts(machine, launch, socket.gethostname(), experiment=digest, config=settings)


def gathered(crew: Crew, machine: dict[str, Any], experiment: str, config: ConfigDict) -> dict[str, Any]:
    """The manifest of all hosts as one machine. machine: that of this host. Raises UserError if they differ."""
    return crew_lib.merged_machine(machine, crew.gather(mine(crew.launch, machine, experiment, config)))


def require_possible(config: ConfigDict) -> None:
    """Raises UserError for an experiment with a search, which only a single process can do."""
    if any(study.asked(config_lib.plain(config)) for study in STUDIES):
        raise UserError(
            f"what '{config.experiment}' searches for is found by one process: start it without a launcher, or choose "
            "another experiment."
        )
