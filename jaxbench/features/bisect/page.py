# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A bisection for its readers: the terminal, bisect.html with one figure, summary.md, and bisect.json."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from jaxbench.core.store import write_atomic
from jaxbench.errors import UserError
from jaxbench.features.bisect.search import AS_FAST, OLDEST, SKIPPED, SLOW, Bisection, Compared
from jaxbench.features.bisect.versions import Version
from jaxbench.features.comparison.judge import CANNOT_TELL, EXIT, FASTER, SAME, SLOWER, Metric
from jaxbench.features.comparison.page import called, escape, shown_ratio, value
from jaxbench.records import documents, reading
from jaxbench.records.documents import decode
from jaxbench.report import page
from jaxbench.report.drawing import canvas, marks, shapes
from jaxbench.report.drawing.canvas import plot
from jaxbench.report.page import Page, Purpose, Section
from jaxbench.report.pictures import pictured
from jaxbench.report.table import ALWAYS, TEXT, Column, Table, fill
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

PAGE, JSON, SUMMARY = "bisect.html", "bisect.json", "summary.md"
SCHEMA, KIND = 1, "bisection"  # of bisect.json
NOT_COMPARED = "not compared"
_STYLES = {SLOW: "no", SLOWER: "no", CANNOT_TELL: "missing", SKIPPED: "missing"}
_DRAWN = 40


@dataclass(frozen=True, kw_only=True)
class Found:
    """A bisection and its question.

    Attributes:
      question: what was asked, as `run.Asked.question`.
      versions: oldest first.
      result: what is known.
      metric: what was compared.
      experiment, command: as in `run.Asked`.
      again: (two versions) -> the command that compares them.
    """

    question: Mapping[str, object]
    versions: tuple[Version, ...]
    result: Bisection
    metric: Metric
    experiment: str
    command: str
    again: Callable[[Version, Version], str]

    @property
    def exit_code(self) -> int:
        return EXIT[self.result.verdict]


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the table."""

    version: Version
    verdict: str
    ratio: Estimate = UNKNOWN
    value: float = math.nan
    pairs: int = 0
    note: str = ""


def lines(found: Found) -> list[Line]:
    """A line for each version, oldest first. An ended search shows on which side a version without a comparison is."""
    result, made = found.result, []
    newest = result.compared.get(len(found.versions) - 1)
    for number, version in enumerate(found.versions):
        each = result.compared.get(number)
        first = result.verdict == SLOWER and result.exact and number == result.high
        note = version.about
        if number == 0:
            made.append(Line(version=version, verdict=OLDEST, value=newest.a if newest else math.nan, note=note))
        elif each is None:
            made.append(Line(version=version, verdict=NOT_COMPARED, note=note))
        else:
            verdict = SLOW if each.verdict == SLOWER else each.verdict
            words = ["the first slow version"] if first else []
            words += [each.reason] if each.reason else []
            words += [note] if note else []
            line = Line(version=version, verdict=verdict, ratio=each.ratio, value=each.b, pairs=each.pairs)
            made.append(replace(line, note="; ".join(words)))
    return made


def sentence(found: Found) -> str:
    """The answer."""
    result, versions = found.result, found.versions
    newest, oldest = versions[-1], versions[0]
    if result.verdict != SLOWER:
        each = result.compared.get(len(versions) - 1)
        times = _times(each, oldest, found.metric) if each else "nothing was compared"
        answers = {
            SAME: f"No difference: {newest.name} has {times}.",
            FASTER: f"No slow version: {newest.name} is faster; it has {times}.",
            CANNOT_TELL: f"Cannot tell whether {newest.name} is slower; it has {times}: add --budget_s for more pairs.",
        }
        return answers[result.verdict]
    slow = versions[result.high]
    times = _times(result.compared[result.high], oldest, found.metric)
    if result.exact:
        return f"{slow.name} is the first slow version: it has {times}. {_before(found)}"
    open_ = ", ".join(version.name for version in versions[result.low + 1 : result.high + 1])
    return f"The first slow version is one of {open_}: {slow.name} has {times}. {_before(found)}"


def _before(found: Found) -> str:
    """A sentence on the newest version that is not slow."""
    low = found.versions[found.result.low]
    if found.result.low == 0:
        return f"{low.name} is the oldest one."
    ratio = shown_ratio(found.result.compared[found.result.low].ratio)
    return f"{low.name} is not slow ({ratio})."


def _times(each: Compared, oldest: Version, metric: Metric) -> str:
    """A version's ratio to the oldest one, as a clause."""
    ratio = shown_ratio(each.ratio) or "an unknown number of"
    return f"{ratio} times the {called(metric)} of {oldest.name}"


def sentence_of(version: Version, oldest: Version, each: Compared, metric: Metric) -> str:
    """One comparison."""
    if each.verdict == SKIPPED:
        return f"{version.name} is skipped: {each.reason}."
    pairs = f"{each.pairs} pair{'' if each.pairs == 1 else 's'}"
    return f"{version.name} has {_times(each, oldest, metric)}: {each.verdict} ({pairs})."


def table(found: Found) -> Table:
    columns = (
        Column("version", "version.name", kind=TEXT, terminal=ALWAYS),
        Column(called(found.metric), lambda line: value(line.value, found.metric), terminal=5),
        Column("ratio", "ratio", shown_ratio, terminal=ALWAYS, heading=f"over {found.versions[0].name} [interval]"),
        Column("verdict", "verdict", kind=TEXT, style=lambda word: _STYLES.get(word, ""), terminal=ALWAYS),
        Column("pairs", lambda line: line.pairs or None, terminal=6),
        Column("note", "note", kind=TEXT, terminal=4),
    )
    return fill(columns, lines(found))


@plot("bisection")
def draw_bisection(found: Found) -> shapes.Chart | None:
    """Each compared version over the oldest one, with the interval that decided. Right of the dashed line a version is
    slower than the oldest one. Versions without a mark were not compared, or could not be."""
    every = lines(found)
    shown = [line for line in every if line.ratio.known or len(every) <= _DRAWN][:_DRAWN]
    made = [
        marks.Mark(at=at, value=line.ratio, style=1 if line.verdict == SLOW else 0, text=shown_ratio(line.ratio))
        for at, line in enumerate(shown)
        if line.ratio.known
    ]
    if not made:
        return None
    panel = shapes.Panel(
        x=f"{called(found.metric)} over that of {found.versions[0].name}",
        layers=[shapes.on(marks.dots, made)],
        axes=[shapes.Log("x")],
        level=1,
    )
    names = [canvas.short(line.version.name, 36) for line in shown]
    handles = [marks.handle(style, name, between="none") for style, name in ((0, AS_FAST), (1, SLOW))]
    return shapes.rows(names, [panel], title=_range_title(found), handles=handles)


def _range_title(found: Found) -> str:
    return f"{found.experiment or found.command}: {found.versions[0].name} to {found.versions[-1].name}"


def commands(found: Found) -> list[str]:
    """How to see the difference again."""
    result = found.result
    return [found.again(found.versions[result.low], found.versions[result.high])]


def _named(line: Line) -> str:
    """The note of a version, with its name once."""
    return line.note if line.note.startswith(line.version.name) else f"{line.version.name}: {line.note}"


def sections(found: Found) -> list[Section]:
    skipped = [f"{_named(line)}." for line in lines(found) if line.verdict == SKIPPED]
    undecided = [line.version.name for line in lines(found) if line.verdict == CANNOT_TELL]
    about = [
        "A version counts as slow if its whole interval lies above the geometric mean of 1 and the ratio of the newest "
        "version.",
        "Each comparison measures both versions in turns, by the sequential test of jaxbench ab.",
        "The chance that any comparison is wrong is at most 5 %: each gets an equal share of it.",
    ]
    named = {
        "See it again": (commands(found), Purpose.NOTE),
        "Skipped": (skipped, Purpose.NOTE),
        "Not decided": ([f"{name}: add --budget_s for more pairs." for name in undecided], Purpose.NOTE),
        "Method": (about, Purpose.NOTE),
    }
    return [Section(heading, texts, purpose) for heading, (texts, purpose) in named.items() if texts]


def write(found: Found, folder: Path, console: Console) -> None:
    """Prints the answer, and writes the page, its figure and the summary. Raises UserError."""
    files, shown = pictured("bisection", lambda: draw_bisection(found), draw_bisection.caption)
    made = Page(
        name="bisect",
        heading=f"Bisection of {_range_title(found)}",
        headlines=[sentence(found)],
        table=table(found),
        sections=sections(found),
        made_from=JSON,
        pictures=shown,
    )
    try:
        canvas.write(files, folder / "figures", "bisection")
        write_atomic(folder / SUMMARY, _markdown(found))
        write_atomic(folder / PAGE, page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the bisection into '{folder}' ({error.strerror}).") from error
    page.show(made, console)
    console.print(f"\nWritten to {folder}: {PAGE}, {SUMMARY}, {JSON}", highlight=False, soft_wrap=True)


def _markdown(found: Found) -> str:
    """The result as Markdown, for the summary of a CI job."""
    parts = [f"## {escape(_range_title(found))}", "", escape(sentence(found)), "", *table(found).markdown(escape)]
    for section in sections(found):
        parts += ["", f"**{section.heading}**", "", *(f"- {escape(text)}" for text in section.sentences)]
    return "\n".join(parts) + "\n"


def as_json(found: Found) -> documents.JsonObject:
    """The bisection for a program. Unknown numbers are null."""
    result = found.result
    slow = found.versions[result.high].name if result.exact else None
    candidates = found.versions[result.low + 1 : result.high + 1] if result.verdict == SLOWER else ()
    return dict(
        documents.plain(
            {
                "schema": SCHEMA,
                "kind": KIND,
                "question": dict(found.question),
                "verdict": result.verdict,
                "exit_code": found.exit_code,
                "sentence": sentence(found),
                "first_slow": slow,
                "candidates": [version.name for version in candidates],
                "see_again": commands(found),
                "versions": [
                    {
                        "name": line.version.name,
                        "about": line.version.about,
                        "verdict": line.verdict,
                        "ratio": line.ratio,
                        "pairs": line.pairs,
                        "note": line.note,
                        "compared": result.compared.get(number),
                    }
                    for number, line in enumerate(lines(found))
                ],
            }
        )
    )


def read(file: Path) -> tuple[Mapping[str, object], dict[str, Compared]]:
    """(question, what was compared by name) of a bisect.json. Raises UserError for a damaged one."""
    advice = "delete it, or choose a new --workdir."
    document = reading.read_document(file, KIND, SCHEMA, ("question", "versions"), advice)
    named = {str(each["name"]): each["compared"] for each in document["versions"] if each["compared"]}
    return dict(document["question"]), {name: decode(Compared, _known(each)) for name, each in named.items()}


def _known(fields: Mapping[str, object]) -> dict[str, object]:
    """Without the unknown numbers: the defaults say that they are unknown."""
    known = {name: value for name, value in fields.items() if value is not None}
    return {name: _known(value) if isinstance(value, dict) else value for name, value in known.items()}
