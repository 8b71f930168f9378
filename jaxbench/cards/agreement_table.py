# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What `jaxbench repro` prints: a line a point, and how much could hide behind the word "within"."""

from __future__ import annotations

import math
from collections import Counter

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxbench.analysis.intervals import Estimate
from jaxbench.cards import agreement
from jaxbench.cards.agreement import CANNOT_TELL, OUTSIDE, WITHIN, Answer, Question
from jaxbench.cards.layout import Card
from jaxbench.cards.rows import printable
from jaxbench.report import tables
from jaxbench.verdicts.ratio import Spread

_STYLES = {WITHIN: "green", OUTSIDE: "bold red", CANNOT_TELL: "yellow"}
_WORDS = {
    0: "Reproduced: all is within its interval.",
    1: "Not reproduced: some is outside its interval.",
    2: "Cannot tell: nothing is outside its interval, and not all could be judged.",
    3: "Not comparable: no number of the card could be judged.",
}


def show(
    card: Card, answers: list[Answer], spreads: tuple[Spread, Spread], console: Console, *, same_machine: bool
) -> None:
    console.print()
    console.print(Text(f"{printable(card.path.name)}, run again", style="bold"))
    console.print(_table(answers))
    for answer in answers:
        for what, why in (("", answer.why), ("step time", answer.time.why), ("efficiency", answer.efficiency.why)):
            if why:
                console.print(Text(printable(f"{answer.point}: {what}{', ' if what else ''}{why}.")), soft_wrap=True)
    code = agreement.exit_code(answers)
    counts = Counter(verdict for answer in answers for verdict in answer.verdicts)
    counted = ", ".join(f"{counts[word]} {word}" for word in (WITHIN, OUTSIDE, CANNOT_TELL) if counts[word])
    console.print(Text(_WORDS[code] + (f" ({counted})" if counted else ""), style="bold"))
    for sentence in _remarks(answers, spreads, same_machine=same_machine):
        console.print(Text(sentence, style="dim"), soft_wrap=True)


def _table(answers: list[Answer]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("point", overflow="fold")
    for name in ("ms per step", "now / card"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("step time", no_wrap=True)
    for name in ("eff. %", "now / card"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("efficiency", no_wrap=True)
    for answer in answers:
        word = answer.outcome or answer.time.verdict
        time, share = answer.time, answer.efficiency
        table.add_row(
            Text(printable(answer.point)),
            Text(_change(*(tables.milliseconds(Estimate(value=value)) for value in (time.card, time.now)))),
            Text(_ratio(time)),
            Text(word or "not judged", style=_STYLES.get(word, "dim")),
            Text(_change(*(f"{100 * v:.0f}" if math.isfinite(v) else "" for v in (share.card, share.now)))),
            Text(_ratio(share)),
            Text(share.verdict, style=_STYLES.get(share.verdict, "dim")),
        )
    return table


def _change(card: str, now: str) -> str:
    return f"{card} → {now}" if card and now else ""


def _ratio(question: Question) -> str:
    """Without ends that are so far away that they say nothing."""
    ratio = question.ratio
    return tables.ratio(ratio if ratio.has_interval and ratio.hi < 100 else ratio.alone())


def _remarks(answers: list[Answer], spreads: tuple[Spread, Spread], *, same_machine: bool) -> list[str]:
    widest = agreement.widest(answers)
    said = ["Intervals of now / card hold all together with 95 %; within: 1 lies inside."]
    names = {"time": "a step time", "efficiency": "an efficiency"}
    hidden = [f"{100 * share:.0f} % in {names[name]}" for name, share in widest.items()]
    if hidden:
        said.append(f"Within hides differences of up to {' and '.join(hidden)}: more rounds or processes show less.")
    sources = dict.fromkeys(f"{100 * spread.sd:.1f} %, {spread.source}" for spread in spreads)
    said.append(f"What processes of one program differ by: {'; '.join(sources)}.")
    return said if same_machine else [*said, "Step times of another kind of machine are not judged."]
