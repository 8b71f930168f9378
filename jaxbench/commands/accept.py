# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench accept`: is this machine, or each host of a launch, as it should be?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags
from rich.console import Console

from jaxbench import jax_import
from jaxbench.errors import UserError
from jaxbench.verbs import FLAGS, Verb

if TYPE_CHECKING:
    from jaxbench.features.accept.hosts import Hosts
    from jaxbench.features.accept.session import Plan
    from jaxbench.machine.position import Position

MARGIN = 0.05  # unless --margin says otherwise

flags.DEFINE_string("against", "", "accept: what devices are compared with: card:FILE, forecast or fleet; '' for all.")
flags.DEFINE_string(
    "probes",
    "",
    "accept: what is measured, any of product, triad, copy, start, gpt, heat, pairs, allreduce, cores, input, hosts, "
    "doctor and software; '' for all but input.",
)

VERB = Verb(
    usage="accept",
    help="is this rented machine as fast, and as right, as it should be? 0 pass, 1 fail, 3 cannot tell",
    group="measure",
    examples=(
        "accept",
        "accept --margin=3% --against=card:results/good/accept.json",
        "accept --probes=product,triad,doctor --budget_s=20",
    ),
    flags=(
        *("margin", "against", "probes", "budget_s", "devices", "fault_timeout", "workdir", "share_machine"),
        *("coordinator", "processes", "process"),
    ),
)


def check() -> None:
    """Raises UserError for flags that are refused before anything is measured."""
    _plan(Path())
    _devices()


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    """This machine alone."""
    jax_import.require("jaxbench accept")
    plan = _plan(workdir)
    from jaxbench.features.accept import hosts

    with hosts.here(_devices()) as here:
        return _test(here, plan, console)


def launched(
    position: Position, workdir: Path, console: Console, alone: Callable[[], AbstractContextManager[None]]
) -> int:
    """As one process of a launch."""
    plan, devices = _plan(workdir), _devices()
    from jaxbench.features.accept import hosts

    return hosts.take_part(position, lambda found: _test(found, plan, console), alone, devices, plan.limit_s)


def _test(hosts: Hosts, plan: Plan, console: Console) -> int:
    """Measures, writes the results and the page, and returns the exit code."""
    from jaxbench.features.accept import files, page, session

    files.begin(plan.folder)
    result = session.accept(hosts, plan, console)
    files.write(plan.folder, result)
    page.write(plan.folder, result, console)
    return result.exit_code


def _plan(workdir: Path) -> Plan:
    """The test that the flags ask for. Raises UserError."""
    from jaxbench.features.accept import probes, reference_rates
    from jaxbench.features.accept.session import Plan

    margin = FLAGS.margin if FLAGS["margin"].present else MARGIN
    if not 0 < margin < 1:
        raise UserError(f"--margin={margin:g} must be between 0 and 1: use 5% or 0.05.")
    budget = FLAGS.budget_s if FLAGS["budget_s"].present else None
    if budget is not None and not budget > 0:
        raise UserError(f"--budget_s={budget:g} leaves no time for a round: use seconds, such as 40.")
    if not FLAGS.fault_timeout >= 1:
        raise UserError(f"--fault_timeout={FLAGS.fault_timeout:g} is too short: use seconds, at least 1, such as 60.")
    return Plan(
        probes=probes.chosen(FLAGS.probes),
        margin=margin,
        references=reference_rates.References(reference_rates.asked(FLAGS.against)),
        folder=workdir,
        budget_s=budget,
        limit_s=FLAGS.fault_timeout,
    )


def _devices() -> int | None:
    """How many devices of a host are tested; None: all of them. Raises UserError."""
    if not FLAGS["devices"].present:
        return None
    from jaxbench.features.launch import job

    return job.devices_per_node(FLAGS.devices)[1]
