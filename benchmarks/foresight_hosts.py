# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A training on two hosts, forecast from its step on one and the measured link, beside the step that was measured.

FOLDER is that of `benchmarks.links`: a folder for each rate of the link, with a run of collectives on two hosts, the
card `machine.json` that it made, and a training on one and on two devices.

The forecast is what `jaxbench forecast --from=FOLDER/RATE/cnn --counts=2 --card=FOLDER/RATE/machine.json` gives: the
measured step of one process, and the messages of the step compiled for two over the alpha and beta of the card. No time
of two processes goes into it but the link's. The band goes from everything hidden to nothing hidden.

These two hosts are one machine: what one does slows the other, as two machines would not. So the forecast is made once
more from the step of a host beside the other one at work: the part "local", in which nothing is sent and none waits.
The goal is for that one with nothing hidden, as XLA's CPU collectives hide nothing: within 10 % of the measured step at
every rate. The exit code is 1 where it is not.

Run: python -m benchmarks.foresight_hosts FOLDER
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.links import WHERE, bits_per_s
from jaxbench.analysis import machine_card, points, scaling, spread
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.quantities import interval, seconds
from jaxbench.forecast import measured
from jaxbench.forecast.network import Carded
from jaxbench.records.forecasts import ForecastRecord
from jaxbench.records.store import RunFolder

GOAL, HOSTS = 0.10, 2


@dataclass(frozen=True)
class Trial:
    """A training at one rate. step_s: measured on two hosts. beside: forecast from the step of a host beside the other
    one at work; None where that was not measured."""

    rate: str
    forecast: ForecastRecord
    step_s: Estimate
    beside: ForecastRecord | None = None

    @property
    def judged(self) -> ForecastRecord:
        return self.beside or self.forecast

    def over(self, made: ForecastRecord) -> float:
        """A forecast with nothing hidden over the measured step."""
        assert made.scheduled_s is not None
        return made.scheduled_s / self.step_s.value

    @property
    def held(self) -> bool:
        """Whether the measured step lies in the band of the forecast that is judged."""
        low, high = self.judged.low_s, self.judged.high_s
        assert low is not None
        assert high is not None
        return low <= self.step_s.value <= high


def read(folder: Path) -> list[Trial]:
    """The rates of a folder, the fastest first. Exits where there is none, or a run or a card is missing."""
    rates = [path.name for path in folder.glob("*") if bits_per_s(path.name) > 0]
    if not rates:
        raise SystemExit(f"'{folder}' has no rates: name its folders unlimited, 1gbit or 100mbit.")
    return [trial for rate in sorted(rates, key=bits_per_s, reverse=True) for trial in _trials(folder / rate)]


def _trials(folder: Path) -> list[Trial]:
    card = machine_card.read(folder / machine_card.NAME)
    if card is None:
        raise SystemExit(f"{folder / machine_card.NAME} is missing: measure the collectives before the training.")
    trainings = [path.parent for path in sorted(folder.glob("*/records.jsonl")) if path.parent.name != "collectives"]
    found = [trial for path in trainings for trial in _of(RunFolder(path), folder.name, Carded(card=card))]
    if not found:
        raise SystemExit(f"{folder} has no training that was measured on 1 and on {HOSTS} devices.")
    return found


def _of(run: RunFolder, rate: str, network: Carded) -> list[Trial]:
    """One trial for each strategy and scaling that was measured on both."""
    rows = scaling.analyse(points.load(run), config=run.config(), spread=spread.read(run.path))
    families: dict[tuple[str, str, str], list[scaling.Row]] = {}
    for row in rows:
        families.setdefault((row.point.strategy, row.point.scaling, row.point.arm), []).append(row)
    return [
        Trial(
            rate,
            measured.forecast(family, HOSTS, rate, network),
            row.timing.step_s,
            measured.forecast(_beside(family, row), HOSTS, rate, network) if _local(row) is not None else None,
        )
        for family in families.values()
        for row in family
        if row.point.devices == HOSTS and row.timing.step_s.known and row.believed
    ]


def _local(row: scaling.Row) -> scaling.Row | None:
    """Its step without communication; None without a time, or under strong scaling, where a share is another batch."""
    local = row.explained_by.get("local")
    return local if local is not None and not scaling.fault(local) and row.point.scaling == "weak" else None


def _beside(family: list[scaling.Row], row: scaling.Row) -> list[scaling.Row]:
    """The rows, with the time of a host beside the other one at work as that of one host."""
    local = _local(row)
    assert local is not None
    return [dataclasses.replace(each, timing=local.timing) if each.point.devices == 1 else each for each in family]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    every = read(parser.parse_args().folder)
    headings = (
        "link",
        "point",
        "step of one",
        "messages",
        "forecast / measured",
        "beside the other",
        "the same",
        "band",
    )
    table = Table(*headings, "measured", "in band", title=WHERE)
    for one in every:
        alone, made = one.forecast, one.judged
        table.add_row(
            one.rate, made.point, seconds(alone.work_s or 0.0), seconds(made.communication_s or 0.0),
            f"{one.over(alone):.2f}", seconds(made.work_s or 0.0), f"{one.over(made):.2f}",
            f"{seconds(made.low_s or 0.0)} to {seconds(made.high_s or 0.0)}", interval(one.step_s, seconds),
            "yes" if one.held else "no",
        )  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 140, markup=False, highlight=False).print(table)
    raise SystemExit(int(any(abs(one.over(one.judged) - 1) > GOAL for one in every)))


if __name__ == "__main__":
    main()
