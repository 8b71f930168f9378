# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every experiment and every strategy that it has, compiled for a TPU slice and for a host of GPUs: docs/TARGETS.md.

    python -m benchmarks.targets [--targets=v5e:2x4,h100:8] [--only=gpt,cnn] [--folder=results/targets]

Small presets, nothing is run. The folder is continued: what was compiled is not compiled again. Needs the extras
target-tpu and target-cuda.
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
from jaxbench.records.store import RunFolder, write_atomic

PAGE = Path(__file__).resolve().parents[1] / "docs" / "TARGETS.md"
MODELS = (
    *("cnn", "mlp", "alexnet", "vgg16", "resnet18", "resnet50", "resnet164"),
    *("vit", "gpt", "lstm", "textcnn", "recsys", "gcn"),
)
LEVERS = (
    *("accumulate", "freeze", "inference", "ladder", "phases", "precision", "reduction", "remat", "zero"),
    *("tensor_parallel", "context_parallel", "pipeline", "hybrid", "moe"),
)
CASES = ("collectives", "matmul", "stream", "activation", "fusion", "linalg", "dispatch")
_GPT = ("--config.model.heads=8", "--config.model.context=16", "--config.model.layers=16")
# Where the preset's batch is too small for micro-batches on so many devices, or one device is what is asked about.
_OWN = {"accumulate": ("--config.batch=128",), "hybrid": ("--config.batch=128",)}
_ALONE = ("inference",)
# What "all" leaves out: the strategies that split the model.
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
    """One run that compiles only."""

    name: str
    words: tuple[str, ...]


def jobs(devices: int) -> list[Job]:
    """All of them, for so many devices."""
    most = (f"--config.mesh.devices={devices}",)
    weak = (*most, "--config.scaling=weak", "--config.batch=16")
    return [
        *(Job(name, (name, *weak, "--config.strategy=all")) for name in MODELS),
        *(Job(name, (*words[:1], *weak, *words[1:])) for name, words in SPLIT.items()),
        *(Job(name, (name, *(() if name in _ALONE else most), *_OWN.get(name, ()))) for name in LEVERS),
        *(Job(name, (name, *(most if name == "collectives" else ()))) for name in CASES),
    ]


def compile_all(target: str, folder: Path, only: Sequence[str]) -> dict[str, tuple[list[CompiledRow], str]]:
    """(rows, or what was said instead) by job."""
    found = {}
    for job in jobs(targets.parse(target).devices):
        if only and job.name not in only:
            continue
        where = folder / f"{job.name}-{target.replace(':', '-')}"
        command = [sys.executable, "-m", "jaxbench", "run", *job.words, "--preset=smoke", "--dry_run"]
        done = subprocess.run([*command, f"--target={target}", f"--workdir={where}"], capture_output=True, text=True)
        said = (done.stderr.strip().splitlines() or [""])[-1]
        rows = compiled.rows(RunFolder(where)) if (where / "manifest.json").exists() else []
        wrong = sum(row.record is None or row.right is False for row in rows)
        sys.stderr.write(f"{target} {job.name}: {len(rows)} points, {wrong} amiss {said if not rows else ''}\n")
        found[job.name] = rows, said
    return found


def page(found: dict[str, dict[str, tuple[list[CompiledRow], str]]], version: str) -> str:
    """The Markdown of docs/TARGETS.md."""
    lines = [
        "# Compiled for hardware that is not here",
        "",
        "Every experiment, every strategy that it has, compiled for a TPU slice and for a host of GPUs at the sizes of",
        f"the preset `smoke`; nothing was run. Made by `python -m benchmarks.targets` with {version}.",
        "",
        "*Closed form*: whether the collectives in the compiled program move exactly the numbers that the strategy",
        "must move (docs/METRICS.md). *Memory* is per device, *sent* what one device sends in a step.",
        "",
        "| target | points | compile | fit | closed form equal | differ | failed |",
        "|---|---|---|---|---|---|---|",
    ]
    for target, by_job in found.items():
        rows = [row for rows, _ in by_job.values() for row in rows]
        counts = (
            len(rows), sum(row.record is not None for row in rows), sum(bool(row.fits) for row in rows),
            sum(row.right is True for row in rows), sum(row.right is False for row in rows),
            sum(row.record is None for row in rows),
        )  # fmt: skip
        lines.append(f"| {target} | {' | '.join(map(str, counts))} |")
    for target, by_job in found.items():
        lines += ["", f"## {target}", "", *_table(by_job), "", *_amiss(by_job)]
    return "\n".join(lines).rstrip() + "\n"


def _table(by_job: dict[str, tuple[list[CompiledRow], str]]) -> list[str]:
    lines = [
        "| experiment | point | compiles | memory | sent | closed form | compile, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (rows, said) in by_job.items():
        if not rows:
            lines.append(f"| {name} | | {said} | | | | |")
        for row in rows:
            record = row.record
            held = "" if record is None or record.peak_bytes is None else gigabytes(record.peak_bytes)
            cells = (
                name, row.name, "yes" if record is not None else row.status, held,
                gigabytes(row.wire_bytes) if row.wire_bytes else "",
                {True: "equal", False: "**differs**", None: ""}[row.right],
                "" if record is None else f"{record.compile_s:.1f}",
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _amiss(by_job: dict[str, tuple[list[CompiledRow], str]]) -> list[str]:
    sentences = [f"- {name}: {said}" for name, (rows, _) in by_job.items() for said in compiled.problems(rows)]
    about = (
        "What is not green, and why. A collective that the compiler wrote as another is measured all the same: its "
        "time stands, its bandwidth is refused (docs/METRICS.md, Gates)."
    )
    return [about, "", *sentences] if sentences else ["All green."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default="v5e:2x4,h100:8")
    parser.add_argument("--only", default="", help="jobs by name; the page is then not written")
    parser.add_argument("--folder", default="results/targets", type=Path)
    asked = parser.parse_args()
    only = [word for word in asked.only.split(",") if word]
    found = {target: compile_all(target, asked.folder, only) for target in asked.targets.split(",")}
    import jax

    text = page(found, f"jax {jax.__version__}")
    if only:
        sys.stdout.write(text)
    else:
        write_atomic(PAGE, text)
    amiss = any(
        row.record is None or row.right is False for by in found.values() for rows, _ in by.values() for row in rows
    )
    sys.exit(1 if amiss else 0)


if __name__ == "__main__":
    main()
