# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Step times of other strategies over the compiler's own data parallelism, with goals.

Each comparison is one run of the suite on two devices of one core each, with all points interleaved in rounds. A ratio
is of medians over the rounds in which both were measured, with its 95 % interval. Goals, at most:

  fsdp, for mlp and gpt:       1.3 times jit_auto
  fused and bucketed sums:     1.0 times jit_auto
  pipeline, K = 2 stages and M = 8 micro-batches, whether stages keep all activations or only results of products:
                               1.25 (M + K - 1) / (M K) times one device with the same micro-batches

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

from jaxbench.analysis import points, run_rows
from jaxbench.core.store import RunFolder
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import Estimate

MICRO_BATCHES, STAGES = 8, 2
IDEAL = (MICRO_BATCHES + STAGES - 1) / MICRO_BATCHES / STAGES
ONE_DEVICE = "jit_auto/strong/1/remat=none"  # the fastest setting of one device


@dataclass(frozen=True)
class Compared:
    """One run, and its ratios: (name, point in the numerator, point in the denominator, upper limit)."""

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
# 4 sequences per micro-batch of a model with products much longer than a launch, and 2 of gpt's default.
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
    """Measures, and returns (name, ratio, goal) of each ratio. Exits if a point cannot be used."""
    settings = [f"--config.{setting}" for setting in (*compared.settings, f"measure.rounds={rounds}")]
    command = [sys.executable, "-m", "jaxbench", "run", compared.experiment, f"--workdir={folder}", *settings]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    measured = RunFolder(folder)
    rows = {row.point_id: row for row in run_rows.analyse(points.load(measured), config=measured.config())}
    results = []
    for name, top, bottom, goal in compared.ratios:
        for point in (top, bottom):
            if not rows[point].point.reportable:
                raise SystemExit(f"{point} cannot be used: {rows[point].point.reason or 'more devices than cores'}")
        results.append((name, paired_ratio.ratio(rows[top], rows[bottom]), goal))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(COMPARED))
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    table = Table("step time of", "ratio", "goal, at most", "", title=f"2 devices, {args.rounds} rounds")
    console = Console(width=None if sys.stdout.isatty() else 100, markup=False, highlight=False)
    for name in args.only.split(","):
        with tempfile.TemporaryDirectory() as folder, console.status(name):
            for label, ratio, goal in run(COMPARED[name], args.rounds, Path(folder) / "run"):
                verdict = "reached" if ratio.hi <= goal else "missed" if ratio.lo > goal else "cannot tell"
                interval = f"{ratio.value:.2f} [{ratio.lo:.2f}, {ratio.hi:.2f}]"
                table.add_row(label, interval, f"{goal:.2f}", verdict)
    console.print(table)


if __name__ == "__main__":
    main()
