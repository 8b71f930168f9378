# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench machine`: measures a machine's limits and writes its profile, with which later runs are compared."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.analysis import machine_profile
from jaxbench.core.store import RunFolder, write_atomic, write_json
from jaxbench.errors import NothingToMeasure, present
from jaxbench.report.build import RunOutcome
from jaxbench.statistics import looks

# In the order in which they run: quick experiments first, for early results.
EXPERIMENTS = ("dispatch", "transfer", "stream", "matmul", "collectives")


def machine(workdir: Path, *, preset: str, console: Console) -> RunOutcome:
    """Measures the experiments that `workdir` does not have yet. Writes the page and the profile into it, and the
    profile also into its parent folder. Raises UserError."""
    from jaxbench.features.machine_profile import page as machine
    from jaxbench.machine import start
    from jaxbench.report import build
    from jaxbench.sweep import run as runner

    start.only_cpu_here()
    workdir.mkdir(parents=True, exist_ok=True)
    folders = []
    for name in EXPERIMENTS:
        module = discovery.load_preset("machine" if preset == "auto" else preset)
        config = config_lib.compose(name, discovery.load_experiment(name), module)
        try:
            runner.run(name, config, workdir / name, console, looks.look)
        except NothingToMeasure as error:  # a property of the machine, not a failure
            console.print(f"{name}: {error}", style="yellow", soft_wrap=True)
            continue
        folders.append(workdir / name)
    profile = machine_profile.build([RunFolder(folder) for folder in folders])
    write_json(workdir / machine_profile.NAME, profile)
    if preset in ("auto", "machine"):  # numbers of other presets must not become the reference
        write_json(workdir.parent / machine_profile.NAME, profile)
    # After all runs: a kernel's share of its roof needs the peaks that another of them has measured.
    for folder in folders:
        adopt(folder, console)
        build.write(folder)
    return machine.write(workdir, folders, profile, console)


def add_links(workdir: Path, console: Console) -> None:
    """Adds the links between processes or hosts from a run of collectives to the profile in the parent folder.

    If there is no profile, these links become one. A profile of another machine, such as a single host of several, is
    not changed.
    """
    manifest = RunFolder(workdir).manifest()
    if manifest["plan"].get("view") != "collectives":
        return
    made = machine_profile.build([RunFolder(workdir)])
    if not any((link["group_processes"] or 1) > 1 for link in made["links"]):  # `jaxbench machine` measures the others
        return
    target = workdir.resolve().parent / machine_profile.NAME
    before = machine_profile.read(target)
    if before is not None and (mismatch := machine_profile.matches(before, manifest)):
        console.print(f"{target} stays without these links: {mismatch}", style="yellow", soft_wrap=True)
        return
    write_json(target, made if before is None else machine_profile.with_links(before, made))


def adopt(workdir: Path, console: Console) -> None:
    """Copies the profile in the parent folder into the run folder, if it is of this machine and the run has none."""
    source, target = workdir.resolve().parent / machine_profile.NAME, workdir / machine_profile.NAME
    if target.exists() or not source.exists():
        return
    profile = present(machine_profile.read(source))  # it exists
    manifest = RunFolder(workdir).manifest()
    if mismatch := machine_profile.matches(profile, manifest):
        console.print(f"{source} is not used: {mismatch}", style="yellow", soft_wrap=True)
        return
    before, now = (facts.get("versions", {}).get("jaxlib") for facts in (profile["machine"], manifest))
    if before != now:
        message = f"{source} was made with jaxlib {before}, this run uses {now}: 'jaxbench machine' makes a new one."
        console.print(message, style="yellow", soft_wrap=True)
    write_atomic(target, source.read_bytes())
