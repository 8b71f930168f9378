# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a paper, and the gallery of all papers, from their `paper.json` and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

from jaxbench import __version__
from jaxbench.catalog import published
from jaxbench.command_form import as_typed
from jaxbench.core.store import write_atomic
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.features.comparison.judge import (
    CANNOT_TELL,
    CLAIM_VERDICTS,
    DIVERGED,
    FAILS,
    HOLDS,
    NOT_MEASURED,
    NOT_TESTABLE,
)
from jaxbench.records import identity
from jaxbench.records.reading import read_document
from jaxbench.report import page
from jaxbench.report.drawing import axes as axis_lib
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.drawing.axes import entitle, log_axis, si
from jaxbench.report.drawing.canvas import Sheet
from jaxbench.report.drawing.marks import MARKERS, Mark
from jaxbench.report.page import Picture
from jaxbench.report.table import FOLD, TEXT, Cell, Table, plain
from jaxbench.suites import first_run_page as first_run
from jaxbench.suites.papers import series as series_lib
from jaxbench.suites.papers.paper import Evidence, NotTestable, Panel, Paper
from jaxbench.suites.papers.series import Measured, PublishedSeries

DOCUMENT, KIND = "paper.json", "jaxbench paper"
PAGE, FIGURES, FIGURE = "paper.html", "figures", "paper"
GALLERY, MARKDOWN, GALLERY_FIGURES = "gallery.html", "GALLERY.md", "figures/papers"
TITLE = "Papers as claims"
_KINDS = {HOLDS: "ok", FAILS: "no"}
_COUNTED = {
    HOLDS: ("holds here", "hold here"),
    FAILS: ("does not hold here", "do not hold here"),
    CANNOT_TELL: ("cannot be decided", "cannot be decided"),
    DIVERGED: ("diverged", "diverged"),
    NOT_MEASURED: ("is not measured yet", "are not measured yet"),
    NOT_TESTABLE: ("is not testable here", "are not testable here"),
}
ABOUT = (
    "Each claim is a sentence of the paper with one quantity, measured on this machine. It holds here if the whole "
    "95 % confidence interval of the quantity is within the claim's limit. It does not hold here if the whole interval "
    "is outside. Otherwise the runs cannot tell. Dashed and grey: published; coloured: measured here."
)
_MEANINGS = {"hollow": notes.HOLLOW, "refused": notes.REFUSED, "wrong": notes.WRONG}


@dataclass(frozen=True, kw_only=True)
class PaperEntry:
    """One paper of a page. command: what makes it again. machine: its name; "" before anything was measured."""

    id: str
    heading: str
    citation: str
    command: str
    machine: str
    counts: str
    pictures: Sequence[Picture]
    claims: Table
    runs: Table


def read(path: Path) -> dict[str, Any]:
    """Raises UserError for a file that is no document of a paper."""
    fields = ("id", "title", "citation", "preset", "runs", "claims", "machine")
    return read_document(path, KIND, 1, fields, "delete it, and the command makes it again.")


def number(claim: Mapping[str, Any]) -> str:
    """ "0.93 [0.91, 0.95]"; a number without noise stands alone; "" without one."""
    value, lo, hi = claim["value"], claim["lo"], claim["hi"]
    if value is None:
        return ""
    between = lo is not None and hi is not None and lo != hi  # an exact number is its own interval
    return digits(value) + (f" [{digits(lo)}, {digits(hi)}]" if between else "")


def command_of(document: Mapping[str, Any]) -> str:
    """The command that measures the paper again."""
    preset = "" if document["preset"] == "auto" else f" --preset={document['preset']}"
    return as_typed(f"jaxbench paper {document['id']}{preset}")


def write(folder: Path, document: Mapping[str, Any]) -> None:
    """Writes `paper.html` into the folder of a paper."""
    made = render(str(document["title"]), [entry(folder, document)], [document], made_from=DOCUMENT)
    write_atomic(folder / PAGE, made)


def render(heading: str, entries: Sequence[PaperEntry], papers: Sequence[Mapping[str, Any]], *, made_from: str) -> str:
    """The page as HTML. Everything that comes from a run is escaped; the figures are this package's own."""
    made: dict[str, Any] = dict(name=heading, heading=heading, about=ABOUT, papers=entries, made_from=made_from)
    made["overview"] = overview(papers) if len(papers) > 1 else None  # of one paper it would repeat the claims
    sources = [(f"The machine of {paper['id']}", page.pretty(paper["machine"])) for paper in papers if paper["machine"]]
    return page.template("papers.html").render(page=made, sources=sources, version=__version__)


def entry(folder: Path, document: Mapping[str, Any]) -> PaperEntry:
    """What the page says of one paper. folder: which holds its figure."""
    svg = folder / FIGURES / f"{FIGURE}.svg"
    pictures = [Picture(name=f"paper-{document['id']}", svg=svg.read_bytes())] if svg.is_file() else []
    return PaperEntry(
        id=document["id"],
        heading=document["title"],
        citation=document["citation"],
        command=command_of(document),
        machine=machine(document),
        counts=counts(document["claims"]),
        pictures=pictures,
        claims=claims(document["claims"]),
        runs=first_run.parts(document["runs"]),
    )


def machine(document: Mapping[str, Any]) -> str:
    """The name of the machine; "" before anything was measured."""
    return identity.machine_name(document["machine"]) if document["machine"] else ""


def counts(judged: Sequence[Mapping[str, Any]]) -> str:
    """ "2 hold here, 1 is not testable here": how many claims have each verdict."""
    words = [claim["verdict"] for claim in judged]
    numbers = [(words.count(verdict), *_COUNTED[verdict]) for verdict in CLAIM_VERDICTS if verdict in words]
    return ", ".join(f"{n} {one if n == 1 else more}" for n, one, more in numbers) or "no claim was judged"


def overview(papers: Sequence[Mapping[str, Any]]) -> Table:
    """How many claims of each paper have each verdict."""
    rows: list[tuple[str | Cell, ...]] = []
    for paper in papers:
        words = [claim["verdict"] for claim in paper["claims"]]
        numbers = (str(words.count(verdict) or "") for verdict in CLAIM_VERDICTS)
        rows.append((str(paper["id"]), str(paper["title"]), *numbers))
    return plain({"paper": TEXT, "what it measures": FOLD} | dict.fromkeys(CLAIM_VERDICTS, ""), rows)


def claims(judged: Sequence[Mapping[str, Any]]) -> Table:
    """Every claim with its verdict, its number, its limit, and what two cores can show of it."""
    rows: list[tuple[str | Cell, ...]] = []
    for claim in judged:
        value = number(claim)
        read = f"{claim['quantity']}: {value} ({claim['detail']})" if value else claim["quantity"]
        verdict = Cell(claim["verdict"], _KINDS.get(claim["verdict"], "missing"))
        paper = f"{claim['sentence']} ({claim['source']})"
        rows.append((paper, verdict, read, claim["limit"], claim["why"], claim["here"]))
    headings = ("claim", "verdict", "quantity", "claimed", "why", "what two cores can show")
    kinds = dict.fromkeys(headings, FOLD) | {"verdict": TEXT, "claimed": TEXT}
    return plain(kinds, rows)


def gallery(folder: Path, console: Console, docs: Path | None = None) -> None:
    """Writes gallery.html into `folder`, and GALLERY.md with its figures into `docs`, else into `folder` too.

    Raises UserError if the folder has no paper, or one that cannot be read.
    """
    files = sorted(folder.glob(f"*/{DOCUMENT}"))
    if not files:
        raise UserError(f"'{folder}' has no paper yet: run one first, such as jaxbench paper rajbhandari2020.")
    papers = [read(file) for file in files]
    entries = [entry(file.parent, paper) for file, paper in zip(files, papers, strict=True)]
    write_atomic(folder / GALLERY, render(TITLE, entries, papers, made_from=f"{len(papers)} paper.json"))
    console.print(f"Page of {len(papers)} papers: {folder / GALLERY}", highlight=False, soft_wrap=True)
    docs = docs or folder  # never the tracked docs unless asked: results/ belongs to this machine
    (docs / GALLERY_FIGURES).mkdir(parents=True, exist_ok=True)
    for file, paper in zip(files, papers, strict=True):
        drawn = file.parent / FIGURES / f"{FIGURE}.png"
        if drawn.is_file():
            write_atomic(docs / GALLERY_FIGURES / f"{_name(paper)}.png", drawn.read_bytes())
    write_atomic(docs / MARKDOWN, "\n".join(markdown(papers)) + "\n")
    console.print(f"For a documentation: {docs / MARKDOWN}", highlight=False, soft_wrap=True)


def markdown(papers: Sequence[Mapping[str, Any]]) -> list[str]:
    """The lines of GALLERY.md."""
    lines = [
        f"# {TITLE}",
        "",
        ABOUT,
        "Made by `make gallery`; docs/metrics/suites.md defines the verdicts.",
        "",
        *overview(papers).markdown(_escaped),
        "",
    ]
    for paper in papers:
        lines += [f"## {_name(paper)}: {paper['title']}", "", f"{paper['citation']}", ""]
        lines += [f"![{paper['title']}]({GALLERY_FIGURES}/{_name(paper)}.png)", ""]
        where = f", on {machine(paper)}" if paper["machine"] else ""
        lines += [f"`{command_of(paper)}`{where}: {counts(paper['claims'])}.", ""]
        lines += [*claims(paper["claims"]).markdown(_escaped), ""]
    return lines[:-1]  # without the empty line after the last table


def _name(paper: Mapping[str, Any]) -> str:
    return str(paper["id"]) if paper["preset"] == "auto" else f"{paper['id']}-{paper['preset']}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")  # it would end a cell of a Markdown table


def write_figure(paper: Paper, runs: Evidence) -> None:
    """Draws the figure into the folder of the paper."""
    canvas.write(canvas.render(lambda: draw_figure(paper, runs)), runs.folder / FIGURES, FIGURE)


def draw_figure(paper: Paper, runs: Evidence) -> Figure:
    """One panel for each of the paper's, side by side. A panel without measurements says why."""
    sheet = Sheet(1, len(paper.panels), heights=2.4)
    legend = _Legend()
    seen: list[Mark] = []
    remarks: list[str] = []
    for axes, panel in zip(sheet.panels[0], paper.panels, strict=True):
        for call in panel.published:
            for series in series_lib.make(call):
                legend.draw(axes, panel, series)
        # All series of a panel are made before one is drawn: half a panel would look complete.
        try:
            for series in [each for call in panel.measured for each in series_lib.make(call, runs)]:
                legend.draw(axes, panel, series)
                if isinstance(series, Measured):
                    seen += series.marks
                    states = {mark.state for mark in series.marks}
                    remarks += [series.crosses or meaning for state, meaning in _MEANINGS.items() if state in states]
        except NotTestable as reason:
            remarks.append(f"{panel.title}: nothing measured here. {reason}")
        _axes(axes, panel)
    remarks = list(dict.fromkeys(remarks))
    sources = dict.fromkeys(published.read(table).project for table in paper.tables)
    remarks += [notes.cited("; ".join(sources))] if sources else []
    if any(handle.get_linestyle() == "--" and handle.get_marker() == "None" for handle in legend.handles.values()):
        remarks.append("dashed, without marks: formulas")
    bars = [mark.n for mark in seen if mark.drawn.has_interval and mark.n]
    # Marks count rounds and processes, or seeds: each kind of n has its own range.
    groups = [[n for n in bars if len(n) == parts] for parts in sorted({len(n) for n in bars})]
    remarks += [f"{notes.BARS}; {' or '.join(map(notes.n_of, groups))} per mark"] if bars else []
    # The title names what is measured, and never what the paper claims: the table below the figure answers that.
    return sheet.finish(paper.title, list(legend.handles.values()), remarks)


class _Legend:
    """The series of a figure: a label has one style in all panels, and no other label has it."""

    def __init__(self) -> None:
        self.handles: dict[str, Any] = {}
        self._places: dict[tuple[str, type], int] = {}

    def draw(self, axes: Axes, panel: Panel, series: PublishedSeries | Measured) -> None:
        """Measured series solid; published ones with their marks; formulas as dashed lines."""
        kind = type(series)
        if isinstance(series, Measured) and not series.marks:
            return
        # Measured and published series count separately: each kind has its own colours and marks.
        place = self._places.setdefault((series.label, kind), sum(each == kind for _, each in self._places))
        if isinstance(series, Measured):
            marks.line(axes, series.marks, place=place, between="none" if panel.names else "-")
            self.handles[series.label] = marks.handle(place, series.label.replace("here", "measured"))
        elif series.formula:
            drawn = marks.guide(axes, series.x, series.y, label=series.label, number=place)
            self.handles.setdefault(series.label, drawn)
        else:
            # Two points are a line that a paper states, such as 90 % up to 256 GPUs, and not two measurements.
            shape = MARKERS[place % len(MARKERS)] if len(series.x) > 2 or panel.names else ""
            joined = not panel.names
            drawn = marks.published(axes, series.x, series.y, shape=shape, joined=joined, label=series.label)
            self.handles.setdefault(series.label, drawn)


def _axes(axes: Axes, panel: Panel) -> None:
    entitle(axes, panel.title, x=panel.x, y=panel.y)
    if panel.names:
        axes.set_xticks(range(len(panel.names)), panel.names)
        axes.set_xlim(-0.5, len(panel.names) - 0.5)
    if "x" in panel.log:
        log_axis(axes, "x", show=_tick, base=panel.base)
    if "y" in panel.log:
        relative = panel.y.startswith(("speed-up", "relative to"))  # ticks as of a count of devices
        log_axis(axes, "y", show=_tick, base=2 if relative else 10)
    elif panel.top:
        axes.set_ylim(0, max(panel.top, 1.05 * axes.dataLim.y1))  # from 0, so that heights can be compared


def _tick(value: float) -> str:
    """Counts and batches as they are, larger numbers with a unit."""
    return axis_lib.plain(value) if value < 1e5 else si(value)
