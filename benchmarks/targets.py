# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compiles every experiment with each of its strategies for a TPU slice and a host of GPUs; writes docs/TARGETS.md.

    python -m benchmarks.targets [--targets=v5e:2x4,h100:8] [--only=gpt,cnn] [--folder=results/targets]

It uses the preset `smoke` and runs nothing. A second start continues the folder and does not recompile. Needs the
extras target-tpu and target-cuda.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxbench.analysis import compiled
from jaxbench.analysis.compiled import CompiledRow, gigabytes
from jaxbench.catalog import targets
from jaxbench.core.store import RunFolder, write_atomic

PAGE = Path(__file__).resolve().parents[1] / "docs" / "TARGETS.md"
MODELS = (
    *("cnn", "mlp", "alexnet", "vgg16", "resnet18", "resnet50", "resnet164"),
    *("vit", "gpt", "lstm", "textcnn", "recsys", "gcn"),
)
LEVERS = (
    *("accumulate", "flags", "freeze", "inference", "ladder", "phases", "precision", "reduction", "remat", "zero"),
    *("tensor_parallel", "context_parallel", "pipeline", "hybrid", "moe"),
)
CASES = ("collectives", "matmul", "stream", "activation", "fusion", "linalg", "dispatch")
_GPT = ("--config.model.heads=8", "--config.model.context=16", "--config.model.layers=16")
# The preset's batch is too small to split into micro-batches on all devices of a target.
_EXTRA = {"accumulate": ("--config.batch=128",), "hybrid": ("--config.batch=128",)}
_ONE_DEVICE = ("inference",)
# Strategies that split the model; "all" leaves them out.
SPLIT = {
    "mlp-tensor": ("mlp", "--config.strategy=tensor"),
    "gpt-split": ("gpt", "--config.strategy=tensor,context", *_GPT),
    "gpt-sequence": ("gpt", "--config.strategy=tensor", "--config.lever.sequence_parallel=on", *_GPT),
    "gpt-expert": ("gpt", "--config.strategy=expert", "--config.model.experts=8", *_GPT),
    "gpt-pipeline": (
        "gpt", "--config.strategy=pipeline", "--config.lever.schedule=gpipe,1f1b,interleaved",
        "--config.lever.accumulate=8", *_GPT,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One run that only compiles. words: its arguments after `jaxbench run`."""

    name: str
    words: tuple[str, ...]


def jobs(devices: int) -> list[Job]:
    """Every job, for a target with that many devices."""
    mesh = (f"--config.mesh.devices={devices}",)
    weak = (*mesh, "--config.scaling=weak", "--config.batch=16")
    return [
        *(Job(name, (name, *weak, "--config.strategy=all")) for name in MODELS),
        *(Job(name, (*words[:1], *weak, *words[1:])) for name, words in SPLIT.items()),
        *(Job(name, (name, *(() if name in _ONE_DEVICE else mesh), *_EXTRA.get(name, ()))) for name in LEVERS),
        *(Job(name, (name, *(mesh if name == "collectives" else ()))) for name in CASES),
    ]


def compile_all(target: str, folder: Path, only: Sequence[str]) -> dict[str, tuple[list[CompiledRow], str]]:
    """(rows, last line of stderr) by job. A job that compiled nothing has no rows."""
    results = {}
    for job in jobs(targets.parse(target).devices):
        if only and job.name not in only:
            continue
        workdir = folder / f"{job.name}-{target.replace(':', '-')}"
        command = [sys.executable, "-m", "jaxbench", "run", *job.words, "--preset=smoke", "--dry_run"]
        done = subprocess.run([*command, f"--target={target}", f"--workdir={workdir}"], capture_output=True, text=True)
        message = (done.stderr.strip().splitlines() or [""])[-1]
        rows = compiled.rows(RunFolder(workdir)) if (workdir / "manifest.json").exists() else []
        wrong = sum(row.record is None or row.right is False for row in rows)
        sys.stderr.write(f"{target} {job.name}: {len(rows)} points, {wrong} not right {'' if rows else message}\n")
        results[job.name] = rows, message
    return results


def page(results: dict[str, dict[str, tuple[list[CompiledRow], str]]], version: str) -> str:
    """The Markdown of docs/TARGETS.md."""
    lines = [
        "# Compiled for absent hardware",
        "",
        "Every experiment with each of its strategies, compiled for a TPU slice and for a host of GPUs. Sizes are",
        f"those of the preset `smoke`. Nothing was run. `python -m benchmarks.targets` made this page with {version}.",
        "",
        "- *memory*: per device.",
        "- *sent*: what one device sends in a step.",
        "- *expected communication*: whether the collectives in the compiled program move exactly the numbers that the",
        "  strategy must move, see [the `collectives` check](metrics/checks.md#the-collectives-check).",
        "",
        "| target | points | compile | fit | as expected | differ | failed |",
        "|---|---|---|---|---|---|---|",
    ]
    for target, by_job in results.items():
        rows = [row for rows, _ in by_job.values() for row in rows]
        counts = (
            len(rows), sum(row.record is not None for row in rows), sum(bool(row.fits) for row in rows),
            sum(row.right is True for row in rows), sum(row.right is False for row in rows),
            sum(row.record is None for row in rows),
        )  # fmt: skip
        lines.append(f"| {target} | {' | '.join(map(str, counts))} |")
    for target, by_job in results.items():
        lines += ["", f"## {target}", "", *_table(by_job), "", *_exceptions(by_job)]
    return "\n".join(lines).rstrip() + "\n"


def _table(by_job: dict[str, tuple[list[CompiledRow], str]]) -> list[str]:
    lines = [
        "| experiment | point | compiles | memory | sent | expected communication | compile, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (rows, message) in by_job.items():
        if not rows:
            lines.append(f"| {name} | | {message} | | | | |")
        for row in rows:
            record = row.record
            memory = "" if record is None or record.peak_bytes is None else gigabytes(record.peak_bytes)
            cells = (
                name, row.name, "yes" if record is not None else row.status, memory,
                gigabytes(row.wire_bytes) if row.wire_bytes else "",
                {True: "equal", False: "**differs**", None: ""}[row.right],
                "" if record is None else f"{record.compile_s:.1f}",
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _exceptions(by_job: dict[str, tuple[list[CompiledRow], str]]) -> list[str]:
    items = [f"- {name}: {sentence}" for name, (rows, _) in by_job.items() for sentence in compiled.problems(rows)]
    heading = (
        "Exceptions, with reasons. If the compiler replaced a collective by another one, the collective is still "
        "measured: its time is valid, but its bandwidth is refused ([Gates](metrics/gates.md#gates))."
    )
    return [heading, "", *items] if items else ["No exceptions."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default="v5e:2x4,h100:8")
    parser.add_argument("--only", default="", help="names of jobs; prints the page and does not write it")
    parser.add_argument("--folder", default="results/targets", type=Path)
    args = parser.parse_args()
    only = [word for word in args.only.split(",") if word]
    results = {target: compile_all(target, args.folder, only) for target in args.targets.split(",")}
    import jax

    text = page(results, f"jax {jax.__version__}")
    if only:
        sys.stdout.write(text)
    else:
        write_atomic(PAGE, text)
    rows = [row for by_job in results.values() for rows, _ in by_job.values() for row in rows]
    sys.exit(1 if any(row.record is None or row.right is False for row in rows) else 0)


if __name__ == "__main__":
    main()
