# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Memory forecasts for published training runs on TPUs, which all fitted their devices.

    python -m benchmarks.forecasts_memory                # compiles the missing rows, two minutes per run
    python -m benchmarks.forecasts_memory --only=16b     # compiles these rows again; the others do not change

Compiles the TPU rows of `jaxbench/catalog/published/forecast_configurations.csv` that are not left out, as
`make forecast` with `--depths` does (docs/metrics, Forecasts), and compares that with the memory of the models compiled
with all blocks. Results go to `docs/figures/forecasts/memory.csv`. The exit code is 1 if a run does not fit by its
forecast.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import forecasts
from jaxbench import commandline, config, discovery
from jaxbench.catalog import targets
from jaxbench.errors import UserError
from jaxbench.features.forecast import memory
from jaxbench.machine import start

FILE = "memory.csv"
Memory = tuple[int, int, int]  # bytes of a device that a step needs by a line, with all blocks, and that there are


def runs() -> list[dict[str, str]]:
    """The published runs on TPUs that can be forecast."""
    rows = forecasts.configurations()
    return [row for row in rows if not row["left_out"] and targets.parse(row["target"]).platform == "tpu"]


def asked(row: dict[str, str], folder: Path, console: Console) -> Memory:
    """The memory of a run. Raises UserError if the compiler does not report it."""
    start.only_cpu_here()
    composed = config.compose("gpt", discovery.load_experiment("gpt"), discovery.load_preset("auto"))
    made, target = commandline.changed(composed, forecasts.words(row)), targets.parse(row["target"])
    with made.unlocked():
        made.mesh.devices = str(target.devices)
    sizes = []
    for whole in (False, True):
        place, blocks = folder / row["id"] / "memory", int(row["layers"])
        found, unknown = memory.needs("gpt", made, target, place, console, blocks, whole=whole)
        if not found or not target.memory_bytes:
            raise UserError(f"{row['id']}: {' '.join(unknown) or 'the memory of its device is not known'}.")
        sizes += [size for by_count in found.values() for size in by_count.values()]
    return sizes[0], sizes[1], target.memory_bytes


def write(found: dict[str, Memory], path: Path) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "needed_bytes", "whole_bytes", "memory_bytes"])
    writer.writerows([name, *sizes] for name, sizes in found.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(out.getvalue(), encoding="utf-8")


def read(path: Path) -> dict[str, Memory]:
    """Written results; {} without a file."""
    if not path.exists():
        return {}
    lines = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    names = ("needed_bytes", "whole_bytes", "memory_bytes")
    return {line["id"]: tuple(int(line[name]) for name in names) for line in lines}  # type: ignore[misc]


def show(found: dict[str, Memory], console: Console) -> None:
    columns = "run", "needs", "all blocks", "difference", "a device has", "fits"
    table = Table(*columns, title="Memory of published runs, which all fitted")
    for name, (needed, whole, has) in found.items():
        sizes = (f"{size / 1e9:.1f} GB" for size in (needed, whole))
        off = f"{100 * (needed / whole - 1):+.1f} %"
        table.add_row(name, *sizes, off, f"{has / 1e9:.1f} GB", "yes" if needed <= has else "NO")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workdir", type=Path, default=Path("results/accountability"), help="keeps what was said")
    parser.add_argument("--results", type=Path, default=forecasts.RESULTS, help="memory.csv")
    parser.add_argument("--only", default=None, help="compile rows again if their id contains this; '' for none")
    flags = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140, markup=False, highlight=False)
    known = read(flags.results / FILE)
    for row in runs():
        if row["id"] not in known if flags.only is None else flags.only and flags.only in row["id"]:
            known[row["id"]] = asked(row, flags.workdir, console)
            write(known, flags.results / FILE)
    show(known, console)
    raise SystemExit(int(any(needed > has for needed, _, has in known.values())))


if __name__ == "__main__":
    main()
