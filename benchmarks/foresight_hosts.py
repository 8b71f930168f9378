# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares the forecast of a training on two hosts, from its step on one and the measured link, with its measured step.

FOLDER is that of `benchmarks.links`: a folder for each rate of the link, with a run of collectives on two hosts, its
machine profile `machine.json`, and a training on one and on two devices.

The forecast is that of `jaxbench forecast --from=FOLDER/RATE/cnn --counts=2 --card=FOLDER/RATE/machine.json`: the
measured step of one process, plus the messages of the step compiled for two, with the alpha and beta of the profile.
Except for the link, it uses no time measured with two processes. The band goes from all communication hidden to none.

These two hosts are one machine and slow each other down; two machines would not. So a second forecast starts from the
step of one host while both work: the part "local", without communication and waiting. The goal is for the second
forecast with nothing hidden, because XLA's CPU collectives hide nothing: within 10 % of the measured step at every
rate. The exit code is 1 if it is missed.

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
from jaxbench.analysis import machine_profile, points, run_rows
from jaxbench.analysis.quantities import interval, seconds
from jaxbench.core.store import RunFolder
from jaxbench.features.forecast import estimate
from jaxbench.features.forecast.forecasts import ForecastRecord
from jaxbench.features.forecast.network import MeasuredLinks
from jaxbench.statistics import bootstrap
from jaxbench.statistics.bootstrap import Estimate

GOAL, HOSTS = 0.10, 2


@dataclass(frozen=True)
class Trial:
    """A training at one rate. step_s: measured on two hosts. both_busy: forecast from the step of one host while both
    work; None if that was not measured."""

    rate: str
    forecast: ForecastRecord
    step_s: Estimate
    both_busy: ForecastRecord | None = None

    @property
    def judged(self) -> ForecastRecord:
        return self.both_busy or self.forecast

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
    """The rates of a folder, the fastest first. Exits if there is none, or a run or a machine profile is missing."""
    rates = [path.name for path in folder.glob("*") if bits_per_s(path.name) > 0]
    if not rates:
        raise SystemExit(f"'{folder}' has no rates: name its folders unlimited, 1gbit or 100mbit.")
    return [trial for rate in sorted(rates, key=bits_per_s, reverse=True) for trial in _trials(folder / rate)]


def _trials(folder: Path) -> list[Trial]:
    card = machine_profile.read(folder / machine_profile.NAME)
    if card is None:
        raise SystemExit(f"{folder / machine_profile.NAME} is missing: measure the collectives before the training.")
    trainings = [path.parent for path in sorted(folder.glob("*/records.jsonl")) if path.parent.name != "collectives"]
    found = [trial for path in trainings for trial in _of(RunFolder(path), folder.name, MeasuredLinks(profile=card))]
    if not found:
        raise SystemExit(f"{folder} has no training that was measured on 1 and on {HOSTS} devices.")
    return found


def _of(run: RunFolder, rate: str, network: MeasuredLinks) -> list[Trial]:
    """One trial for each strategy and scaling that was measured on both."""
    rows = run_rows.analyse(points.load(run), config=run.config(), spread=bootstrap.read_spread(run.path))
    families: dict[tuple[str, str, str], list[run_rows.Row]] = {}
    for row in rows:
        families.setdefault((row.point.strategy, row.point.scaling, row.point.arm), []).append(row)
    return [
        Trial(
            rate,
            estimate.from_measured(family, HOSTS, rate, network),
            row.timing.step_s,
            estimate.from_measured(_both_busy(family, row), HOSTS, rate, network) if _local(row) is not None else None,
        )
        for family in families.values()
        for row in family
        if row.point.devices == HOSTS and row.timing.step_s.known and not row.wrong
    ]


def _local(row: run_rows.Row) -> run_rows.Row | None:
    """The step without communication; None without a time, or under strong scaling, which changes the local batch."""
    local = row.ablations.get("local")
    return local if local is not None and not run_rows.fault(local) and row.point.scaling == "weak" else None


def _both_busy(family: list[run_rows.Row], row: run_rows.Row) -> list[run_rows.Row]:
    """The rows, with the time of one host while both work in place of the time of one host alone."""
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
        "while both work",
        "forecast / measured",
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
