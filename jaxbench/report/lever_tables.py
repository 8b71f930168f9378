# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The terminal table of a sweep of levers: one line an arm, readable at 100 columns."""

from __future__ import annotations

import math

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from jaxbench.analysis.arms import Arm
from jaxbench.analysis.quantities import scaled
from jaxbench.report import tables
from jaxbench.report.lever_findings import LeverFindings

TITLES = {
    "precision": "what a number format changes",
    "remat": "memory saved against time paid",
    "batch": "what a larger batch buys",
    "accumulate": "what gradient accumulation costs",
    "freeze": "what frozen parameters save",
    "ladder": "what each rung of the ladder gives",
    "phases": "where the step's time goes",
    "inputs": "whether the step waits for data",
    "inference": "latency against throughput",
    "arms": "what each setting changes",
}
MOST = 40  # lines; the page has all
_SENTENCES = 6  # of a section on the terminal
_WIDE = 96  # columns below which intervals, batch and memory are left out
_STYLES = {"faster": "green", "slower": "yellow"}


def heading(findings: LeverFindings) -> str:
    """The title of the terminal table and of the page."""
    return f"{findings.experiment}: {TITLES[findings.view]}"


def show(findings: LeverFindings, console: Console) -> None:
    """Prints the headlines, the table and every section, cut where it is long: the page has all."""
    console.print()
    console.print(Text(heading(findings), style="bold"))
    for sentence in findings.headlines:
        console.print(Text(sentence))
    console.print()
    console.print(_table(findings, wide=console.width >= _WIDE))
    console.print()
    console.print(Text(legend(findings) + _cut(len(findings.arms)), style="dim"))
    for name, sentences in findings.sections():
        shown = list(sentences[:_SENTENCES])
        if len(sentences) > len(shown):
            shown.append(f"and {len(sentences) - len(shown)} more on the page.")
        console.print(Text(name, style="bold"))
        console.print(*(Padding(Text(sentence), (0, 0, 0, 2)) for sentence in shown), sep="")


def _cut(count: int) -> str:
    return f" Shown: the first {MOST} of {count} arms; all are on the page." if count > MOST else ""


def _table(findings: LeverFindings, *, wide: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    longest = max((len(arm.label) for arm in findings.arms), default=0)
    table.add_column("arm", overflow="fold", min_width=min(longest, 24 if wide else 14))
    result, sizes = outcome_name(findings), batches(findings)
    names = ["devices", *(["batch"] if sizes else []), "ms per step", "x time", *(["x faster"] if sizes else [])]
    names += [*(["memory"] if wide else []), *([result] if result and wide else [])]
    for name in names:
        table.add_column(Text(name), justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("state", no_wrap=True)
    before = None
    for place in findings.places:
        for arm in place.arms[: MOST if before is None else max(0, MOST - table.row_count)]:
            if before is not None and before is not place:
                table.add_section()
            before = place
            _add(table, arm, result if wide else "", sizes=sizes, wide=wide)
    return table


def batches(findings: LeverFindings) -> bool:
    """Whether arms of one place differ in their batch, so that time and speed are not each other's inverse."""
    return any(len({arm.point.global_batch for arm in place.arms}) > 1 for place in findings.places)


def _add(table: Table, arm: Arm, result: str, *, sizes: bool, wide: bool) -> None:
    point = arm.point
    cells = [
        arm.label,
        f"{point.devices}{'°' if point.oversubscribed else ' '}",
        *([str(point.global_batch)] if sizes else []),
        tables.milliseconds(arm.timing.step_s, interval=False),
        ratio(arm, "ratio", interval=wide),
        *([ratio(arm, "speedup", interval=False)] if sizes else []),
        *([memory(arm)] if wide else []),
        *([outcome(arm, result)] if result else []),
    ]
    state = tables.state(arm.row)
    style = "dim" if point.oversubscribed else ""
    texts = map(Text, cells)  # as strings they would be read as markup
    verdict = Text(arm.verdict, style=_STYLES.get(arm.verdict, ""))
    table.add_row(*texts, verdict, Text(state, style=tables.colour(state)), style=style)


def ratio(arm: Arm, which: str, *, interval: bool = True) -> str:
    """ "0.61 [0.59, 0.63]"; "1" of the baseline; no interval where it would be around a meaningless number."""
    value = getattr(arm, which)
    if arm.row is arm.baseline:
        return "1" if value.known else ""
    return tables.ratio(value if interval and not arm.point.oversubscribed else value.alone())


def memory(arm: Arm) -> str:
    """Per device, by the compiler's count."""
    return scaled(arm.peak_bytes, "B") if math.isfinite(arm.peak_bytes) else ""


def outcome_name(findings: LeverFindings) -> str:
    """The one outcome that the terminal has room for; "" where no arm has any."""
    known = ("final_accuracy", "waited_share", "final_loss")
    return next((n for n in known if any(math.isfinite(arm.outcome(n)) for arm in findings.arms)), "").replace("_", " ")


def outcome(arm: Arm, name: str) -> str:
    value = arm.outcome(name.replace(" ", "_"))
    return f"{value:.3f}" if math.isfinite(value) else ""


def legend(findings: LeverFindings) -> str:
    """What the numbers and marks of the table mean."""
    faster = "; x faster: examples/s over its" if batches(findings) else ""
    text = f"x time: step time over that of the baseline, the first arm of the same place{faster}. "
    return text + tables.legend(findings.rows)
