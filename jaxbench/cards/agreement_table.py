# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The output of `jaxbench repro`: one line per point, and how large a difference "within" could hide."""

from __future__ import annotations

import math
from collections import Counter

from rich.console import Console
from rich.text import Text

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.spread import Spread
from jaxbench.cards import agreement
from jaxbench.cards.agreement import CANNOT_TELL, CONSISTENT, OUTSIDE, WITHIN, PointAgreement, Question
from jaxbench.cards.layout import Card
from jaxbench.cards.rows import printable
from jaxbench.report.table import ALWAYS, TEXT, Column, fill, milliseconds, ratio

_STYLES = {WITHIN: "ok", OUTSIDE: "no", CONSISTENT: "unchecked", CANNOT_TELL: "unchecked"}
_WORDS = {
    0: "Reproduced: every number is within {margin} of the card's.",
    1: "Not reproduced: some numbers differ by more than {margin} from the card's.",
    2: "Inconclusive: no number is outside, but not every number could be judged.",
    3: "Not comparable: no number of the card could be judged.",
}


def show(
    card: Card, answers: list[PointAgreement], spreads: tuple[Spread, Spread], console: Console, *, same_machine: bool,
    margin: float,
) -> None:  # fmt: skip
    console.print()
    console.print(Text(f"{printable(card.path.name)}, rerun", style="bold"))
    console.print(fill(_COLUMNS, answers).terminal(console.width))
    for answer in answers:
        for what, why in (("", answer.why), ("step time", answer.time.why), ("efficiency", answer.efficiency.why)):
            if why:
                console.print(Text(printable(f"{answer.point}: {what}{', ' if what else ''}{why}.")), soft_wrap=True)
    code = agreement.exit_code(answers)
    counts = Counter(verdict for answer in answers for verdict in answer.verdicts)
    counted = ", ".join(f"{counts[word]} {word}" for word in _STYLES if counts[word])
    words = _WORDS[code].format(margin=f"{100 * margin:g} %")
    if code == 2 and not counts[CANNOT_TELL]:
        seen = " and ".join(_widest(answers))
        words = f"Consistent, but only differences above {seen} would have been seen; the margin is {100 * margin:g} %."
    console.print(Text(words + (f" ({counted})" if counted else ""), style="bold"))
    for sentence in _remarks(answers, spreads, same_machine=same_machine):
        console.print(Text(sentence, style="dim"), soft_wrap=True)


def _style(word: str) -> str:
    return _STYLES.get(word, "unsupported")


def _change(card: str, now: str) -> str:
    return f"{card} → {now}" if card and now else ""


def _ratio(question: Question) -> Estimate:
    """The ratio, without its interval if that is too wide to be informative."""
    ratio = question.ratio
    return ratio if ratio.has_interval and ratio.hi < 100 else ratio.alone()


def _times(answer: PointAgreement) -> str:
    card, now = (milliseconds(Estimate(value=value)) for value in (answer.time.card, answer.time.now))
    return _change(card, now)


def _shares(answer: PointAgreement) -> str:
    share = answer.efficiency
    return _change(*(f"{100 * v:.0f}" if math.isfinite(v) else "" for v in (share.card, share.now)))


_COLUMNS = (
    Column("point", lambda answer: printable(answer.point), kind=TEXT, terminal=ALWAYS),
    Column("ms per step", _times, terminal=ALWAYS),
    Column("now / card", lambda answer: _ratio(answer.time), ratio, terminal=ALWAYS, interval=2),
    Column("step time", lambda answer: answer.outcome or answer.time.verdict or "not judged", kind=TEXT,
           style=_style, terminal=ALWAYS),
    Column("eff. %", _shares, terminal=ALWAYS),
    Column("now / card", lambda answer: _ratio(answer.efficiency), ratio, terminal=ALWAYS, interval=1),
    Column("efficiency", "efficiency.verdict", kind=TEXT, style=_style, terminal=ALWAYS),
)  # fmt: skip


def _widest(answers: list[PointAgreement]) -> list[str]:
    """The largest differences that could be missed: "13 % in a step time", "2 % in an efficiency"."""
    names = {"time": "a step time", "efficiency": "an efficiency"}
    return [f"{100 * share:.0f} % in {names[name]}" for name, share in agreement.widest(answers).items()]


def _remarks(answers: list[PointAgreement], spreads: tuple[Spread, Spread], *, same_machine: bool) -> list[str]:
    sentences = [
        "The intervals have a joint confidence of 95 %. within: the whole interval is within the margin; consistent: "
        "the interval contains 1."
    ]
    if hidden := _widest(answers):
        sentences.append(f"This can hide differences of up to {' and '.join(hidden)}; more rounds or processes help.")
    sources = dict.fromkeys(f"{100 * spread.sd:.1f} %, {spread.source}" for spread in spreads)
    sentences.append(f"A/A spread (processes of the same program): {'; '.join(sources)}.")
    return sentences if same_machine else [*sentences, "Step times of another kind of machine are not judged."]
