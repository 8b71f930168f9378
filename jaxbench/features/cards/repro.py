# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench repro`: reruns a card's config and decides whether each point is within a margin of the card's.

Each question is a ratio, new over card. Its interval comes from `features.comparison` and covers the variation
between rounds and between processes. `judge.answer` answers the question, as in `compare`. "within": the whole
interval is within the margin, so a larger difference would have been seen. "consistent": the interval contains 1 but
reaches beyond the margin, which proves nothing. A table asks several questions, so its intervals have a joint
confidence of 95 % (Bonferroni): 19 of 20 reproduced cards have no point outside, however many points they have.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ml_collections import ConfigDict
from rich.console import Console
from rich.text import Text

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.analysis import gates, run_rows
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.run_rows import Row
from jaxbench.core import same_model
from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.cards import card as cards_lib
from jaxbench.features.cards.card import Card
from jaxbench.features.cards.gallery import machine as machine_name
from jaxbench.features.cards.gallery import printable
from jaxbench.features.comparison import calibration, comparable, judge
from jaxbench.features.comparison import ratio as ratios
from jaxbench.features.comparison.comparable import FinishedRun
from jaxbench.features.comparison.judge import CANNOT_TELL, Answer, Metric
from jaxbench.features.comparison.ratio import LogTime, Ratio, Sample
from jaxbench.records import identity
from jaxbench.records.documents import flatten
from jaxbench.records.manifest import Machine
from jaxbench.report.table import ALWAYS, TEXT, Column, fill, milliseconds, ratio
from jaxbench.statistics import looks
from jaxbench.statistics.bootstrap import Estimate, RunVariance

ALPHA = 0.05  # the probability that anything in a table is outside by chance
BUSY = 0.1  # others that took more of the CPUs' time may explain a difference
MARGIN = 0.2  # a smaller difference counts as reproduced
STEP_S, EFFICIENCY = judge.METRICS["step_s"], Metric("efficiency", "1", -1, more_is_better=True)
DIFFERS = "it differs, but by more or by less than the margin"
WITHIN, OUTSIDE, CONSISTENT, NOT_JUDGED = "within", "outside", "consistent", ""
_VERDICTS = {judge.SAME: WITHIN, judge.FASTER: OUTSIDE, judge.SLOWER: OUTSIDE}
NO_ANSWER = Answer(name="", verdict=NOT_JUDGED)
_STYLES = {WITHIN: "ok", OUTSIDE: "no", CONSISTENT: "unchecked", CANNOT_TELL: "unchecked"}
_WORDS = {
    0: "Reproduced: every number is within {margin} of the card's.",
    1: "Not reproduced: some numbers differ by more than {margin} from the card's.",
    2: "Inconclusive: no number is outside, but not every number could be judged.",
    3: "Not comparable: no number of the card could be judged.",
}
_verdict = partial(Column, kind=TEXT, style=lambda word: _STYLES.get(word, "unsupported"), terminal=ALWAYS)
_COLUMNS = (
    Column("point", lambda answer: printable(answer.point), kind=TEXT, terminal=ALWAYS),
    Column(
        "ms per step", lambda answer: _change(answer.time, lambda s: milliseconds(Estimate(value=s))), terminal=ALWAYS
    ),
    Column("now / card", lambda answer: _ratio(answer.time), ratio, terminal=ALWAYS, interval=2),
    _verdict("step time", lambda answer: answer.outcome or answer.time.verdict or "not judged"),
    Column("eff. %", lambda answer: _change(answer.efficiency, lambda value: f"{100 * value:.0f}"), terminal=ALWAYS),
    Column("now / card", lambda answer: _ratio(answer.efficiency), ratio, terminal=ALWAYS, interval=1),
    _verdict("efficiency", "efficiency.verdict"),
)


@dataclass(frozen=True, kw_only=True)
class PointAgreement:
    """The verdicts on one point.

    Attributes:
      time, efficiency: a in the card, b now, and the ratio of now over the card with the joint interval.
      outcome: set if the point cannot be compared; OUTSIDE if it was correct in the card and is not now.
      why: the reason for `outcome`.
    """

    point: str
    time: Answer = NO_ANSWER
    efficiency: Answer = NO_ANSWER
    outcome: str = NOT_JUDGED
    why: str = ""

    @property
    def verdicts(self) -> tuple[str, ...]:
        return tuple(v for v in (self.outcome, self.time.verdict, self.efficiency.verdict) if v)


def agree(
    card: FinishedRun,
    now: FinishedRun,
    spreads: tuple[RunVariance, RunVariance],
    *,
    same_machine: bool,
    margin: float = MARGIN,
) -> list[PointAgreement]:
    """The verdicts on all points of both runs, the card's points first.

    spreads: the run-to-run variance of the card's machine and of this one. same_machine: whether to judge step times
    too; efficiencies are always judged. margin: as in `judge`.
    """
    mine, theirs = ({point.point: point for point in run.points} for run in (card, now))
    both = [name for name in mine if not _fault(mine[name]) and name in theirs and not _fault(theirs[name])]
    sampled = [{name: ratios.of_rounds(side[name].rounds) for name in both} for side in (mine, theirs)]
    log_times = [ratios.log_times(side, spread) for side, spread in zip(sampled, spreads, strict=True)]
    rows = [_rows(run) for run in (card, now)]
    times = {name: ratios.ratio([log_times[0][name]], [log_times[1][name]], spreads[1]) for name in both}
    shares = {name: quotient for name in both if (quotient := _share(name, rows, log_times)) is not None}
    # Bonferroni, over the questions that are judged.
    alpha = ALPHA / max(1, (len(times) if same_machine else 0) + len(shares))

    def ask(name: str, times: Ratio, sides: tuple[Sample, Sample], metric: Metric) -> Answer:
        never = judge.one_round(times)
        found = judge.answer(
            name, times, sides, metric, alpha=alpha, margin=margin, shown=alpha, never=never, advice=lambda: DIFFERS
        )
        return _in_words(found, times, alpha)

    answers = []
    for name in dict.fromkeys((*mine, *theirs)):
        if name not in times:
            answers.append(_absent(name, mine.get(name), theirs.get(name)))
            continue
        sides = sampled[0][name], sampled[1][name]
        time = ask(name, times[name], sides, STEP_S)
        if not same_machine:  # shown, because a reader wants to see it, but it says nothing about the card
            time = dataclasses.replace(time, verdict=NOT_JUDGED, why="")
        share = NO_ANSWER
        if name in shares:
            then, here = (side[name].efficiency.value for side in rows)
            share = dataclasses.replace(ask(name, shares[name], sides, EFFICIENCY), a=then, b=here)
        answers.append(PointAgreement(point=name, time=time, efficiency=share))
    return answers


def _fault(point: MeasuredPoint) -> str:
    """Why the point has no time to compare; "" if it has a correct time."""
    if not point.rounds or point.status in ("failed", "unsupported"):
        return f"{point.status} ({point.reason})"
    return f"wrong ({point.reason})" if point.check_ok is False else ""


def _absent(name: str, card: MeasuredPoint | None, now: MeasuredPoint | None) -> PointAgreement:
    """The answer for a point without a correct time on at least one side."""
    then, here = (None if point is None else _fault(point) for point in (card, now))
    if then == "" and here:  # what worked once fails here: that is a difference, not a lack of data
        return PointAgreement(point=name, outcome=OUTSIDE, why=f"right in the card, now {here}")
    if then is None:
        why = "the card does not have it"
    elif then:
        why = f"now right, in the card {then}" if here == "" else f"in the card {then}, now {here or 'missing'}"
    else:  # such as more devices than this machine has
        why = "this run does not have it"
    return PointAgreement(point=name, outcome=CANNOT_TELL, why=why)


def _rows(run: FinishedRun) -> dict[str, Row]:
    """The rows of a training by point; {} for a run of cases."""
    steps = [point for point in run.points if not point.of_case]
    return {row.point_id: row for row in run_rows.analyse(steps, config=run.config)}


def _share(name: str, rows: list[dict[str, Row]], log_times: list[dict[str, LogTime]]) -> Ratio | None:
    """The ratio of the times over the base's; None for a base, for different bases, and for more devices than cores.

    An efficiency is (work / devices) x (base time / point time), and the work is the same on both sides. So only the
    quotient of the times remains.
    """
    pair = [side[name] for side in rows if name in side]
    bases = {row.base.point for row in pair if row.base is not None and not row.point.oversubscribed}
    # Ratios of efficiencies need the same base on both sides, or they would compare two definitions.
    whole = len(pair) == 2 and all(row.base is not None and not row.point.oversubscribed for row in pair)
    if not whole or len(bases) != 1 or name in bases or any(not bases <= side.keys() for side in log_times):
        return None
    relative = [side[name].over(side[min(bases)]) for side in log_times]
    return ratios.ratio(relative[:1], relative[1:])  # no variation between sessions: it cancels in an efficiency


def _in_words(answer: Answer, times: Ratio, alpha: float) -> Answer:
    """The answer in the words of a rerun. CONSISTENT: the interval contains 1, but reaches beyond the margin."""
    if answer.verdict == CANNOT_TELL and abs(times.log) <= times.half(alpha):
        return dataclasses.replace(answer, verdict=CONSISTENT, why="")
    return dataclasses.replace(answer, verdict=_VERDICTS.get(answer.verdict, answer.verdict))


def exit_code(answers: list[PointAgreement]) -> int:
    """0: all within; 1: some outside; 2: some inconclusive; 3: nothing could be judged."""
    verdicts = [verdict for answer in answers for verdict in answer.verdicts]
    judged = [verdict for verdict in verdicts if verdict in (WITHIN, OUTSIDE, CONSISTENT)]
    if OUTSIDE in verdicts:
        return 1
    # Only points that are missing or failed on a side: then nothing was compared at all.
    if not judged and not any(q.verdict for a in answers for q in (a.time, a.efficiency)):
        return 3
    return 2 if {CANNOT_TELL, CONSISTENT} & {*verdicts} else 0


def hidden(answers: list[PointAgreement]) -> list[str]:
    """The largest relative differences that the intervals could hide, such as "13 % in a step time"."""
    sentences = []
    for name, what in (("time", "a step time"), ("efficiency", "an efficiency")):
        questions = [getattr(answer, name) for answer in answers]
        reach = [
            q.ratio.hi / q.ratio.value - 1
            for q in questions
            if q.verdict in (WITHIN, CONSISTENT) and q.ratio.has_interval
        ]
        sentences += [f"{100 * max(reach):.0f} % in {what}"] if reach else []
    return sentences


def show_agreement(
    card: Card,
    answers: list[PointAgreement],
    spreads: tuple[RunVariance, RunVariance],
    console: Console,
    *,
    same_machine: bool,
    margin: float,
    others: float = 0.0,
) -> None:
    """others: the share of the CPUs' time that other processes took during the rerun."""
    console.print()
    console.print(Text(f"{printable(card.path.name)}, rerun", style="bold"))
    console.print(fill(_COLUMNS, answers).terminal(console.width))
    for answer in answers:
        for what, why in (("", answer.why), ("step time", answer.time.why), ("efficiency", answer.efficiency.why)):
            if why:
                console.print(Text(printable(f"{answer.point}: {what}{', ' if what else ''}{why}.")), soft_wrap=True)
    code, reach = exit_code(answers), " and ".join(hidden(answers))
    counts = Counter(verdict for answer in answers for verdict in answer.verdicts)
    counted = ", ".join(f"{counts[word]} {word}" for word in _STYLES if counts[word])
    words = _WORDS[code].format(margin=f"{100 * margin:g} %")
    if code == 2 and not counts[CANNOT_TELL]:  # only intervals that contain 1: say how much they could hide
        words = (
            f"Consistent, but only differences above {reach} would have been seen; the margin is {100 * margin:g} %."
        )
    if code == 1 and others >= BUSY:
        words = (
            f"Not reproduced, but this machine was busy: others took {100 * others:.0f} % of its CPUs' time. Measure "
            "again when they have ended."
        )
    console.print(Text(words + (f" ({counted})" if counted else ""), style="bold"))
    sources = dict.fromkeys(f"{100 * spread.sd:.1f} %, {spread.source}" for spread in spreads)
    for sentence in (
        "The intervals have a joint confidence of 95 %. within: the whole interval is within the margin; consistent: "
        "the interval contains 1.",
        f"This can hide differences of up to {reach}; more rounds or processes help." if reach else "",
        f"A/A spread (processes of the same program): {'; '.join(sources)}.",
        "" if same_machine else "Step times of another kind of machine are not judged.",
    ):
        if sentence:
            console.print(Text(sentence, style="dim"), soft_wrap=True)


def _change(question: Answer, show: Callable[[float], str]) -> str:
    """The value in the card and now: "10 → 12"; "" unless both are known."""
    known = [show(value) for value in (question.a, question.b) if math.isfinite(value)]
    return " → ".join(known) if len(known) == 2 else ""


def _ratio(question: Answer) -> Estimate:
    """The ratio, without its interval if that is too wide to be informative."""
    ratio = question.ratio
    # Two processes on one side give intervals over many orders of magnitude.
    return ratio if ratio.has_interval and ratio.hi < 100 else ratio.alone()


def repro(card_path: Path, workdir: Path, console: Console, *, margin: float = MARGIN) -> int:
    """Reruns the card's config in `workdir` and compares. Continues an earlier run of that config in `workdir`.

    Returns:
      0 all within, 1 some outside, 2 inconclusive, 3 not comparable.

    Raises:
      UserError: the card is damaged, or this jaxbench does not know its config. A KeyboardInterrupt loses no rounds.
    """
    import jax

    from jaxbench.machine import manifest as manifest_lib
    from jaxbench.sweep import run as runner

    card = cards_lib.read(card_path)
    then = card.run()
    # All refusals come before the run, which takes minutes.
    name = source(card)
    config, notes = config_of(card, name)
    jax.config.update("jax_platforms", "cpu")  # only workers may start accelerators
    here = manifest_lib.probe(str(config.mesh.platform))
    then_sha, now_sha = card.manifest.get("experiment_sha256"), discovery.digest(name)
    if then_sha != now_sha:
        hashes = "the card has no sha256"
        if then_sha:
            hashes = f"sha256 {then_sha[:8]}... in the card, {now_sha[:8]}... here"
        notes.insert(0, f"The source of the experiment differs ({hashes}), which may explain differences.")
    for sentence in (*other_machine(card, here), *notes):
        console.print(Text(sentence, style="yellow"), soft_wrap=True)
    runner.run(name, config, workdir, console, looks.look)
    return compare(card, then, workdir, console, margin)


def compare(card: Card, then: FinishedRun, workdir: Path, console: Console, margin: float = MARGIN) -> int:
    """Compares a finished run with the card and prints the table. then: the card's own run. Returns the exit code.

    Raises UserError if the run measured nothing, or another model.
    """
    now = comparable.read(workdir)
    other = comparable.models(then, now)
    if {*other} - {"flops"}:  # a newer version may count the FLOPs of the same model differently
        differences = same_model.model_sentence(other, "in the card", "now")
        raise UserError(f"the model of '{workdir}' is not that of the card ({differences}): compare equal models.")
    same = not identity.hardware(then.manifest, now.manifest)
    # Each side with the variation of its own machine, if that was calibrated.
    named = str(card.data["name"].get("experiment", ""))
    spreads = calibration.spread_of(then.manifest, named), calibration.spread_of(now.manifest, named)
    answers = agree(then, now, spreads, same_machine=same, margin=margin)
    others = max((each.others for each in map(gates.load_of, now.points) if math.isfinite(each.others)), default=0.0)
    show_agreement(card, answers, spreads, console, same_machine=same, margin=margin, others=others)
    for sentence in comparable.software(then, now):
        console.print(Text(f"A is the card, B this run. {sentence}.", style="dim"), soft_wrap=True)
    return exit_code(answers)


def source(card: Card) -> str:
    """The card's experiment: the file in the card's command, else its name.

    Raises UserError if it does not exist here.
    """
    name = str(card.data["config"].get("experiment", ""))
    command = card.manifest.get("command")
    words = [str(word) for word in command] if isinstance(command, list) else []  # the manifest is not decoded
    file = next((word for word in words if word.endswith(".py") and Path(word).expanduser().is_file()), "")
    if not file and name not in discovery.experiments():
        known = did_you_mean(name, discovery.experiments())
        raise UserError(f"the experiment '{name}' of the card '{card.path}' does not exist here: {known}")
    return file or name


def config_of(card: Card, experiment: str) -> tuple[ConfigDict, list[str]]:
    """The card's config with the types of this jaxbench, and a sentence for each field that the card lacks.

    Raises UserError if a field is unknown here or has another type.
    """
    try:
        config = config_lib.restored(experiment, card.data["config"])
    except UserError as error:
        raise UserError(f"the card '{card.path}' cannot be run again: {error}") from error
    fields, given = flatten(config_lib.plain(config)), flatten(card.data["config"])
    missing = [name for name in fields if name not in given]  # they get today's defaults, which may differ from then
    return config, [f"The card is older than the setting {name}, which is now {fields[name]!r}." for name in missing]


def other_machine(card: Card, here: Machine) -> list[str]:
    """A warning if the card is from another kind of machine. here: the manifest of this machine."""
    other = identity.hardware(card.manifest, here)
    if not other:
        return []
    return [
        f"The card is from another kind of machine, {machine_name(card)} ({identity.sentence(other)}): "
        "efficiencies are judged, step times are only shown."
    ]
