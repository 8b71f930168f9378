# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a first run: which expectations are met, for a reader who is new to the suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from jaxbench import __version__
from jaxbench.analysis import quantities
from jaxbench.analysis.expectations import CANNOT_TELL, NO, YES
from jaxbench.core.store import write_atomic
from jaxbench.features.machine_profile import page as machine_page
from jaxbench.records import identity
from jaxbench.report import page
from jaxbench.report.page import Picture
from jaxbench.report.table import FOLD, NUMBER, TEXT, Cell, Table, facts, plain

PAGE = "first-run.html"
ABOUT = (
    "jaxbench measures how JAX training scales over devices. A first run tries every part of the suite on this machine "
    "and compares the results with expectations that hold on any machine. It does not show whether the machine is "
    "fast. It shows whether the suite's results on it can be trusted."
)
# (path of a figure in the folder, its caption).
FIGURES = (
    ("scaling-cnn/figures/scaling", "How the training of cnn, a small convolutional network, scales."),
    ("scaling-gpt/figures/scaling", "How the training of gpt, a transformer, scales."),
    ("machine/figures/roofline", "The speed of kernels on this machine, below its measured ceilings."),
    ("profile-cnn/figures/profile", "Where the time of a cnn training step goes, from a trace."),
)
Document = Mapping[str, Any]

# The question of each stage, in the order of the page.
STAGES = {
    "smoke": "Is every strategy right with every model?",
    "machine": "Are the machine's own numbers possible?",
    "scaling": "Are the scaling numbers possible?",
    "profile": "Does a profile add up?",
    "levers": "Does every other experiment on a training step run?",
}
_UNITS = {"machine": "cases"}  # what a stage's items count; "programs" in other stages
_KINDS = {YES: "ok", NO: "no", CANNOT_TELL: "missing"}
_OUTCOMES = {"done": "ok", "amiss": "no", "refused": "no", "broken": "no"}
_NAMED = 3  # a line names at most this many runs; with more, the rest are counted
_SENTENCES = 5  # an item shows at most this many reasons; the rest are counted


def write(folder: Path, document: Document) -> None:
    """Writes `first-run.html` into `folder` from the document and the figures of its runs."""
    # Figures of runs that did not end are missing, and the page is made without them.
    files = [(folder / f"{name}.svg", name.replace("/figures/", "-"), caption) for name, caption in FIGURES]
    pictures = [Picture(name=name, svg=file.read_bytes(), caption=text) for file, name, text in files if file.is_file()]
    write_atomic(folder / PAGE, render(document, pictures))


def render(document: Document, pictures: list[Picture]) -> str:
    """The page as HTML. Everything that comes from the run is escaped; the figures are this package's own."""
    entries = items(document)
    heading = f"First run on {identity.machine_name(document['machine'])}"
    made = dict(
        name=heading,
        heading=heading,
        headlines=headlines(document),
        alarm=any(item["agrees"] == NO for item in entries),
        about=ABOUT,
        against=against(entries),
        table=expectations(entries),
        grid=grid(document),
        pictures=pictures,
        machine=machine(document),
        commands=commands(document),
        unfinished=any(about["outcome"] != "done" for about in document["parts"].values()),
        parts=parts(document["parts"]),
        made_from="first-run.json",
    )
    sources = [("The machine and its software", page.pretty(document["machine"]))]
    return page.template("first_run.html").render(page=made, sources=sources, version=__version__)


def headlines(document: Document) -> list[str]:
    """Sentences on how many expectations are met, and on parts that were not measured. The first is the answer."""
    entries = items(document)
    counts = {word: sum(item["agrees"] == word for item in entries) for word in (YES, NO, CANNOT_TELL)}
    abouts = document["parts"].values()
    unfinished = [about for about in abouts if about["outcome"] in ("skipped", "stopped", "not yet")]
    if counts[NO]:
        answer = f"Not everything is as expected: {counts[NO]} of {len(entries)} expectations are NOT met."
    elif unfinished:
        answer = f"Nothing contradicts expectations so far: {counts[YES]} of {len(entries)} expectations are met."
    else:
        answer = f"Everything that can be judged is as expected: {counts[YES]} of {len(entries)} expectations are met."
    unknown = f" {counts[CANNOT_TELL]} cannot be judged, for the reasons below." if counts[CANNOT_TELL] else ""
    sentences = [answer + unknown]
    if unfinished:
        sentences.append(
            f"{len(unfinished)} of {len(document['parts'])} parts are not finished; the table below lists them. "
            "To continue, run the same command with the same --workdir."
        )
    return sentences


def commands(document: Document) -> str:
    """A clause on how many commands ran, how long they took, and how they ended."""
    abouts = list(document["parts"].values())
    words = [about["outcome"] for about in abouts]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    return f"{len(abouts)} commands in {sum(about['seconds'] for about in abouts) / 60:.0f} minutes: {counts}"


def show(document: Document, console: Console) -> None:
    """Prints the answer, then each expectation that is not met or cannot be judged."""
    console.print()
    for sentence in headlines(document):
        console.print(Text(sentence, style="bold"))
    for word in (NO, CANNOT_TELL):
        for item in items(document):
            if item["agrees"] == word:
                why = "; ".join(item["why"][:2]) or item["found"]
                line = f"  {word}: {item['run']}: {item['expected']} {why}"
                console.print(Text(line, style="red" if word == NO else ""))


Item = Mapping[str, Any]


def items(document: Mapping[str, Any]) -> list[Item]:
    """Every item of the document, in the order of the parts."""
    return [item for run in document["parts"] for item in document["found"].get(run, {}).get("items", [])]


def against(items: Sequence[Item]) -> Table:
    """Each item that is not as expected, with its reasons and its folder."""
    contrary = [item for item in items if item["agrees"] == NO]
    rows = [(item["expected"], item["found"], why(item), item["run"]) for item in contrary]
    return plain({"expected": FOLD, "found": FOLD, "why": FOLD, "folder": TEXT}, rows)


def expectations(items: Sequence[Item]) -> Table:
    """Every expectation of every stage. Runs that agree share a line."""
    rows: list[tuple[str | Cell, ...]] = []
    for stage, question in STAGES.items():
        of_stage = [item for item in items if item["stage"] == stage]
        groups: dict[tuple[str, str], list[Item]] = {}  # runs that agree are one line, or 100 lines would hide one
        for item in of_stage:
            groups.setdefault((item["expected"], item["agrees"]), []).append(item)
        order = list(dict.fromkeys(expected for expected, _ in groups))
        # One expectation's answers together.
        ordered = sorted(groups.items(), key=lambda entry: order.index(entry[0][0]))
        for number, ((expected, agrees), group) in enumerate(ordered):
            asked = question if not number else ""
            runs = [item["run"] for item in group]
            where = ", ".join(runs if len(runs) <= _NAMED else [*runs[:2], f"and {len(runs) - 2} more"])
            rows.append((asked, expected, _found(group), Cell(agrees, _KINDS[agrees]), where))
    headings = {"question": FOLD, "expected": FOLD, "found": FOLD, "agrees": TEXT, "folder": FOLD}
    return plain(headings, rows, first=lambda row: bool(row[0]))


def _found(group: Sequence[Item]) -> str:
    """What was found for one expectation, over all runs that it concerns."""
    if len(group) == 1:
        return ". ".join(filter(None, (group[0]["found"], group[0]["detail"], why(group[0]))))
    if group[0]["agrees"] == YES:
        right, judged = (sum(item[count] for item in group) for count in ("right", "judged"))
        counted = f"{right} of {judged} {_UNITS.get(group[0]['stage'], 'programs')}"
        details = [f"{item['about']}: {item['detail']}" for item in group if item["detail"]]
        return ". ".join((counted, *details)) if len(group) <= _NAMED else counted
    return " ".join(dict.fromkeys(f"{item['about']}: {why(item) or item['found']}" for item in group))


def why(item: Item) -> str:
    """The first reasons why an item does not agree."""
    reasons = "; ".join(item["why"][:_SENTENCES])
    more = len(item["why"]) - _SENTENCES
    return f"{reasons}; and {more} more" if more > 0 else reasons


def grid(document: Mapping[str, Any]) -> Table:
    """A table of models by strategies: whether each combination is correct."""
    grids = {run: result["grid"] for run, result in document["found"].items() if result.get("grid")}
    rows = {document["parts"][run]["about"]: answers for run, answers in grids.items()}
    strategies = sorted({strategy for answers in rows.values() for strategy in answers})
    lines = [
        (model, *(Cell(answer, _KINDS[answer]) if (answer := answers.get(name)) else Cell("") for name in strategies))
        for model, answers in rows.items()
    ]
    note = (
        "A strategy distributes one training step over devices. yes: it compiles, runs, ends with the parameters that "
        "one device computes, and communicates as expected. Empty: the strategy does not support this model."
    )
    return plain(dict.fromkeys(("model", *strategies), TEXT), lines, note=note)


def machine(document: Mapping[str, Any]) -> Table:
    """The machine, its software, and its measured peaks."""
    # `get`: the document may be of another version, or its machine may not know a fact.
    about, versions = document["machine"], document["machine"].get("versions", {})
    memory = about.get("device_memory_bytes") or about.get("memory_bytes")
    git = about.get("git") or {}
    source = f", {identity.commit(git)}" if git else ""
    accelerators = f"{about.get('devices')} x {about.get('device_kind')} ({about.get('platform')})"
    pairs = [
        ("started", str(document.get("begun", ""))),
        ("devices", accelerators if about.get("platform") != "cpu" else "no accelerator: fake devices on the CPU"),
        ("processor", f"{about.get('cpu_model')}, {about.get('cores')} cores usable"),
        ("memory", quantities.payload(memory) if memory else "unknown"),
        (
            "software",
            f"jaxbench {versions.get('jaxbench')}{source}, jax {versions.get('jax')}, jaxlib {versions.get('jaxlib')}",
        ),
        ("system", f"{about.get('os')}, Python {about.get('python')}"),
    ]
    card = document.get("card")
    measured = [("measured", sentence) for sentence in machine_page.headlines(card)] if card else []
    return facts([*pairs, *measured], FOLD)


def parts(abouts: Mapping[str, Mapping[str, Any]]) -> Table:
    """Every command, how it ended and how long it took."""
    rows: list[tuple[str | Cell, ...]] = []
    for run, about in abouts.items():
        outcome = Cell(about["outcome"], _OUTCOMES.get(about["outcome"], "missing"))
        message = "" if about["outcome"] == "done" else about["said"]
        command = f"jaxbench {' '.join(about['words'])}"
        rows.append((run, outcome, f"{about['seconds']:.0f}", message, command))
    total = sum(about["seconds"] for about in abouts.values())
    rows.append(("all", "", f"{total:.0f}", "", ""))  # over all starts, so it may exceed the budget of one
    note = "done: measured and correct. amiss: measured, but not all correct. Each folder has its own page."
    headings = {"folder": TEXT, "outcome": TEXT, "seconds": NUMBER, "message": FOLD, "command": FOLD}
    return plain(headings, rows, first=lambda row: row[0] == "all", note=note)
