# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Makes the runs of each paper with a known answer to each claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fabricate
import fabricate_arms
import fabricate_cases
import fabricate_losses
import numpy as np
from fabricate_arms import arm

from jaxbench.core.store import RECORDS
from jaxbench.features.training.trainings import Trained, write_trained

Make = Callable[[Path], Any]
Law = Callable[[int], float]  # by batch


def scaling(run: str, efficiency: float, scaling: str = "weak", **more: Any) -> Make:
    """A run on one and two devices with this efficiency on two."""
    more = {"law": lambda _, n: n * efficiency if n > 1 else 1.0, "devices": (1, 2), "rounds": 9, **more}
    return lambda folder: fabricate.run_folder(folder / run, scalings=(scaling,), **more)


def follows(law: fabricate.Law, scaling: str) -> Make:
    return lambda folder: fabricate.run_folder(folder / "scaling", law=law, scalings=(scaling,), rounds=9, noise=0.001)


def both(*makes: Make) -> Make:
    def make(folder: Path) -> None:
        for each in makes:
            each(folder)

    return make


def remat(sqrt_s: float = 0.012, saveable_s: float = 0.0102, exponent: float = 0.5) -> Make:
    arms = [arm(0.010, remat="none"), arm(saveable_s, remat="dots_saveable"), arm(sqrt_s, remat="sqrt")]

    def make(folder: Path) -> None:
        fabricate_arms.lever_folder(folder / "remat", arms, ["remat"], rounds=9)
        rows = [{"blocks": n, "remat": "sqrt", "temp_bytes": int(1e6 * n**exponent)} for n in (4, 8, 16, 32)]
        (folder / "remat" / "remat_law.json").write_text(json.dumps({"rows": rows, "schema": 1}))

    return make


def precision(lost: float, unscaled: float = 0.0) -> Make:
    """Four seeds: accuracy in float16 is lower by `lost` points, within a tenth, and without loss scaling by `unscaled`
    more points."""

    def make(folder: Path) -> None:
        for seed in range(4):
            scaled = 0.97 - (lost + 0.1 * (seed % 2)) / 100
            ends = {"default": 0.97, "float16": scaled, "float16_unscaled": scaled - (unscaled + 0.01 * seed) / 100}
            arms = [arm(0.01, precision=name, outcome={"final_accuracy": each}) for name, each in ends.items()]
            fabricate_arms.lever_folder(folder / f"seed{seed}", arms, ["precision"], rounds=1)

    return make


def pipeline(idle: Mapping[str, float], run: str) -> Make:
    """Pipelines of two stages and four micro-batches on two devices, with the idle share of each schedule."""

    def make(folder: Path) -> None:
        arms = [fabricate_arms.Made(levers={"accumulate": "4", "schedule": name}, step_s=0.01) for name in idle]
        fabricate_arms.lever_folder(folder / run, arms, ["schedule"], strategy="pipeline", devices=(2,), rounds=2)
        edit(folder / run, lambda line: line["facts"].update(busy_share=1 - idle[line["levers"]["schedule"]]))

    return make


def depths(*sums: int) -> Make:
    """Steps of two and four blocks with these numbers of all-reduces over the tensor axis, and two of scalars."""

    def make(folder: Path) -> None:
        for depth, count in zip((2, 4), sums, strict=True):
            path = folder / f"depth{depth}"
            fabricate.run_folder(path, strategies=("tensor",), scalings=("strong",), devices=(2,), rounds=1)
            edit(path, lambda line, count=count: _collective(line, count=count + 2, scalars=2, elements=100))

    return make


def zero(run: str, **sent: int) -> Make:
    """Bytes that a device sends, by strategy."""

    def make(folder: Path) -> None:
        kinds = dict(strategies=tuple(sent), scalings=("strong",), devices=(2,), rounds=1)
        fabricate.run_folder(folder / run, **kinds)
        edit(folder / run, lambda line: _collective(line, wire_bytes=sent[line["strategy"]], elements=100))

    return make


def state(factor: float) -> Make:
    """The model state of each stage on one and two devices, times a factor."""
    shared = {"jit_auto": (16, 0), "zero1": (4, 12), "zero2": (2, 14), "fsdp": (0, 16)}

    def make(folder: Path) -> None:
        kinds = dict(strategies=tuple(shared), scalings=("weak",), devices=(1, 2), rounds=1)
        fabricate.run_folder(folder / "zero", **kinds)

        def holds(line: dict[str, Any]) -> None:
            whole, split = shared[line["strategy"]]
            each = whole + split / line["devices"]
            line["facts"] = {"state_bytes": factor * each * line["passport"]["parameters"], "held_gradient_bytes": 0.0}

        edit(folder / "zero", holds)

    return make


def frozen(share: float) -> Make:
    """A model with this share of the gradient's bytes in its dense layers."""
    arms = [
        arm(0.01, freeze=name, passport={"expected_gradient_bytes": int(1e6 * each)})
        for name, each in (("none", 1.0), ("convolutions", share))
    ]
    return lambda folder: fabricate_arms.lever_folder(folder / "freeze", arms, ["freeze"], devices=(2,), rounds=1)


def mixture(step_s: float, sent: float) -> Make:
    """Data parallelism with 10 ms per step, and a mixture with this time and this factor of its bytes."""

    def make(folder: Path) -> None:
        meshes = {"data=2": (0.010, 1e6), "tensor=2": (step_s, 1e6 * sent)}
        arms = [fabricate_arms.Made(levers={"mesh": mesh}, step_s=each_s) for mesh, (each_s, _) in meshes.items()]
        fabricate_arms.lever_folder(folder / "mixture", arms, ["mesh"], strategy="hybrid", devices=(2,), rounds=9)
        edit(folder / "mixture", lambda line: _collective(line, wire_bytes=int(meshes[line["levers"]["mesh"]][1])))

    return make


def buckets(each_s: float, fused_s: float) -> Make:
    times = {"each": each_s, "bucketed": 0.010, "fused": fused_s}
    arms = [fabricate_arms.Made(levers={"reduction": way}, step_s=step_s) for way, step_s in times.items()]
    return lambda folder: fabricate_arms.lever_folder(folder / "buckets", arms, ["reduction"], devices=(2,), rounds=9)


def overlap(communication: float) -> Make:
    """A step with this factor of communication; the communication is half as long as the rest."""
    losses = {2: fabricate_losses.Loss(communication=communication)}
    return lambda folder: fabricate_losses.folder(folder / "overlap", losses)


def kernels(share: float) -> Make:
    """One kernel at this share of the roof in the fabricated machine profile, 15 GB/s of two cores' memory."""
    case = fabricate_cases.stream("copy", 2**26, bytes_per_s=share * 1e10)
    return lambda folder: fabricate_cases.case_folder(
        folder / "kernels", [case], view="stream", machine=fabricate_cases.card()
    )


def all_reduces(bend: float) -> Make:
    """All-reduces at alpha + S / beta, every second size slower by a factor of 1 + bend."""
    made = [
        fabricate_cases.collective("all_reduce", size, 2, call_s=(1e-5 + size / 1e9) * (1 + bend * (i % 2)))
        for i, size in enumerate(2**power for power in range(10, 25))
    ]
    return lambda folder: fabricate_cases.case_folder(folder / "machine" / "collectives", made, view="collectives")


def trainings(steps: Law, accuracy: Law = lambda batch: 0.97, *, noise_scale: float = 64.0) -> Make:
    """Five seeds per batch, from 8 to 1,024, which differ by one per cent."""

    def make(folder: Path) -> None:
        trained = []
        for batch in (8, 16, 32, 64, 128, 256, 512, 1024):
            for seed in range(5):
                many, right = steps(batch) * (1 + 0.005 * (seed - 2)), accuracy(batch) + 1e-4 * (seed - 2)
                # A hundred times the steps: they are whole numbers, and claims are about their ratios.
                trained += [
                    Trained(
                        model="mlp", batch=batch, devices=1, seed=seed, learning_rate=0.1, rule=rule, target=0.97,
                        steps=round(100 * many), reached=many < 1e6, diverged=None, accuracy=right, step_s=None,
                        noise=((10, 1.0, noise_scale),), folder="",
                    ) for rule in ("linear", "tuned")
                ]  # fmt: skip
        (folder / "targets").mkdir(parents=True)
        write_trained(folder / "targets", trained)

    return make


def edit(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the compile reports of a run."""
    lines: Sequence[dict[str, Any]] = [json.loads(line) for line in (run / RECORDS).read_text().splitlines()]
    for line in lines:
        if line["kind"] == "point":
            change(line)
    (run / RECORDS).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _collective(line: dict[str, Any], **facts: Any) -> None:
    line["passport"]["collectives"] = [{"kind": "all-reduce", "count": 1, "bytes": 400, **facts}]


def quadratic(batch: int) -> float:
    """Steps of a quadratic with a noise scale of 64: 100 (1 + 64 / batch)."""
    return 100 * (1 + 64 / batch)


def halving(batch: int) -> float:
    return 8e4 / batch


AMDAHL, USL = fabricate.amdahl(0.05), fabricate.usl(0.05, 0.002)


def jump(scaling: str, n: int) -> float:
    """A speed-up that fits no law: none up to four devices, full at eight."""
    return float(np.where(n == 8, 8.0, 1.0))
