# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""False alarms and misses of `jaxbench accept` in simulated fleets, next to two rules that others use.

Each fleet has 8 to 512 hosts, and 0 to 5 of them are slow by 3 to 30 %. The noise of a host's rounds is that of real
rounds on an H100: a stretch of consecutive rounds of a committed run, with its drift and outliers. Healthy hosts differ
by SPREAD. The same data are judged by three rules:

- accept: the share of the fleet's median, with its interval, at a family-wise error rate of 5 % over hosts and probes;
- NVIDIA's Exemplar Cloud: one repeat; a host passes above 95 % of the reference (which is known exactly here);
- Megatron-LM: one repeat; a host is flagged if it is more than a standard deviation and 10 % slower than the mean.

Writes docs/figures/accept/fleets.{svg,pdf,png} and docs/figures/accept/fleets.csv.
Run: python -m benchmarks.accept_fleets [--fleets=40]
Exit code 1 if a fleet has a false alarm of accept more often than in 5 % (plus the sampling error).
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from jaxbench.core.schema import RoundRecord
from jaxbench.core.store import RunFolder
from jaxbench.features.accept import rule
from jaxbench.report.drawing import canvas, marks
from jaxbench.report.drawing.axes import entitle
from jaxbench.report.drawing.canvas import Sheet
from jaxbench.statistics.bootstrap import Estimate

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "figures" / "accept"
RUNS = ("gpt", "cnn", "machine/matmul")  # below docs/figures/h100
HOSTS, SLOW, LOSSES = (8, 32, 128, 512), (0, 1, 5), (0.03, 0.05, 0.1, 0.2, 0.3)
PROBES = 10  # of each host, which share the error rate
LOOKS = (16, 22)  # rounds at which the rule is asked
SPREAD = 0.01  # standard deviation between healthy hosts, relative
MARGIN = 0.05
GOAL = 0.05
ACCEPT, EXEMPLAR, MEGATRON = "accept", "Exemplar Cloud", "Megatron-LM"
RULES = (ACCEPT, EXEMPLAR, MEGATRON)


@dataclass(frozen=True, kw_only=True)
class Line:
    """Fleets of one kind under one rule. alarms: fleets with a healthy host that was flagged. found, open, missed: slow
    hosts that were flagged, that could not be told, and that passed."""

    rule: str
    hosts: int
    slow: int
    loss: float
    fleets: int
    alarms: int
    found: int
    open: int
    missed: int

    @property
    def healthy(self) -> bool:
        """Whether most hosts are healthy. Otherwise the median of the fleet is slow, and only a card finds it."""
        return 2 * self.slow < self.hosts


def noises() -> list[np.ndarray]:
    """For each point of the committed runs with enough rounds, the logarithms of its round times, with mean 0."""
    found = []
    for name in RUNS:
        times: dict[str, list[float]] = {}
        for record in RunFolder(ROOT / "docs" / "figures" / "h100" / name).records():
            if isinstance(record, RoundRecord):
                times.setdefault(record.point, []).append(float(np.median(record.block_s)) / record.steps)
        found += [np.log(each) - np.mean(np.log(each)) for each in times.values() if len(each) >= max(LOOKS)]
    return found


def fleet(random: np.random.Generator, known: Sequence[np.ndarray], hosts: int, losses: Sequence[float]) -> np.ndarray:
    """(hosts, rounds) logarithms of rates. losses: of the first hosts, relative."""
    logs = np.empty((hosts, max(LOOKS)))
    for host in range(hosts):
        noise = known[random.integers(len(known))]
        begin = random.integers(len(noise) - max(LOOKS) + 1)
        logs[host] = -noise[begin : begin + max(LOOKS)] + SPREAD * random.standard_normal()
    logs[: len(losses)] += np.log1p(-np.asarray(losses))[:, None]
    return logs


def by_accept(logs: np.ndarray) -> list[str]:
    """The verdict of each host."""
    verdicts: list[str] = []
    for look, rounds in enumerate(LOOKS, start=1):
        alpha = rule.level(PROBES * len(logs), look)
        found = rule.intervals(rule.of_fleet(logs[:, :rounds]), np.zeros(rounds, dtype=int), alpha)
        verdicts = [rule.verdict(each, MARGIN) for each in found]
        if rule.CANNOT_TELL not in verdicts:
            break
    return verdicts


def by_exemplar(logs: np.ndarray) -> list[str]:
    return [rule.FAIL if math.exp(first) < 0.95 else rule.PASS for first in logs[:, 0]]


def by_megatron(logs: np.ndarray) -> list[str]:
    times = np.exp(-logs[:, 0])
    slow = (times > times.mean() + times.std()) & (times > 1.1 * times.mean())
    return [rule.FAIL if each else rule.PASS for each in slow]


JUDGES: dict[str, Callable[[np.ndarray], list[str]]] = dict(
    zip(RULES, (by_accept, by_exemplar, by_megatron), strict=True)
)


def simulate(fleets: int, seed: int = 0) -> list[Line]:
    random, known, lines = np.random.default_rng(seed), noises(), []
    for hosts in HOSTS:
        for slow in SLOW:
            for loss in LOSSES if slow else (0.0,):
                drawn = [fleet(random, known, hosts, [loss] * slow) for _ in range(fleets)]
                for name, judge in JUDGES.items():
                    verdicts = [judge(logs) for logs in drawn]
                    of_slow = [verdict for each in verdicts for verdict in each[:slow]]
                    lines.append(
                        Line(
                            rule=name,
                            hosts=hosts,
                            slow=slow,
                            loss=loss,
                            fleets=fleets,
                            alarms=sum(rule.FAIL in each[slow:] for each in verdicts),
                            found=of_slow.count(rule.FAIL),
                            open=of_slow.count(rule.CANNOT_TELL),
                            missed=of_slow.count(rule.PASS),
                        )
                    )
        sys.stderr.write(f"{hosts} hosts\n")
    return lines


def proportion(count: int, of: int) -> Estimate:
    """A share with its 95 % interval (Wilson 1927)."""
    if not of:
        return Estimate()
    p, z = count / of, 1.96
    middle, half = (p + z * z / 2 / of), z * math.sqrt(p * (1 - p) / of + z * z / 4 / of / of)
    scale = 1 + z * z / of
    return Estimate(value=p, lo=max(0.0, (middle - half) / scale), hi=min(1.0, (middle + half) / scale))


def read(path: Path = FOLDER / "fleets.csv") -> list[Line]:
    """The committed results."""
    with open(path, newline="", encoding="utf-8") as file:
        return [
            Line(
                rule=row["rule"],
                loss=float(row["loss"]),
                **{name: int(row[name]) for name in ("hosts", "slow", "fleets", "alarms", "found", "open", "missed")},
            )
            for row in csv.DictReader(file)
        ]


def draw(lines: Sequence[Line]) -> Figure:
    """False alarms by the number of hosts, and slow hosts that were found by how slow they are."""
    sheet = Sheet(1, 2, heights=[3.0])
    alarms, found = sheet.panels[0]
    for style, name in enumerate(RULES):
        own = [line for line in lines if line.rule == name]
        made = []
        for at, hosts in enumerate(HOSTS):
            some = [line for line in own if line.hosts == hosts]
            share = proportion(sum(line.alarms for line in some), sum(line.fleets for line in some))
            made.append(marks.Mark(at=at + 0.2 * (style - 1), value=share, style=style))
        marks.dots(alarms, made)
        made = []
        for at, loss in enumerate(LOSSES):
            some = [line for line in own if line.loss == loss and line.healthy]
            share = proportion(sum(line.found for line in some), sum(line.slow * line.fleets for line in some))
            made.append(marks.Mark(at=at + 0.2 * (style - 1), value=share, style=style))
        marks.dots(found, made)
    alarms.axvline(GOAL, color="0.5", linewidth=0.8, linestyle="--")
    sheet.names(alarms, [f"{hosts} hosts" for hosts in HOSTS], abreast=len(RULES))
    sheet.names(found, [f"{100 * loss:.0f} % slower" for loss in LOSSES], abreast=len(RULES))
    for axes in (alarms, found):
        axes.set_xlim(-0.03, 1.03)
    entitle(alarms, "false alarms", x="share of fleets in which a healthy host is flagged")
    entitle(found, "slow hosts", x="share that is found")
    handles = [marks.handle(style, name, between="") for style, name in enumerate(RULES)]
    notes = [
        "the same simulated fleets under three rules, with the noise of rounds on an H100; bars: 95 % intervals",
        "slow hosts: of fleets with a healthy majority",
        f"dashed: {100 * GOAL:.0f} %; margin {100 * MARGIN:.0f} %; healthy hosts differ by {100 * SPREAD:.0f} %",
    ]
    return sheet.finish("Which fleets and hosts does a rule flag?", handles, notes)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=40, help="of each kind")
    asked = parser.parse_args()
    lines = simulate(asked.fleets)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "fleets.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = [each.name for each in fields(Line)]
        writer.writerow(names)
        writer.writerows([getattr(line, name) for name in names] for line in lines)
    canvas.write(canvas.render(lambda: draw(lines)), FOLDER, "fleets")
    worst = 0.0
    for hosts in HOSTS:
        for name in RULES:
            some = [line for line in lines if line.hosts == hosts and line.rule == name]
            share = proportion(sum(line.alarms for line in some), sum(line.fleets for line in some))
            worst = max(worst, share.lo) if name == ACCEPT else worst
            say(f"{hosts:4} hosts, {name:15}: {100 * share.value:5.1f} % of fleets with a false alarm")
    for loss in LOSSES:
        for name in RULES:
            some = [line for line in lines if line.loss == loss and line.rule == name and line.healthy]
            found, open_, missed = (sum(getattr(line, w) for line in some) for w in ("found", "open", "missed"))
            of = found + open_ + missed
            share = f"{100 * found / of:5.1f} % found, {100 * open_ / of:5.1f} % cannot tell"
            say(f"{100 * loss:3.0f} % slower, {name:15}: {share}")
    return int(worst > GOAL)


if __name__ == "__main__":
    sys.exit(main())
