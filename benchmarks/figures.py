# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every committed figure: draws it again from committed records, and measures whether it can be read without its page.

A figure is fit if `jaxbench.report.drawing.fitness` finds no fault at the width of a page (7 in), and none in its texts
at that of a column (3.5 in). Figures without committed records cannot be drawn again. They are listed, and count as
not fit.

Run: python -m benchmarks.figures measures and prints a table. --draw also writes the figures and pages that changed.
--only=TEXT: figures with this text in their path. Exit code 1 if fewer than GOAL of all figures are fit.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from benchmarks import (
    accept_fleets,
    forecasts,
    forecasts_figure,
    links,
    plain_jax_figure,
    precision,
    redraw,
    releases,
    repeatability,
    summaries,
)
from benchmarks.plain_jax_ratios import Cells
from benchmarks.whole_runs import Run
from jaxbench.analysis import machine_profile
from jaxbench.core.store import RunFolder
from jaxbench.features.audit import checks, table
from jaxbench.features.audit.page import draw_audit
from jaxbench.features.cards import card as cards
from jaxbench.features.cards import gallery
from jaxbench.features.forecast import forecasts as forecast_records
from jaxbench.features.forecast import page as forecast_page
from jaxbench.features.forecast.figures import draw_forecast
from jaxbench.features.machine_profile import machine_command
from jaxbench.features.machine_profile import page as machine
from jaxbench.features.time_to_target import page as targets
from jaxbench.report import build
from jaxbench.report.drawing import canvas, fitness
from jaxbench.report.drawing.canvas import Look
from jaxbench.report.drawing.fitness import Fault
from jaxbench.suites.papers import figure as paper_figure
from jaxbench.suites.papers import paper as library

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
AUDITED = "benchmarks/tables/dgxc_nemo_maxtext_h100_gb200.csv"
COLUMN_IN = 3.5
GOAL = 0.87  # 80 of 91
# At the width of a column, only texts are judged: panels are below each other, and a figure may be longer than a page.
TEXTS = ("text over text", "text cut off", "text below 6 pt")
BY_REDRAW = ("maxtext_16b", "links/links", "cards/cards")  # which `benchmarks.redraw` writes, too
Draw = Callable[[], Figure | None]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A committed figure. path: without a suffix, relative to the repository. draw: None without committed records."""

    path: str
    draw: Draw | None
    folded: bool = False  # a page shows it only on request


def committed() -> list[str]:
    """The committed figures, as paths without a suffix."""
    command = ["git", "ls-files", "docs/figures", "cards"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return sorted({file.rpartition(".")[0] for file in tracked if file.endswith((".svg", ".png"))})


def of_runs(names: Sequence[str]) -> Iterator[Drawing]:
    """The figures of committed run folders."""
    for folder in sorted({Path(name).parent.parent for name in names if Path(name).parent.name == "figures"}):
        path, prefix = ROOT / folder, f"{folder}/figures"
        if (path / "targets.jsonl").exists():
            yield Drawing(path=f"{prefix}/targets", draw=functools.partial(targets.figure, path))
        elif (path / "manifest.json").exists():
            run = build.find(path)
            for name, plot in build.figures_of(run).items():
                if f"{prefix}/{name}" in names:
                    draw = functools.partial(plot, run)
                    yield Drawing(path=f"{prefix}/{name}", draw=draw, folded=plot.diagnostic)
        elif (path / machine_profile.NAME).exists():
            card = json.loads((path / machine_profile.NAME).read_text())
            folders = [RunFolder(path / each) for each in machine_command.EXPERIMENTS if (path / each).is_dir()]
            yield Drawing(path=f"{prefix}/roofline", draw=functools.partial(machine.draw_roofline, folders, card))


def of_benchmarks() -> Iterator[Drawing]:
    """The figures that benchmarks make from their results."""
    folder = "docs/figures"
    yield Drawing(path=f"{folder}/audit/audit", draw=_audit)
    yield Drawing(path=f"{folder}/forecasts/maxtext_16b", draw=_forecast)
    judged = forecasts.read(FIGURES / "forecasts" / forecasts.FILE)
    yield Drawing(
        path=f"{folder}/forecasts/{forecasts_figure.NAME}",
        draw=lambda: forecasts_figure.draw(forecasts.families(judged)),
    )
    yield Drawing(path=f"{folder}/links/links", draw=lambda: links.draw(links.read(FIGURES / "links")))
    yield Drawing(path=f"{folder}/precision/precision", draw=_precision)
    yield Drawing(path=f"{folder}/repeatability/repeatability", draw=_repeatability)
    for name, draw in (("plain_jax", plain_jax_figure.draw_plain), ("allocators", plain_jax_figure.draw_allocators)):
        found = Cells.read(FIGURES / name / "plain_jax.json")
        yield Drawing(path=f"{folder}/{name}/{name}", draw=functools.partial(draw, found))
    compared = releases.read(FIGURES / "releases")
    yield Drawing(
        path=f"{folder}/releases/releases",
        draw=lambda: releases.draw_releases(compared, title=releases.title(compared)),
    )
    yield Drawing(path=f"{folder}/accept/fleets", draw=lambda: accept_fleets.draw(accept_fleets.read()))
    options = FIGURES / "flags" / "summary.csv"
    yield Drawing(path=f"{folder}/flags/arms", draw=lambda: summaries.draw_costs(summaries.read(options)))
    own = FIGURES / "own_step" / "summary.csv"
    yield Drawing(path=f"{folder}/own_step/waterfall", draw=lambda: summaries.draw_losses(summaries.read(own)))
    for path in sorted((FIGURES / "papers").glob("*.json")):
        yield Drawing(path=f"{folder}/papers/{path.stem}", draw=functools.partial(_paper, path))
    yield Drawing(path="cards/cards", draw=_cards)


def _paper(path: Path) -> Figure:
    id, data = paper_figure.read(path)
    return paper_figure.draw(library.load(id), data)


def _audit() -> Figure | None:
    rows, _ = checks.audit(table.read(ROOT / AUDITED, ()))
    return draw_audit(rows, title=f"Do the numbers of {Path(AUDITED).name} agree?")


def _forecast() -> Figure | None:
    records = forecast_records.read(FIGURES / "forecasts" / "maxtext_16b")
    return draw_forecast(records, title=forecast_page.title(records))


def _runs(name: str) -> dict[str, Run]:
    document = json.loads((FIGURES / name / "runs.json").read_text())
    return {run["name"]: Run(**run) for run in document["runs"]}


def _precision() -> Figure:
    runs, pairs = _runs("precision"), dict[str, list[dict[str, Run]]]()
    for condition in precision.CONDITIONS:
        start = f"{condition} ".replace(" ", "-")
        numbers = sorted({name.removeprefix(start).partition("-")[0] for name in runs if name.startswith(start)})
        designs = (precision.THERE, precision.HERE)
        pairs[condition] = [{each: runs[f"{start}{n}-{each}".replace(" ", "-")] for each in designs} for n in numbers]
    return precision.draw(pairs)


def _repeatability() -> Figure:
    runs = list(_runs("repeatability").values())
    points = [point for point in runs[0].efficiencies if all(point in run.efficiencies for run in runs)]
    return repeatability.draw([repeatability.of(point, runs) for point in points], runs)


def _cards() -> Figure | None:
    rows = [row for path in sorted((ROOT / gallery.FOLDER).glob("*.json")) for row in gallery.rows_of(cards.read(path))]
    return gallery.drawn(rows, ())


def drawings() -> list[Drawing]:
    """Every committed figure, in the order of its path."""
    names = committed()
    known = {each.path: each for each in (*of_runs(names), *of_benchmarks())}
    return [known.get(name, Drawing(path=name, draw=None)) for name in names]


def faults_of(drawing: Drawing) -> list[Fault] | None:
    """The faults of a figure, at both widths; None without records. A figure that is no longer drawn has none."""
    if drawing.draw is None:
        return None
    found = measured(drawing.draw, canvas.PLAIN)
    narrow = measured(drawing.draw, Look(COLUMN_IN))
    return found + [fault for fault in narrow if fault.kind in TEXTS and fault not in found]


def measured(draw: Draw, look: Look) -> list[Fault]:
    with canvas.style(look):
        figure = draw()
        if figure is None or canvas.is_empty(figure):
            return []
        canvas.lay_out(figure)
        return fitness.faults(figure)


def report(found: dict[str, list[Fault] | None], console: Console) -> float:
    """Prints the figures that are not fit and the counts of faults. Returns the share of fit figures."""
    shown = Table("figure", "faults", box=None, pad_edge=False)
    for path, faults in found.items():
        if faults is None:
            shown.add_row(path, "no records: cannot be drawn again")
        elif faults:
            kinds = Counter(fault.kind for fault in faults)
            what = "; ".join(f"{kind} ({count}), such as {_first(faults, kind)}" for kind, count in kinds.items())
            shown.add_row(path, what)
    console.print(shown)
    every = Counter(fault.kind for faults in found.values() for fault in faults or ())
    console.print(", ".join(f"{kind} {every[kind]}" for kind in fitness.KINDS), highlight=False, soft_wrap=True)
    fit, without = sum(faults == [] for faults in found.values()), sum(faults is None for faults in found.values())
    console.print(f"{fit} of {len(found)} figures are fit; {without} have no records.", highlight=False)
    return fit / len(found) if found else 1.0


def _first(faults: Sequence[Fault], kind: str) -> str:
    return next(fault.what for fault in faults if fault.kind == kind)


def write(every: Sequence[Drawing], console: Console) -> None:
    """Draws figures of benchmarks in the committed formats, then the runs with their pages."""
    for each in every:
        by_redraw = "/figures/" in each.path.removeprefix("docs/figures") or each.path.endswith(BY_REDRAW)
        if each.draw is not None and not by_redraw:
            path = ROOT / each.path
            files = canvas.render(each.draw)
            kept = [suffix for suffix in canvas.FORMATS if path.with_name(f"{path.name}.{suffix}").exists()]
            canvas.write({suffix: files[suffix] for suffix in kept if files}, path.parent, path.name)
            console.print(each.path, highlight=False)
    redraw.main()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="write the figures and their pages")
    parser.add_argument("--only", default="", help="a text in the path of the figures")
    asked, console = parser.parse_args(), Console(width=160)
    every = [each for each in drawings() if asked.only in each.path]
    if asked.draw:
        write(every, console)
    return 0 if report({each.path: faults_of(each) for each in every}, console) >= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
