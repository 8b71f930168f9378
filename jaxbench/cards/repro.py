# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench repro`: reruns a card's config and decides whether each point is within a margin of the card's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ml_collections import ConfigDict
from rich.console import Console
from rich.text import Text

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.cards import agreement, agreement_table, layout
from jaxbench.cards.layout import Card
from jaxbench.cards.rows import machine as machine_name
from jaxbench.errors import UserError, did_you_mean
from jaxbench.records import identity, model
from jaxbench.records.store import flatten
from jaxbench.statistics import looks
from jaxbench.verdicts import calibration, comparable
from jaxbench.verdicts.comparable import FinishedRun, NotComparable

NOT_COMPARABLE = 3


def repro(
    card_path: Path, workdir: Path, console: Console, *, experiment: str = "", margin: float = agreement.MARGIN
) -> int:
    """Reruns the card's config in `workdir` and compares. Continues an earlier run of that config in `workdir`.

    experiment: the file of the experiment, for an experiment outside jaxbench that has been moved.

    Returns:
      0 all within, 1 some outside, 2 inconclusive, 3 not comparable.

    Raises:
      UserError: the card is damaged, or this jaxbench does not know its config. A KeyboardInterrupt loses no rounds.
    """
    import jax

    from jaxbench.machine import manifest as manifest_lib
    from jaxbench.runner import run as runner

    card = layout.read(card_path)
    then = card.run()
    name = source(card, experiment)
    config, notes = config_of(card, name)
    jax.config.update("jax_platforms", "cpu")  # only workers may start accelerators
    here = manifest_lib.probe(str(config.mesh.platform))
    for sentence in (*other_machine(card, here), *_other_source(card, name), *notes):
        console.print(Text(sentence, style="yellow"), soft_wrap=True)
    runner.run(name, config, workdir, console, looks.look)
    return compare(card, then, workdir, console, margin)


def compare(card: Card, then: FinishedRun, workdir: Path, console: Console, margin: float = agreement.MARGIN) -> int:
    """Compares a finished run with the card and prints the table. then: the card's own run. Returns the exit code."""
    try:
        now = comparable.read(workdir)
    except NotComparable as error:
        console.print(Text(f"Not comparable: {error}", style="bold red"), soft_wrap=True)
        return NOT_COMPARABLE
    other = comparable.models(then, now)
    if {*other} - {"flops"}:  # a newer version may count the FLOPs of the same model differently
        differences = model.sentence(other, "in the card", "now")
        console.print(Text(f"Not comparable: the model differs ({differences}).", style="bold red"), soft_wrap=True)
        return NOT_COMPARABLE
    same = not identity.hardware(then.manifest, now.manifest)
    named = str(card.data["name"].get("experiment", ""))
    spreads = calibration.spread_of(then.manifest, named), calibration.spread_of(now.manifest, named)
    answers = agreement.agree(then, now, spreads, same_machine=same, margin=margin)
    agreement_table.show(card, answers, spreads, console, same_machine=same, margin=margin)
    for sentence in comparable.software(then, now):
        console.print(Text(f"A is the card, B this run. {sentence}.", style="dim"), soft_wrap=True)
    return agreement.exit_code(answers)


def source(card: Card, experiment: str = "") -> str:
    """The card's experiment: `experiment` if given, else the file in the card's command, else its name.

    Raises UserError if it does not exist here.
    """
    name = str(card.data["config"].get("experiment", ""))
    command = card.manifest.get("command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    file = next((word for word in words if word.endswith(".py") and Path(word).expanduser().is_file()), "")
    if experiment or file:
        return experiment or file
    if name not in discovery.experiments():
        known = did_you_mean(name, discovery.experiments())
        raise UserError(
            f"the experiment '{name}' of the card '{card.path}' does not exist here: give its file, or {known}"
        )
    return name


def config_of(card: Card, experiment: str) -> tuple[ConfigDict, list[str]]:
    """The card's config with the types of this jaxbench, and a sentence for each field that the card lacks.

    Raises UserError if a field is unknown here or has another type.
    """
    try:
        config = config_lib.restored(experiment, card.data["config"])
    except UserError as error:
        raise UserError(f"the card '{card.path}' cannot be run again: {error}") from error
    fields, given = flatten(config_lib.plain(config)), flatten(card.data["config"])
    if empty := [name for name, value in given.items() if value is None]:
        raise UserError(f"the card '{card.path}' cannot be run again: its setting {empty[0]} has no value.")
    missing = [name for name in fields if name not in given]
    return config, [f"The card is older than the setting {name}, which is now {fields[name]!r}." for name in missing]


def other_machine(card: Card, here: dict[str, Any]) -> list[str]:
    """A warning if the card is from another kind of machine. here: the manifest of this machine."""
    other = identity.hardware(card.manifest, here)
    if not other:
        return []
    return [
        f"The card is from another kind of machine, {machine_name(card)} ({identity.sentence(other)}): "
        "efficiencies are judged, step times are only shown."
    ]


def _other_source(card: Card, experiment: str) -> list[str]:
    then, now = card.manifest.get("experiment_sha256"), discovery.digest(experiment)
    if then == now:
        return []
    hashes = f"sha256 {str(then)[:8]}... in the card, {now[:8]}... here" if then else "the card has no sha256 of it"
    return [f"The source of the experiment differs ({hashes}), which may explain differences."]
