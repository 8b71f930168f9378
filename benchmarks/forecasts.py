# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts published training runs with sufficient detail, and compares the forecasts with the published times.

    python -m benchmarks.forecasts                       # compiles the rows missing in FOLDER in turn, then judges
    python -m benchmarks.forecasts --only=maxtext        # compiles only these rows; the others do not change

A row of `jaxbench/catalog/published/forecast_configurations.csv` is a run of `gpt`. Two shallow models are compiled
for its target (`--depths`), and a line through them is the forecast. Nothing is fitted to a row or to its family: the
band of a row is widened by the errors of the platform's *other* families (`widening`). The results and the figure are
in `docs/figures/forecasts` (`accountability.csv`); `--only=` judges them without a compiler.

The goals: a median error of 10 % for TPUs and 20 % for GPUs, and nine published values of ten in their band. The exit
code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
import math
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from scipy import stats

from benchmarks import forecasts_figure
from jaxbench import commandline, config, discovery
from jaxbench.catalog import hardware, published, targets
from jaxbench.errors import UserError
from jaxbench.features.forecast import forecast_command
from jaxbench.machine import start
from jaxbench.measure.arm import inspected

RESULTS = Path("docs/figures/forecasts")
FILE = "accountability.csv"
GOALS = {"tpu": 0.10, "gpu": 0.20}
IN_BAND = 0.9
_MODEL = ("layers", "width", "heads", "kv_heads", "head_width", "hidden", "gated", "rms", "vocab", "context")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A forecast and the published step. Times are seconds per step.

    hidden_s: forecast with all communication hidden; scheduled_s: in the compiler's order; bare_s: none hidden. bound:
    whether hidden_s is a lower bound (on a GPU). kernel_s: the mean of a kernel; 0: not written.
    """

    id: str
    family: str
    platform: str
    where: str
    published_s: float
    hidden_s: float
    scheduled_s: float
    bare_s: float
    bound: bool
    kernel_s: float = 0.0

    @property
    def forecast_s(self) -> float:
        """On a GPU in the compiler's order; on a TPU with all communication hidden, as those runs were tuned for it."""
        return self.scheduled_s if self.bound else self.hidden_s

    @property
    def over(self) -> float:
        """Forecast over published."""
        return self.forecast_s / self.published_s

    @property
    def error(self) -> float:
        """The difference between published and forecast step, as a share of the published step."""
        return abs(self.over - 1)

    def band(self, widened: float) -> tuple[float, float]:
        """Seconds: a bound has no lower end to widen, and the band holds at least all from hidden to not hidden."""
        if self.bound:
            return self.hidden_s, max(self.bare_s, self.hidden_s * (1 + widened))
        return self.hidden_s * (1 - widened), self.bare_s * (1 + widened)


def others(rows: Sequence[Judged], row: Judged) -> float:
    """The share by which a row's band is widened, from the platform's other families."""
    return widening([miss(each) for each in rows if each.platform == row.platform and each.family != row.family])


def widening(misses: Sequence[float]) -> float:
    """The share by which a band is widened so that it contains one more run with a probability of 90 %.

    For any distribution, the next miss exceeds the largest of n misses with probability 1 / (n + 1). Fewer than nine
    misses are too few for this rule; then the width is at least Student's, for n misses around zero.
    """
    count, largest = len(misses), max(misses, default=0.0)
    if count == 0 or count + 1 >= round(1 / (1 - IN_BAND)):
        return largest
    width = stats.t.ppf((1 + IN_BAND) / 2, count) * math.sqrt(statistics.fmean(each**2 for each in misses))
    return max(largest, float(width))


def miss(row: Judged) -> float:
    """The distance of the published step from (hidden, bare), as a share of the nearer end; for a bound, above it."""
    if row.bound:
        return max(0.0, row.published_s / row.hidden_s - 1)
    return max(0.0, 1 - row.published_s / row.hidden_s, row.published_s / row.bare_s - 1)


def held(rows: Sequence[Judged], row: Judged) -> bool:
    """Whether the published step lies in the row's band."""
    low, high = row.band(others(rows, row))
    return low <= row.published_s <= high


def configurations() -> list[dict[str, str]]:
    """The rows of the data file, as text."""
    frame = published.read("forecast_configurations").frame
    return [{str(name): _text(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _text(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:g}"
    return str(value)


def words(row: dict[str, str]) -> list[str]:
    """The --config settings of a row."""
    model = [f"--config.model.{name}={row[name]}" for name in _MODEL]
    batch = int(row["batch"]) * int(row["micro_batches"])
    return [
        "--config.model.preset=7b", *model, "--config.model.attention=flash",
        f"--config.strategy={'hybrid' if row['mesh'] else 'fsdp'}", "--config.scaling=weak",
        f"--config.lever.remat={row['remat']}", f"--config.lever.precision={row['precision']}",
        f"--config.lever.accumulate={row['micro_batches']}", f"--config.accelerator_batch={batch}",
        *([f"--config.lever.mesh={row['mesh']}"] if row["mesh"] else []),
    ]  # fmt: skip


def judged(row: dict[str, str], folder: Path, console: Console) -> Judged:
    """Compiles the missing programs of the folder. Raises UserError if a program does not compile."""
    start.only_cpu_here()
    preset = discovery.load_preset("auto")
    composed = config.compose("gpt", discovery.load_experiment("gpt"), preset)
    made = commandline.changed(composed, words(row))
    target = targets.parse(row["target"])
    asked = forecast_command.request(
        {
            "targets": row["target"],
            "counts": None,
            "depths": "1,2",
            "link": row["link"] or None,
            "card": None,
            "from": None,
        }
    )
    workload = inspected(made, "gpt")
    (record,) = forecast_command.of_target("gpt", made, asked, target, folder / row["id"], console)
    if record.work_s is None or record.communication_s is None or record.scheduled_s is None:
        raise UserError(f"no forecast: {record.reason or record.notes}")
    flops = (workload.flops_per_example or 0.0) + workload.masked_flops_per_example
    return Judged(
        id=row["id"], family=row["family"], platform=target.platform, where=row["where"],
        published_s=published_s(row, flops), hidden_s=max(record.work_s, record.communication_s),
        scheduled_s=record.scheduled_s, bare_s=record.work_s + record.communication_s,
        bound=hardware.forecast_error(target.platform).ends == "slow", kernel_s=record.work_s / record.kernels,
    )  # fmt: skip


def published_s(row: dict[str, str], flops: float) -> float:
    """Seconds of the published step. flops: per example, masked attention counted in full as in published TFLOP/s."""
    examples = int(row["batch"]) * int(row["micro_batches"])
    if row["seconds"]:
        return float(row["seconds"])
    if row["tokens_per_s"]:
        return examples * int(row["context"]) / float(row["tokens_per_s"])
    return examples * flops / (1e12 * float(row["tflops"]))


def write(rows: Sequence[Judged], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    out = io.StringIO()
    columns = [field.name for field in dataclasses.fields(Judged)]
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        values = {**dataclasses.asdict(row), "bound": str(row.bound).lower()}
        writer.writerow({n: f"{v:.5g}" if isinstance(v, float) else v for n, v in values.items()})
    path.write_text(out.getvalue(), encoding="utf-8")


def read(path: Path) -> list[Judged]:
    """Written results; [] without a file."""
    if not path.exists():
        return []
    rows = []
    for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        seconds = {name: float(value) for name, value in line.items() if name.endswith("_s") and value}
        texts = {name: line[name] for name in ("id", "family", "platform", "where")}
        rows.append(Judged(**texts, **seconds, bound=line["bound"].lower() == "true"))
    return rows


def summary(rows: Sequence[Judged]) -> list[tuple[str, int, float, float, float, int]]:
    """(family or platform, rows, median, mean and largest error, number of rows in their band)."""
    groups: dict[str, list[Judged]] = {}
    for row in rows:
        groups.setdefault(row.family, []).append(row)
    for platform in GOALS:
        groups[f"all {platform.upper()}s"] = [row for row in rows if row.platform == platform]
    lines = []
    for name, some in groups.items():
        errors = [row.error for row in some]
        if errors:
            means = statistics.median(errors), statistics.fmean(errors), max(errors)
            lines.append((name, len(some), *means, sum(held(rows, row) for row in some)))
    return lines


def show(rows: Sequence[Judged], every: Sequence[dict[str, str]], console: Console) -> None:
    table = Table("run", "where", "published", "forecast", "over published", "band", "in it", title="Forecasts")
    for row in rows:
        low, high = row.band(others(rows, row))
        table.add_row(
            row.id, row.where, f"{row.published_s:.3g} s", f"{row.forecast_s:.3g} s", f"{row.over:.2f}",
            f"{low:.3g} to {high:.3g} s", "yes" if held(rows, row) else "NO",
        )  # fmt: skip
    console.print(table)
    table = Table("family", "runs", "median error", "mean", "largest", "in their band")
    for name, count, *errors, inside in summary(rows):
        table.add_row(name, str(count), *(f"{100 * error:.0f} %" for error in errors), f"{inside} of {count}")
    console.print(table)
    known = {row.id for row in rows}
    for row in every:
        if row["left_out"]:
            console.print(f"left out: {row['id']} ({row['where']}): {row['left_out']}")
        elif row["id"] not in known:
            console.print(f"not forecast yet: {row['id']} ({row['where']})")


def missed(rows: Sequence[Judged]) -> list[str]:
    """The missed goals, as sentences."""
    found = []
    for platform, goal in GOALS.items():
        some = [row for row in rows if row.platform == platform]
        if not some:
            continue
        median, inside = statistics.median(row.error for row in some), sum(held(rows, row) for row in some)
        if median > goal:
            found.append(f"{platform}: the median error is {100 * median:.0f} %, the goal {100 * goal:.0f} %")
        if inside < IN_BAND * len(some):
            found.append(f"{platform}: {inside} of {len(some)} are in their band, the goal is nine in ten")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workdir", type=Path, default=Path("results/accountability"), help="keeps compiled texts")
    parser.add_argument("--results", type=Path, default=RESULTS, help="accountability.csv and the figure")
    parser.add_argument("--only", default=None, help="forecast rows if their id contains this; '' for none")
    asked = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140, markup=False, highlight=False)
    every = configurations()
    known = {row.id: row for row in read(asked.results / FILE)}
    for row in every:
        if row["left_out"] or (asked.only is not None and (not asked.only or asked.only not in row["id"])):
            continue
        began = time.monotonic()
        try:
            known[row["id"]] = judged(row, asked.workdir, console)
        except UserError as error:
            raise SystemExit(f"{row['id']}: {error}") from error
        console.print(f"{row['id']}: {time.monotonic() - began:.0f} s")
        ordered = [known[each["id"]] for each in every if each["id"] in known]
        write(ordered, asked.results / FILE)
    rows = [known[each["id"]] for each in every if each["id"] in known]
    show(rows, every, console)
    forecasts_figure.save(rows, {row.id: row.band(others(rows, row)) for row in rows}, asked.results)
    for sentence in (goals := missed(rows)):
        console.print(f"missed: {sentence}")
    raise SystemExit(int(bool(goals)))


if __name__ == "__main__":
    main()
