# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What it costs to spread a model in other ways than the compiler's own data parallelism: ratios of step times.

Each comparison is one run of the suite on two devices of a core each, all its points interleaved in rounds; a ratio is
of medians over the rounds both were measured in, with its 95 % interval. Goals: fsdp at most 1.3 times jit_auto's data
parallelism, for mlp and gpt; one fused all-reduce and bucketed ones at most 1.0 times; a pipeline of K = 2 stages and
M = 8 micro-batches at most 1.25 times (M + K - 1) / (M K) of the time of one device with the same micro-batches,
whether its stages keep all activations or the results of products alone.

Run: python -m benchmarks.strategies [--only=fsdp_mlp,fsdp_gpt,reduction,pipeline,pipeline_small] [--rounds=20]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from jaxbench.analysis import paired_ratio, points, scaling
from jaxbench.analysis.intervals import Estimate
from jaxbench.records.store import RunFolder

MICRO_BATCHES, STAGES = 8, 2
IDEAL = (MICRO_BATCHES + STAGES - 1) / MICRO_BATCHES / STAGES
ONE_DEVICE = "jit_auto/strong/1/remat=none"  # the fastest that one does


@dataclass(frozen=True)
class Compared:
    """One run, and the ratios taken from it: (name, point above, point below, what the ratio should be at most)."""

    experiment: str
    settings: tuple[str, ...]
    ratios: tuple[tuple[str, str, str, float], ...]


COMPARED = {
    f"fsdp_{name}": Compared(
        name,
        ("strategy=jit_auto,fsdp", "scaling=weak", "mesh.devices=2"),
        ((f"fsdp / jit_auto, {name}", "fsdp/weak/2", "jit_auto/weak/2", 1.3),),
    )
    for name in ("mlp", "gpt")
}
COMPARED["reduction"] = Compared(
    "mlp",
    ("strategy=jit_auto,shard_map", "scaling=weak", "mesh.devices=2", "lever.reduction=strategy,fused,bucketed"),
    tuple(
        (f"{way} / jit_auto, mlp", f"shard_map/weak/2/reduction={way}", "jit_auto/weak/2/reduction=strategy", 1.0)
        for way in ("fused", "bucketed")
    ),
)
# 4 sequences a micro-batch of a model whose products are larger than what starting them costs, and 2 of gpt as it is.
LARGE, SMALL = ("batch=32", "model.width=512", "model.heads=8", "model.layers=2"), ("batch=16",)
for size, settings in (("", LARGE), ("_small", SMALL)):
    COMPARED[f"pipeline{size}"] = Compared(
        "gpt",
        (
            "strategy=jit_auto,pipeline",
            "scaling=strong",
            "mesh.devices=1,2",
            "lever.remat=none,dots_saveable",
            f"lever.accumulate={MICRO_BATCHES}",
            *settings,
        ),
        tuple(
            (f"pipeline{size}, {remat} / one device", f"pipeline/strong/2/remat={remat}", ONE_DEVICE, 1.25 * IDEAL)
            for remat in ("none", "dots_saveable")
        ),
    )


def run(compared: Compared, rounds: int, folder: Path) -> list[tuple[str, Estimate, float]]:
    """Measures, and returns (name, ratio, goal). A combination that the suite refuses is in no ratio."""
    settings = [f"--config.{setting}" for setting in (*compared.settings, f"measure.rounds={rounds}")]
    command = [sys.executable, "-m", "jaxbench", "run", compared.experiment, f"--workdir={folder}", *settings]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = RunFolder(folder)
    rows = {row.point.point: row for row in scaling.analyse(points.load(found), config=found.config())}
    out = []
    for name, top, bottom, goal in compared.ratios:
        for point in (top, bottom):
            if not rows[point].point.honest:
                raise SystemExit(f"{point} cannot be used: {rows[point].point.reason or 'more devices than cores'}")
        out.append((name, paired_ratio.ratio(rows[top], rows[bottom]), goal))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(COMPARED))
    parser.add_argument("--rounds", type=int, default=20)
    asked = parser.parse_args()
    table = Table("step time of", "ratio", "goal, at most", "", title=f"2 devices, {asked.rounds} rounds")
    console = Console(width=None if sys.stdout.isatty() else 100, markup=False, highlight=False)
    for name in asked.only.split(","):
        with tempfile.TemporaryDirectory() as folder, console.status(name):
            for said, ratio, goal in run(COMPARED[name], asked.rounds, Path(folder) / "run"):
                verdict = "reached" if ratio.hi <= goal else "missed" if ratio.lo > goal else "cannot tell"
                between = f"{ratio.value:.2f} [{ratio.lo:.2f}, {ratio.hi:.2f}]"
                table.add_row(said, between, f"{goal:.2f}", verdict)
    console.print(table)


if __name__ == "__main__":
    main()
