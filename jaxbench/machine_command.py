# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench machine`: the runs that say what a machine can do, and its card, which later runs are compared with."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.analysis import machine_card
from jaxbench.errors import NothingToMeasure
from jaxbench.records.store import RunFolder, write_atomic, write_json
from jaxbench.report.build import Outcome

# In the order they run: the quick ones first, so that something is known early.
EXPERIMENTS = ("dispatch", "transfer", "stream", "matmul", "collectives")
CARD = "machine.json"


def machine(workdir: Path, *, preset: str, console: Console) -> Outcome:
    """Measures what `workdir` lacks, writes its card there and beside it, and the page. Raises UserError."""
    from jaxbench.machine import start
    from jaxbench.report import build
    from jaxbench.report import machine as machine_page
    from jaxbench.runner import run as runner

    start.only_cpu_here()
    workdir.mkdir(parents=True, exist_ok=True)
    folders = []
    for name in EXPERIMENTS:
        found = discovery.load_preset("machine" if preset == "auto" else preset)
        config = config_lib.compose(name, discovery.load_experiment(name), found)
        try:
            runner.run(name, config, workdir / name, console)
        except NothingToMeasure as error:  # a fact about the machine, and not a failure
            console.print(f"{name}: {error}", style="yellow", soft_wrap=True)
            continue
        folders.append(workdir / name)
    card = machine_card.build([RunFolder(folder) for folder in folders])
    write_json(workdir / CARD, card)
    if preset in ("auto", "machine"):  # the numbers of another preset are not for comparing with
        write_json(workdir.parent / CARD, card)
    for folder in folders:
        adopt(folder, console)
        build.write(folder)
    return machine_page.write(workdir, folders, card, console)


def adopt(workdir: Path, console: Console) -> None:
    """Copies the card beside the run folder into it, if it is this machine's and the run has none yet."""
    card, kept = workdir.resolve().parent / CARD, workdir / CARD
    if kept.exists() or not card.exists():
        return
    found = machine_card.read(card)
    assert found is not None  # it exists
    manifest = RunFolder(workdir).manifest()
    if why_not := machine_card.matches(found, manifest):
        console.print(f"{card} is not used: {why_not}", style="yellow", soft_wrap=True)
        return
    made, here = (facts.get("versions", {}).get("jaxlib") for facts in (found["machine"], manifest))
    if made != here:
        said = f"{card} was made with jaxlib {made}, this run with {here}: 'jaxbench machine' makes a new one."
        console.print(said, style="yellow", soft_wrap=True)
    write_atomic(kept, card.read_bytes())
