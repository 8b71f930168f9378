# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts published training runs with sufficient detail, and compares the forecasts with the published times.

    python -m benchmarks.forecasts                       # compiles the rows missing in FOLDER in turn, then judges
    python -m benchmarks.forecasts --only=maxtext        # compiles only these rows; the others do not change

A row of `jaxbench/catalog/published/forecast_configurations.csv` is a run of `gpt`. Two shallow models are compiled
for its target (`--depths`), and a line through them is the forecast. Nothing is fitted to a row: the band that judges
it is from the *other* runs of its family of programs (`band`). If less of a run is large matrix products than of the
others, its band is wider by what single kernels took (`jaxbench/features/forecast/bands.py`). The results and the
figure are in `docs/figures/forecasts` (`accountability.csv`); `--only=` judges them without a compiler, and renews the
bands that forecasts use (`jaxbench/catalog/forecast_errors.csv`).

The goals: a median error of 8 % for TPUs and of 7 % for programs that XLA compiled for GPUs, a band no wider than 35 %
for the latter, and nine published values of ten in their band. The exit code is 1 if a goal is missed.
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
from jaxbench.catalog import published, targets
from jaxbench.errors import UserError, present
from jaxbench.features.forecast import forecast_command, work
from jaxbench.features.forecast.bands import Range, rest_range, rest_share, widened
from jaxbench.features.forecast.forecasts import ForecastRecord
from jaxbench.features.forecast.schedule import Times
from jaxbench.machine import start
from jaxbench.measure.arm import inspected

RESULTS = Path("docs/figures/forecasts")
FILE = "accountability.csv"
BANDS = Path("jaxbench/catalog/forecast_errors.csv")
# The families of programs. The value is the name that tables show.
PROGRAMS = {
    "tpu": "XLA, TPU", "xla_remat": "XLA, GPU, recomputing", "xla": "XLA, GPU", "torch_compiled": "PyTorch, compiled",
    "torch_eager": "PyTorch, eager", "megatron": "Megatron-LM, in stages",
}  # fmt: skip
GOALS = {("tpu",): 0.08, ("xla_remat", "xla"): 0.07}  # median errors
WIDEST = {"xla_remat": 0.35, "xla": 0.35}  # high - low of a band, over its middle
RECENT = 2023  # older runs are shown, but set no band
IN_BAND = 0.9
# A run with a larger share of other work than large products sets no band: it would be that of small models only.
SMALL = 0.6
SHORT_S = 1e-4  # a mean kernel below which a forecast is a bound: the microseconds to start a kernel are not counted
_MODEL = ("layers", "width", "heads", "kv_heads", "head_width", "hidden", "gated", "rms", "vocab", "context")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A forecast and the published step. Times are seconds per step.

    family: the project of the run. program: one of `PROGRAMS`. hidden_s: forecast with all communication hidden;
    scheduled_s: in the compiler's order; bare_s: none hidden. kernel_s: the mean of a kernel; 0: a TPU. large_s: of
    the step's products at the rate of large ones. fastest, slowest: the range of the other work (`bands.rest_range`);
    1: the row was compiled before it was known.
    """

    id: str
    family: str
    program: str
    where: str
    year: int
    published_s: float
    hidden_s: float
    scheduled_s: float
    bare_s: float
    kernel_s: float = 0.0
    large_s: float = 0.0
    fastest: float = 1.0
    slowest: float = 1.0

    @property
    def rest(self) -> float:
        """The share of the forecast that is not large products."""
        return rest_share(self.large_s, self.forecast_s)

    @property
    def sets_band(self) -> bool:
        """Whether the band of its family is from this run, too."""
        return self.year >= RECENT and not self.bound and self.rest <= SMALL

    @property
    def forecast_s(self) -> float:
        """On a GPU in the compiler's order; on a TPU with all communication hidden, as those runs were tuned for it."""
        return self.hidden_s if self.program == "tpu" else self.scheduled_s

    @property
    def bound(self) -> bool:
        """Whether its kernels are so short that the forecast is a bound and has no band."""
        return self.program != "tpu" and self.kernel_s < SHORT_S

    @property
    def over(self) -> float:
        """Forecast over published."""
        return self.forecast_s / self.published_s

    @property
    def error(self) -> float:
        """The difference between published and forecast step, as a share of the published step."""
        return abs(self.over - 1)


def band(rows: Sequence[Judged], count: int = 0) -> tuple[float, float]:
    """(low, high): published over forecast for nine in ten further runs of a family, from its recent runs.

    The logarithms of published / forecast are taken as normal, with unknown mean and variance: Student's prediction
    interval for one more value (Hahn and Meeker, Statistical Intervals, 1991, section 4.8). Where more than one in ten
    of the runs lies outside, the band is widened to contain nine in ten. (0, inf) if fewer than two runs are known.
    count: as if that many runs had this mean and variance; 0: their number.
    """
    logs = [-math.log(row.over) for row in rows if row.sets_band]
    if len(logs) < 2:
        return 0.0, math.inf
    mean, spread, count = statistics.fmean(logs), statistics.stdev(logs), count or len(logs)
    half = float(stats.t.ppf((1 + IN_BAND) / 2, count - 1)) * spread * math.sqrt(1 + 1 / count)
    if count == len(logs):
        half = max(half, sorted(abs(each - mean) for each in logs)[math.ceil(IN_BAND * count) - 1])
    return math.exp(mean - half), math.exp(mean + half)


def band_s(rows: Sequence[Judged], row: Judged) -> tuple[float, float]:
    """The band of a row in seconds, from the other runs of its family of programs; for a bound, (bound, inf)."""
    others = [each for each in rows if each.program == row.program and each.id != row.id]
    low, high = widened(*band(others), row.rest - usual_rest(others), Range(row.fastest, row.slowest))
    if row.bound:
        return min(low, 1.0) * row.hidden_s, math.inf
    return low * row.forecast_s, high * row.forecast_s


def usual_rest(rows: Sequence[Judged]) -> float:
    """The mean share of the forecasts behind a band that is not large products."""
    shares = [row.rest for row in rows if row.sets_band]
    return statistics.fmean(shares) if shares else 0.0


def held(rows: Sequence[Judged], row: Judged) -> bool:
    """Whether the published step lies in the row's band."""
    low, high = band_s(rows, row)
    return low <= row.published_s <= high


@dataclass(frozen=True)
class Family:
    """The runs of a family of programs.

    band: from all recent runs, over the forecast. held: the ids of those that are in the band from the others, or not
    faster than their bound. rows: all runs, with those that only have a bound.
    """

    program: str
    rows: tuple[Judged, ...]
    band: tuple[float, float]
    held: frozenset[str]

    @property
    def name(self) -> str:
        return PROGRAMS[self.program]

    @property
    def banded(self) -> list[Judged]:
        """The runs with a band."""
        return [row for row in self.rows if not row.bound]

    def width(self, count: int = 0) -> float:
        """The width of the band over its middle. count: as in `band`."""
        low, high = band(self.rows, count)
        return 2 * (high - low) / (high + low) if high < math.inf else math.inf


def families(rows: Sequence[Judged]) -> list[Family]:
    """The families that have runs, in the order of `PROGRAMS`."""
    made = []
    for program in PROGRAMS:
        if some := tuple(row for row in rows if row.program == program):
            made.append(Family(program, some, band(some), frozenset(row.id for row in some if held(rows, row))))
    return made


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
        *(f"--config.{setting}" for setting in row["settings"].split()),
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
            "depths": row["depths"] or "1,2",
            "link": row["link"] or None,
            "card": None,
            "from": None,
        }
    )
    asked = dataclasses.replace(asked, memory=False)
    workload = inspected(made, "gpt")
    programs = forecast_command.compile_programs("gpt", made, asked, target, folder / row["id"], console)
    (record,) = programs.on(target, asked.counts)
    if record.work_s is None or record.hidden_s is None or record.bare_s is None or record.scheduled_s is None:
        raise UserError(f"no forecast: {record.reason or record.notes}")
    flops = (workload.flops_per_example or 0.0) + workload.masked_flops_per_example
    return Judged(
        id=row["id"], family=row["family"], program=row["program"], where=row["where"], year=int(row["year"]),
        published_s=published_s(row, flops), hidden_s=record.hidden_s, scheduled_s=record.scheduled_s,
        bare_s=record.bare_s, kernel_s=0.0 if row["program"] == "tpu" else record.work_s / record.kernels,
        large_s=large_s(row), **_range(record),
    )  # fmt: skip


def _range(record: ForecastRecord) -> dict[str, float]:
    """The fields fastest and slowest."""
    work_s, sent_s, scheduled_s = (
        present(getattr(record, f"{name}_s")) for name in ("work", "communication", "scheduled")
    )
    times = Times(work_s=work_s, communication_s=sent_s, scheduled_s=scheduled_s, host_s=record.host_s)
    middle_s = times.hidden_s if record.family == "tpu" else scheduled_s
    return dataclasses.asdict(rest_range(record, times, middle_s))


def large_s(row: dict[str, str]) -> float:
    """The seconds of a device's products at the rate of large ones, without attention, from the shapes of a row.

    A recomputed block repeats its products except the last, because the backward pass does not need its result. If
    queries, keys and values are kept, it does not repeat those either.
    """
    width, hidden, context = (int(row[name]) for name in ("width", "hidden", "context"))
    inner, kv = (int(row[name]) * int(row["head_width"]) for name in ("heads", "kv_heads"))
    grouped, out, down = (2 * width * size for size in (inner + 2 * kv, inner, hidden))
    up = down * (1 + int(row["gated"]))
    again = {"block": grouped + out + up, "save_qkv_proj": out + up}.get(row["remat"], 0)
    block = 3 * (grouped + out + up + down) + again
    tokens = int(row["batch"]) * int(row["micro_batches"]) * context
    flops = tokens * (int(row["layers"]) * block + 3 * 2 * width * int(row["vocab"]))
    chip = present(work.chip(targets.parse(row["target"]).device_kind))
    return flops / dict(chip.products)["bfloat16"]


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
        values = dataclasses.asdict(row)
        writer.writerow({n: f"{v:.5g}" if isinstance(v, float) else v for n, v in values.items()})
    path.write_text(out.getvalue(), encoding="utf-8")


def bands(rows: Sequence[Judged]) -> str:
    """The catalogue's file of bands: of each family, from all of its recent runs."""
    behind = [row for family in families(rows) if family.band[1] < math.inf for row in family.banded]
    shortest = {tpu: min((row.kernel_s for row in behind if (row.program == "tpu") == tpu), default=0)
                for tpu in (True, False)}  # fmt: skip
    lines = ["family,low,high,runs,kernel_s,rest,source"]
    for family in families(rows):
        runs, (low, high) = sum(row.sets_band for row in family.rows), family.band
        if high < math.inf:
            kernel = f"{shortest[family.program == 'tpu']:.4g}"
            source = f"python -m benchmarks.forecasts ({RESULTS / FILE})"
            rest = f"{usual_rest(family.rows):.3f}"
            lines.append(f"{family.program},{low:.3f},{high:.3f},{runs},{kernel},{rest},{source}")
    return "\n".join([*lines, ""])


def read(path: Path) -> list[Judged]:
    """Written results; [] without a file."""
    if not path.exists():
        return []
    rows = []
    for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        numbers = ("fastest", "slowest")
        seconds = {
            name: float(value) for name, value in line.items() if (name.endswith("_s") or name in numbers) and value
        }
        texts = {name: line[name] for name in ("id", "family", "program", "where")}
        rows.append(Judged(**texts, **seconds, year=int(line["year"])))
    return rows


def summary(rows: Sequence[Judged]) -> list[tuple[str, int, float, float, float, int]]:
    """(project or family of programs, runs with a band, median, mean and largest error, how many are in their band)."""
    groups: dict[str, list[Judged]] = {}
    for row in rows:
        groups.setdefault(row.family, []).append(row)
    groups |= {f"all {family.name}": list(family.rows) for family in families(rows)}
    lines = []
    for name, some in groups.items():
        if errors := [row.error for row in some if not row.bound]:
            means = statistics.median(errors), statistics.fmean(errors), max(errors)
            lines.append((name, len(errors), *means, sum(held(rows, row) for row in some if not row.bound)))
    return lines


def show(rows: Sequence[Judged], every: Sequence[dict[str, str]], console: Console) -> None:
    columns = "run", "where", "published", "forecast", "over published", "rest", "band", "in it"
    table = Table(*columns, title="Forecasts; rest: the share that is not large products")
    for row in rows:
        low, high = band_s(rows, row)
        inside = "yes" if held(rows, row) else "NO"
        table.add_row(
            row.id, row.where, f"{row.published_s:.3g} s", f"{row.forecast_s:.3g} s",
            f"{row.over:.2f}", f"{100 * row.rest:.0f} %",
            f"at least {low:.3g} s" if row.bound else f"{low:.3g} to {high:.3g} s", inside,
        )  # fmt: skip
    console.print(table)
    table = Table("family", "runs", "median error", "mean", "largest", "in their band")
    for name, count, *errors, inside in summary(rows):
        table.add_row(name, str(count), *(f"{100 * error:.0f} %" for error in errors), f"{inside} of {count}")
    console.print(table)
    columns = "programs", "runs", "low", "high", "width", "width if ten", "shortest mean kernel"
    table = Table(*columns, title="Bands, over the forecast")
    for family in families(rows):
        if recent := [row for row in family.banded if row.sets_band]:
            ends = (f"{end:.3f}" for end in family.band)
            shortest = min(row.kernel_s for row in recent)
            widths = (f"{100 * family.width(count):.0f} %" for count in (0, 10))
            table.add_row(family.name, str(len(recent)), *ends, *widths, f"{1e6 * shortest:.4g} us")
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
    for programs, goal in GOALS.items():
        if errors := [row.error for row in rows if row.program in programs and not row.bound]:
            median, name = statistics.median(errors), " and ".join(PROGRAMS[each] for each in programs)
            if median > goal:
                found.append(f"{name}: the median error is {100 * median:.1f} %, the goal {100 * goal:.0f} %")
    for family in families(rows):
        inside, count = sum(row.id in family.held for row in family.banded), len(family.banded)
        if inside < IN_BAND * count:
            found.append(f"{family.name}: {inside} of {count} are in their band, the goal is nine in ten")
        if family.width() > (widest := WIDEST.get(family.program, math.inf)):
            found.append(f"{family.name}: the band is {100 * family.width():.0f} % wide, the goal {100 * widest:.0f} %")
        beaten = [row.id for row in family.rows if row.bound and row.id not in family.held]
        found += [f"{family.name}: {name} is faster than its bound" for name in beaten]
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
    # From the shapes, without a compiler: so it is known for rows that were compiled before it was.
    known |= {
        row["id"]: dataclasses.replace(known[row["id"]], large_s=large_s(row)) for row in every if row["id"] in known
    }
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
    write(rows, asked.results / FILE)
    show(rows, every, console)
    forecasts_figure.save(families(rows), asked.results)
    if asked.results == RESULTS:
        BANDS.write_text(bands(rows), encoding="utf-8")
    for sentence in (goals := missed(rows)):
        console.print(f"missed: {sentence}")
    raise SystemExit(int(bool(goals)))


if __name__ == "__main__":
    main()
