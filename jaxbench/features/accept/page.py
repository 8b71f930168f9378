# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a test: one row per host and device, one column per probe. And the same on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from jaxbench.analysis import quantities
from jaxbench.core.store import write_atomic
from jaxbench.features.accept import files, rule, sentences
from jaxbench.features.accept.outcome import ALL, FLEET, Acceptance, Judged
from jaxbench.features.accept.probe import BYTES, FLOPS
from jaxbench.features.accept.probes import PROBES, TITLES
from jaxbench.report import page
from jaxbench.report.page import Page, Purpose, Section
from jaxbench.report.table import ALWAYS, TEXT, Cell, Column, Table, TableRow, plain

DEFINITION = "accepting-a-machine"
STYLES = {rule.PASS: "ok", rule.PLAUSIBLE: "ok", rule.CANNOT_TELL: "missing", rule.NOT_JUDGED: "unsupported"}
STYLES |= dict.fromkeys(rule.BAD, "no")
WEIGHT = (*rule.BAD, rule.CANNOT_TELL, rule.PLAUSIBLE, rule.PASS, rule.NOT_JUDGED)
HEADINGS = {
    rule.PASS: "Every host passed.",
    rule.FAIL: "Failed: at least one host is not as it should be.",
    rule.CANNOT_TELL: "Cannot tell: some questions are open.",
}


def worst(cells: Sequence[Judged]) -> Judged:
    """The one that decides: of several links or cores of a device, the worst, and the slowest of those."""
    return min(cells, key=lambda cell: (WEIGHT.index(cell.verdict), cell.share if cell.share is not None else 1.0))


def table(result: Acceptance, *, terminal: bool) -> Table:
    """One row per host and device. terminal: without intervals, and probes as rows if there are few devices."""
    names = [name for name in (*TITLES, "answer") if any(cell.probe == name for cell in result.cells)]
    columns = [Column(name, kind=TEXT, terminal=ALWAYS) for name in ("host", "device", "verdict")]
    columns += [Column(TITLES.get(name, name), kind=TEXT, terminal=ALWAYS, definition=DEFINITION) for name in names]
    lines = []
    for host in (*(each.name for each in result.hosts), FLEET):
        own = [cell for cell in result.cells if cell.host == host]
        for number, device in enumerate(
            sorted({cell.device for cell in own}, key=lambda each: (each == ALL, each.zfill(6)))
        ):
            here = [cell for cell in own if cell.device == device]
            verdict = rule.worst([cell.verdict for cell in here])
            cells: list[str | Cell] = [host, device, Cell(verdict, STYLES[verdict])]
            for name in names:
                of_probe = [cell for cell in here if cell.probe == name]
                cells.append(_cell(worst(of_probe), brief=terminal) if of_probe else "")
            lines.append(TableRow(cells=tuple(cells), first=number == 0))
    return Table(columns=tuple(columns), lines=tuple(lines), note=_note(result))


def _note(result: Acceptance) -> str:
    """What the table shows, and the references in the order of trust."""
    against = "; then ".join(result.against)
    return (
        f"Measured share of the reference, with its interval, in {result.rounds} rounds. A share passes above "
        f"{100 * (1 - result.margin):g} %. References in the order of trust: {against}."
    )


def _cell(cell: Judged, *, brief: bool) -> Cell:
    """The share with its interval, and the verdict if it is neither pass nor fail."""
    if cell.share is None:
        return Cell(cell.verdict, STYLES[cell.verdict])
    text = f"{100 * cell.share:.1f} %"
    if not brief:
        text += f" [{100 * (cell.lo or 0):.1f}, {100 * (cell.hi or 0):.1f}]"
    known = cell.verdict if cell.verdict not in (rule.PASS, rule.FAIL) else ""
    return Cell(f"{text} {known}".strip(), STYLES[cell.verdict])


def transposed(result: Acceptance) -> Table:
    """For the terminal: one line per probe, with the worst unit of each verdict and its rate."""
    lines = []
    for name in (*TITLES, "answer"):
        cells = [cell for cell in result.cells if cell.probe == name]
        if not cells:
            continue
        one = worst(cells)
        where = one.host if one.device == ALL else f"{one.host} {one.unit}"
        rates = [cell.rate for cell in cells if cell.rate]
        shown = _rate(name, sorted(rates)[len(rates) // 2]) if rates else ""
        verdict = Cell(one.verdict, STYLES[one.verdict])
        share = "" if one.share is None else sentences.percent(one)
        lines.append((TITLES.get(name, name), verdict, share, where, shown))
    headings = dict.fromkeys(("probe", "worst verdict", "share", "where", "median rate"), TEXT)
    return plain(headings, lines, note=_note(result))


def _rate(probe: str, rate: float) -> str:
    """A rate in the unit of its probe; a latency for a probe of calls."""
    unit = PROBES[probe].unit
    if unit == FLOPS:
        return quantities.flops(rate, "bfloat16" if probe == "product_bf16" else "float32")
    return quantities.per_second(rate) if unit == BYTES else quantities.seconds(1 / rate)


def _judges(result: Acceptance) -> list[str]:
    """Which reference judged what."""
    by: dict[str, list[str]] = {}
    for cell in result.cells:
        if cell.reference:
            by.setdefault(cell.reference, []).append(TITLES.get(cell.probe, cell.probe))
    words = {rule.NOTHING: "Without anything to compare with"}
    return [
        f"{words.get(reference, f'Compared with {reference}')}: {', '.join(dict.fromkeys(titles))}."
        for reference, titles in by.items()
    ]


def _history(folder: Path, result: Acceptance) -> list[str]:
    """Earlier tests of these hosts."""
    lines = []
    for host in result.hosts:
        for earlier in files.history(folder, host.name):
            if earlier.started == result.started:
                continue
            verdict = next(each.verdict for each in earlier.hosts if each.name == host.name)
            shares = [
                f"{TITLES[cell.probe]} {_rate(cell.probe, cell.rate)}"
                for cell in earlier.cells
                if cell.host == host.name
                and cell.probe in ("product_bf16", "triad")
                and cell.device == "0"
                and cell.rate
            ]
            lines.append(f"{host.name}, {earlier.started}: {verdict} ({', '.join(shares) or 'no rates'}).")
    return lines


def write(folder: Path, result: Acceptance, console: Console) -> None:
    """Writes accept.html and prints the verdict."""
    bad = [sentence for sentence in result.sentences]
    purpose = Purpose.SHORTFALL if result.verdict == rule.FAIL else Purpose.NOTE
    sections = [
        Section("What is wrong" if result.verdict == rule.FAIL else "What is open", bad, purpose, DEFINITION),
        Section("Which reference judged what", _judges(result), Purpose.DETAIL, DEFINITION),
        Section("Notes", result.notes, Purpose.NOTE),
        Section("Earlier tests", _history(folder, result), Purpose.DETAIL),
    ]
    passed, count = len(result.passing()), len(result.hosts)
    devices = sum(len(host.kinds) for host in result.hosts)
    made = Page(
        name="accept",
        heading=f"Acceptance: {', '.join(host.name for host in result.hosts[:4])}{' ...' * (count > 4)}",
        headlines=[
            HEADINGS[result.verdict],
            f"{passed} of {count} host{'s' * (count != 1)} passed; {devices} device{'s' * (devices != 1)}, "
            f"{result.rounds} rounds, {result.seconds:.0f} s.",
        ],
        pictures=[],
        table=table(result, terminal=False),
        brief=transposed(result),
        sections=[section for section in sections if section.sentences],
        definition=DEFINITION,
        sources=[("accept.json", result.document())],
        made_from="accept.json",
    )
    write_atomic(folder / files.PAGE, page.render(made))
    page.show(made, console)
    console.print(f"\nPage and files: {folder / files.PAGE}", highlight=False, soft_wrap=True)
