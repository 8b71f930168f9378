# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The steps behind the compiled texts in tests/compiled, for absent hardware, and how to regenerate the texts.

PYTHONPATH=tests python -m compiled_cases          (needs the extras target-tpu and target-cuda)
"""

from __future__ import annotations

import dataclasses
import gzip
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optax
from broken_strategies import clipping, communication

from jaxbench.catalog import targets
from jaxbench.machine import start as start_lib

FOLDER = Path(__file__).parent / "compiled"
TARGETS = ("v5e:2x4", "h100:8")
SLICES = ("v5e:2x2x2",)  # two slices of 2 x 2
BATCH = 64
# Source files and lines: they contain folders and are not read.
_TABLES = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(.+\n)*", re.MULTILINE)
_GPT = {"model.width": 32, "model.heads": 8, "model.context": 16, "model.vocab": 64, "model.layers": 2}
_SHALLOW = {**_GPT, "model.layers": 1}
_MIXTURE = {**_SHALLOW, "model.experts": 8}
_WIDE = {**_GPT, "model.width": 128, "model.heads": 4, "model.layers": 1}  # tiles of its heads are mostly padding


@dataclass(frozen=True)
class Case:
    """strategy: "broken/FAULT" for a wrong one. levers: as for `build_program`. clips: by the norm of all
    gradients; the wrong variant is then of fsdp. targets: for which its text is kept."""

    name: str
    experiment: str
    strategy: str
    changes: dict[str, Any] = field(default_factory=dict)
    levers: dict[str, str] = field(default_factory=dict)
    clips: bool = False
    targets: tuple[str, ...] = TARGETS

    @property
    def broken(self) -> bool:
        return self.strategy.startswith("broken/")

    def build(self, devices: list[Any]) -> tuple[Any, Any]:
        """(workload, program)."""
        from workload_cases import experiment_workload

        from jaxbench.measure.arm import build_program

        workload = experiment_workload(self.experiment, **self.changes)
        if self.clips:
            optimizer = optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(1e-3))
            workload = dataclasses.replace(workload, optimizer=optimizer)
        if self.broken and self.clips:
            return workload, clipping.build("fsdp", workload, devices, self.strategy.partition("/")[2])
        if self.broken:
            return workload, communication.build(workload, devices, self.strategy.partition("/")[2])
        return workload, build_program(workload, self.strategy, devices, self.levers)


CASES = [
    *(Case(f"mlp-{strategy}", "mlp", strategy) for strategy in ("jit_auto", "jit_explicit", "pmap", "shard_map")),
    *(Case(f"mlp-{strategy}", "mlp", strategy) for strategy in ("zero1", "zero2", "fsdp", "tensor")),
    *(Case(f"mlp-{fault}", "mlp", f"broken/{fault}") for fault in communication.FAULTS),
    *(Case(f"mlp-clip-{strategy}", "mlp", strategy, clips=True) for strategy in ("jit_auto", "zero1", "zero2", "fsdp")),
    Case("mlp-clip-stray", "mlp", "broken/stray", clips=True),
    Case("mlp-bfloat16", "mlp", "jit_auto", {"lever.precision": "bfloat16"}),
    *(
        Case(f"mlp-{way.replace(':', '-')}", "mlp", "shard_map", {"lever.reduction": way}, {"reduction": way})
        for way in ("ring", "scatter", "bucketed:bfloat16")
    ),
    Case("recsys-jit_auto", "recsys", "jit_auto"),
    Case("recsys-fsdp", "recsys", "fsdp"),
    Case("lstm-jit_auto", "lstm", "jit_auto"),
    Case("lstm-fsdp", "lstm", "fsdp"),
    Case("cnn-pmap", "cnn", "pmap"),
    *(Case(f"gpt-{strategy}", "gpt", strategy, _GPT) for strategy in ("tensor", "context")),
    Case("gpt-expert", "gpt", "expert", {**_GPT, "model.experts": 8}),
    Case("gpt-pipeline", "gpt", "hybrid", {**_GPT, "lever.accumulate": "4"}, {"mesh": "data=4,stage=2"}),
    Case("slices-data2-fsdp4", "gpt", "hybrid", _WIDE, {"mesh": "data=2,fsdp=4"}, targets=SLICES),
    Case("slices-data4-fsdp2", "gpt", "hybrid", _WIDE, {"mesh": "data=4,fsdp=2"}, targets=SLICES),
    Case("slices-tensor2", "gpt", "hybrid", _WIDE, {"mesh": "data=2,fsdp=2,tensor=2"}, targets=SLICES),
    Case("slices-data2-context4", "gpt", "hybrid", _SHALLOW, {"mesh": "data=2,context=4"}, targets=SLICES),
    Case("slices-fsdp2-context4", "gpt", "hybrid", _WIDE, {"mesh": "fsdp=2,context=4"}, targets=SLICES),
    Case("slices-data2-expert4", "gpt", "hybrid", _MIXTURE, {"mesh": "data=2,expert=4"}, targets=SLICES),
    Case("slices-context8", "gpt", "context", _SHALLOW, targets=SLICES),
    Case("slices-expert8", "gpt", "expert", _MIXTURE, targets=SLICES),
    *(Case(f"slices-{strategy}", "mlp", strategy, targets=SLICES) for strategy in ("jit_auto", "zero1", "zero2")),
    *(Case(f"slices-{fault}", "mlp", f"broken/{fault}", targets=SLICES) for fault in communication.FAULTS),
]
BY_NAME = {case.name: case for case in CASES}


def path(case: Case, target: str, folder: Path) -> Path:
    return folder / f"{case.name}-{target.replace(':', '-')}.hlo.gz"


def text(case: Case, target: str, folder: Path = FOLDER) -> str:
    return gzip.decompress(path(case, target, folder).read_bytes()).decode()


def make(target: str, names: str = "") -> None:
    """In a process that compiles only for `target`. names: of cases; (): all."""
    from jaxbench.measure.compile_report import compile_step

    devices = start_lib.target_devices(targets.parse(target))
    mine = [case for case in CASES if target in case.targets]
    for case in (BY_NAME[name] for name in names.split(",")) if names else mine:
        workload, program = case.build(devices)
        hlo = compile_step(workload, program, BATCH).hlo
        hlo = re.sub(r", metadata=\{[^}]*\}", "", _TABLES.sub("", hlo))
        FOLDER.mkdir(exist_ok=True)
        path(case, target, FOLDER).write_bytes(gzip.compress(hlo.encode(), mtime=0))
        sys.stderr.write(f"{path(case, target, FOLDER).name}\n")


def main() -> None:
    if len(sys.argv) > 1:
        make(sys.argv[1])
        return
    for target in (*TARGETS, *SLICES):
        environment = {**os.environ, **start_lib.target_environment(targets.parse(target))}
        subprocess.run([sys.executable, "-m", "compiled_cases", target], check=True, env=environment)


if __name__ == "__main__":
    main()
