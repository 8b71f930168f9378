# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a block of a model costs in a pipeline and in a split sequence, over the same block without them, as compiled.

    python -m benchmarks.layouts                                  # compiles what FOLDER lacks, one program at a time
    python -m benchmarks.layouts --only=pipeline --targets=h100   # these layouts, for these targets
    python -m benchmarks.layouts --only=                          # judges what is compiled

Each program is compiled for absent hardware at two depths, and the difference is that of some blocks: embedding, loss
and update of the state cancel out. All layouts of a group have as many tokens per device and step.

| number | definition |
|---|---|
| work | seconds of a block per device, without messages and without the ticks in which a stage is idle, over those of the plain layout |
| attention | 1 + what a block takes longer than in the plain layout, over what the flash kernels of the plain layout take |
| idle | the share of the work of all ticks in which a stage has none, next to (K - 1) / (V M + K - 1) |

Goals: a pipeline's work is at most 1.10, a ring's attention at most 1.15, and idle within 10 % of the formula. The exit
code is 1 if a goal is missed. Results are written to `docs/figures/forecasts/layouts.csv`.
"""  # noqa: E501 - a table

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from jaxbench import commandline, config, discovery
from jaxbench.catalog import targets
from jaxbench.errors import UserError
from jaxbench.features.forecast import forecast_command
from jaxbench.features.forecast.forecasts import ForecastRecord
from jaxbench.levers import SCHEDULE
from jaxbench.machine import start

RESULTS = Path("docs/figures/forecasts/layouts.csv")
MOST = {"pipeline": 1.10, "context": 1.15}  # of work, and of attention
IDLE_WITHIN = 0.10
PLAIN = "plain"
STAGES, MICRO_BATCHES = 4, 8  # of the pipelines
# GPT-3's block at the width of 6.7 billion parameters, and Llama's at 8 billion.
BLOCK = ("--config.model.preset=7b", "--config.lever.precision=mixed", "--config.scaling=strong")
LLAMA = (
    *(*BLOCK, "--config.model.heads=32", "--config.model.kv_heads=8", "--config.model.hidden=14336"),
    *("--config.model.gated=1", "--config.model.rms=1", "--config.model.context=32768"),
)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One way to divide a model. group: pipeline | context. depths: blocks of the two models that are compiled."""

    group: str
    name: str
    target: str
    words: tuple[str, ...]
    depths: tuple[int, int]
    stages: int = 1
    schedule: str = ""

    @property
    def idle(self) -> float:
        """By formula."""
        chunks = SCHEDULE.read(self.schedule).chunks if self.schedule else 1
        return (self.stages - 1) / (chunks * MICRO_BATCHES + self.stages - 1)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of one block on one device, seconds per step: all work in ticks that are not idle, and its parts. idle: share."""

    group: str
    name: str
    target: str
    work_s: float
    products_s: float
    attention_s: float
    memory_s: float
    messages_s: float
    idle: float
    idle_by_formula: float


def pipelines(target: str, remat: str) -> list[Layout]:
    """A pipeline's schedules, and the same micro-batches of the same blocks on devices that share the batch."""
    common = (*BLOCK, f"--config.batch={MICRO_BATCHES}", f"--config.lever.remat={remat}")
    base = "--config.strategy=fsdp", "--config.lever.gather=once_summed"
    plain = (*common, *base, f"--config.lever.accumulate={MICRO_BATCHES // STAGES}")
    made = [Layout(group="pipeline", name=f"{PLAIN}, {remat}", target=target, words=plain, depths=(1, 2))]
    for schedule in ("gpipe", "1f1b", "interleaved"):
        chunks = SCHEDULE.read(schedule).chunks
        words = "--config.strategy=pipeline", f"--config.lever.schedule={schedule}"
        made.append(
            Layout(
                group="pipeline",
                name=f"{schedule}, {remat}",
                target=target,
                words=(*common, *words, f"--config.lever.accumulate={MICRO_BATCHES}"),
                depths=(STAGES * chunks, 2 * STAGES * chunks),
                stages=STAGES,
                schedule=schedule,
            )
        )
    return made


def contexts(target: str) -> list[Layout]:
    """Sequences over all devices of the target, as many as it has devices, and a whole sequence on each device."""
    devices = targets.parse(target).devices
    common = (*LLAMA, f"--config.batch={devices}", "--config.lever.remat=block")
    ways = {
        PLAIN: ("--config.strategy=fsdp",),
        "ring": ("--config.strategy=context",),
        "ulysses": ("--config.strategy=context", "--config.lever.context_attention=ulysses"),
    }
    return [
        Layout(group="context", name=name, target=target, words=(*common, *words), depths=(1, 2))
        for name, words in ways.items()
    ]


def every() -> list[Layout]:
    # Not "none": a pipeline of so large a model would recompute, and the plain layout would not.
    made = [
        each
        for target in ("h100:4", "v5p:2x2x1")
        for remat in ("block", "minimal_flash")
        for each in pipelines(target, remat)
    ]
    return made + [
        each for target in ("h100:2", "h100:4", "h100:8", "v5p:2x2x1", "v5p:2x2x2") for each in contexts(target)
    ]


def cost(layout: Layout, folder: Path, console: Console) -> Cost:
    """Compiles the missing programs of a layout. Raises UserError if one does not compile."""
    records = [_record(layout, depth, folder, console) for depth in layout.depths]
    shallow, deep = records
    for each in records:
        if each.work_s is None or each.communication_s is None:
            raise UserError(f"{layout.target} {layout.name}: no forecast: {each.reason or each.notes}")
    blocks = layout.depths[1] - layout.depths[0]

    def of_block(value: float, other: float) -> float:
        # A device of a pipeline has a part of the blocks and all examples; elsewhere all blocks and a part of them.
        return (other - value) / blocks

    def parts(record: ForecastRecord, *names: str) -> float:
        busy = 1 - record.bubble_s / (record.work_s or 1)
        return busy * sum(record.seconds_by.get(name, 0.0) for name in names)

    return Cost(
        group=layout.group,
        name=layout.name,
        target=layout.target,
        work_s=of_block(*((each.work_s or 0.0) - each.bubble_s for each in records)),
        products_s=of_block(*(parts(each, "cycles", "roofline") for each in records)),
        attention_s=of_block(*(parts(each, "kernel") for each in records)),
        memory_s=of_block(*(parts(each, "memory", "unknown") for each in records)),
        messages_s=of_block(*(each.communication_s or 0.0 for each in records)),
        idle=(deep.bubble_s - shallow.bubble_s) / ((deep.work_s or 0.0) - (shallow.work_s or 0.0)),
        idle_by_formula=layout.idle,
    )


def _record(layout: Layout, depth: int, folder: Path, console: Console) -> ForecastRecord:
    start.only_cpu_here()
    composed = config.compose("gpt", discovery.load_experiment("gpt"), discovery.load_preset("auto"))
    made = commandline.changed(composed, [*layout.words, f"--config.model.layers={depth}"])
    asked = forecast_command.request(
        {"targets": layout.target, "counts": None, "depths": None, "link": None, "card": None, "from": None}
    )
    target = targets.parse(layout.target)
    place = folder / f"{layout.group}-{layout.name}-{depth}".replace(", ", "-")
    (record,) = forecast_command.compile_programs("gpt", made, asked, target, place, console).on(target, ())
    return record


def plain_of(row: Cost, rows: Sequence[Cost]) -> Cost | None:
    """The layout that a row is compared with: the plain one of its group and target, with the same recomputation."""
    _, comma, remat = row.name.partition(", ")
    wanted = row.group, row.target, f"{PLAIN}{comma}{remat}"
    return next((each for each in rows if (each.group, each.target, each.name) == wanted), None)


def ratio(row: Cost, plain: Cost) -> float:
    """What is judged: work for a pipeline, attention for a split sequence."""
    if row.group == "pipeline":
        return row.work_s / plain.work_s
    return 1 + (row.work_s - plain.work_s) / plain.attention_s


def missed(rows: Sequence[Cost]) -> list[str]:
    """The missed goals, as sentences."""
    found = []
    for row in rows:
        plain = plain_of(row, rows)
        if plain is None or row is plain:
            continue
        name, most = f"{row.target} {row.name}", MOST[row.group]
        what = "work" if row.group == "pipeline" else "attention"
        if ratio(row, plain) > most:
            found.append(f"{name}: {what} is {ratio(row, plain):.3f} of the plain layout's, the goal {most:.2f}")
        if row.group == "pipeline" and abs(row.idle / row.idle_by_formula - 1) > IDLE_WITHIN:
            found.append(f"{name}: idle is {100 * row.idle:.1f} %, by formula {100 * row.idle_by_formula:.1f} %")
    return found


def show(rows: Sequence[Cost], console: Console) -> None:
    columns = "target", "layout", "work", "attention", "products", "kernels", "memory", "messages", "idle", "by formula"
    table = Table(*columns, title="A block on one device, ms per step; work and attention over the plain layout")
    for row in rows:
        plain = plain_of(row, rows)
        judged = "" if plain is None or row is plain else f"{ratio(row, plain):.3f}"
        seconds = (row.products_s, row.attention_s, row.memory_s, row.messages_s)
        pipeline = row.group == "pipeline"
        idle = (
            f"{100 * each:.1f} %" if pipeline and row.idle_by_formula else ""
            for each in (row.idle, row.idle_by_formula)
        )
        table.add_row(
            row.target, row.name, judged if pipeline else "", "" if pipeline else judged,
            *(f"{1e3 * each:.3g}" for each in seconds), *idle,
        )  # fmt: skip
    console.print(table)


def write(rows: Sequence[Cost], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in dataclasses.fields(Cost)], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        values = dataclasses.asdict(row)
        writer.writerow({n: f"{v:.5g}" if isinstance(v, float) else v for n, v in values.items()})
    path.write_text(out.getvalue(), encoding="utf-8")


def read(path: Path) -> list[Cost]:
    """Written results; [] without a file."""
    if not path.exists():
        return []
    texts = ("group", "name", "target")
    lines = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return [Cost(**{n: v if n in texts else float(v) for n, v in line.items()}) for line in lines]  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workdir", type=Path, default=Path("results/layouts"), help="keeps compiled texts")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only", default=None, help="layouts with this in group or name; '' for none")
    parser.add_argument("--targets", default="", help="only targets that begin with this")
    flags = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160, markup=False, highlight=False)
    known = {(each.target, each.group, each.name): each for each in read(flags.results)}
    layouts = every()
    for layout in layouts:
        asked = flags.only is None or (flags.only and flags.only in f"{layout.group} {layout.name}")
        if asked and layout.target.startswith(flags.targets):
            known[layout.target, layout.group, layout.name] = cost(layout, flags.workdir / layout.target, console)
            ordered = [(each.target, each.group, each.name) for each in layouts]
            write([known[key] for key in ordered if key in known], flags.results)
    rows = read(flags.results)
    show(rows, console)
    for sentence in (goals := missed(rows)):
        console.print(f"missed: {sentence}")
    raise SystemExit(int(bool(goals)))


if __name__ == "__main__":
    main()
