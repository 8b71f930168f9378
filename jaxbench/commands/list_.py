# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench list`: the experiments and presets, or all strategies, levers, targets, papers or templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from jaxbench.errors import UserError, did_you_mean
from jaxbench.verbs import Verb

VERB = Verb(
    usage="list [KIND]",
    help="list the experiments and presets, or all strategies, levers, targets, papers or templates",
    group="about",
    argument="...",
    examples=("list", "list strategies", "list targets"),
)
Lines = Mapping[str, str]


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    known = kinds()
    for name in arguments:
        if name not in known:
            raise UserError(f"jaxbench list knows no '{name}': {did_you_mean(name, known)}")
    for name in arguments or ("experiments", "presets"):
        lines = known[name]()
        console.print(name, style="bold")
        width = max(map(len, lines))
        for item, about in lines.items():
            console.print(f"  {item:<{width}} {about}", highlight=False, soft_wrap=True, markup=False)
    if not arguments:
        more = ", ".join(name for name in known if name not in ("experiments", "presets"))
        console.print(f"More: jaxbench list {more}.", highlight=False, soft_wrap=True, style="dim")
    return 0


def _experiment_lines() -> Lines:
    from jaxbench import discovery

    return {name: discovery.describe(path) for name, path in discovery.experiments().items()}


def _preset_lines() -> Lines:
    from jaxbench import discovery

    return {name: discovery.describe(path) for name, path in discovery.presets().items()}


def _strategy_lines() -> Lines:
    from jaxbench import discovery

    folder = Path(discovery.__file__).parent / "parallel" / "strategies"  # read, not imported: that would start JAX
    return {path.stem: discovery.describe(path) for path in sorted(folder.glob("[!_]*.py"))}


def _lever_lines() -> Lines:
    from jaxbench.levers import LEVERS, OF_GENERATION

    every = {**LEVERS, **OF_GENERATION}
    return {
        name: f"{lever.about} (default {lever.default}{', values ' + ', '.join(lever.values) if lever.values else ''})"
        for name, lever in every.items()
    }


def _target_lines() -> Lines:
    from jaxbench.catalog import rows
    from jaxbench.catalog.targets import TPUS

    gpus = {
        row["name"]: f"{row['device_kind']}, {int(row['memory_bytes']) / 1e9:.0f} GB, such as {row['name']}:8"
        for row in rows("gpu_targets.csv")
    }
    tpus = {
        name: f"{kind}, a slice such as {name}:{'x'.join(['4'] * dimensions)}"
        for name, (kind, dimensions, _) in TPUS.items()
    }
    return {**tpus, **gpus}


def _paper_lines() -> Lines:
    from jaxbench.suites.papers import paper as library

    papers = {name: library.load(name) for name in library.names()}
    return {
        name: f"{each.title} ({each.minutes:.0f} min on two cores; {each.citation})" for name, each in papers.items()
    }


def _template_lines() -> Lines:
    from jaxbench import discovery
    from jaxbench.commands.new import TEMPLATES

    return {name: discovery.describe(path).partition(" Measure it")[0] for name, path in TEMPLATES.items()}


def kinds() -> dict[str, Callable[[], Lines]]:
    """What makes the lines of each kind."""
    return {
        "experiments": _experiment_lines,
        "presets": _preset_lines,
        "strategies": _strategy_lines,
        "levers": _lever_lines,
        "targets": _target_lines,
        "papers": _paper_lines,
        "templates": _template_lines,
    }
