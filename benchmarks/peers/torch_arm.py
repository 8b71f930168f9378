# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""PyTorch's arms, eager and compiled, each in its fastest variant.

The fastest variant depends on model and machine, so the arm first times its variants interleaved and keeps the fastest.
Variants: images channels-last or not; the optimizer's update fused into one call, or one call for each kind of
arithmetic (foreach); in the compiled arm also the update compiled.
Subnormal numbers count as zero, as in XLA. There are as many threads as cores. After their work they spin for about a
millisecond (libgomp's default) and then sleep, long before another arm's warm-up steps end.
On a GPU float32 products may use TF32 in both frameworks, which is JAX's default.
Run by the parent: python -m benchmarks.peers.torch_arm MODEL PLATFORM FOLDER eager|compile
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.peers import models_torch
from benchmarks.peers.arms import STEPS_CHECKED, serve
from jaxbench.machine.cores import available_cores

TRIAL_S, TRIALS = 0.1, 5
WEIGHT_DECAY = 1e-4  # the default of optax.adamw


@dataclass(frozen=True)
class Form:
    """One variant of the same steps."""

    mode: str  # eager, compile
    layout: str  # contiguous, channels_last
    update: str  # fused, foreach, compiled

    def __str__(self) -> str:
        return f"{self.layout}, {self.update}"


class Training:
    """A model in one variant. Each run starts from the suite's initial weights."""

    def __init__(self, name: str, folder: Path, device: str, form: Form):
        config = json.loads((folder / "config.json").read_text())
        with np.load(folder / "start.npz", allow_pickle=False) as file:
            of = {kind: {k.removeprefix(kind): file[k] for k in file.files if k.startswith(kind)} for kind in KINDS}
        layout = getattr(torch, f"{form.layout}_format" if form.layout == "contiguous" else form.layout)
        self.model = models_torch.make(name, config["model"], of["params/"]).to(device, memory_format=layout)
        batch = models_torch.torch_batch(of["batch/"])
        self.batch = {k: v.to(device, memory_format=layout) if v.ndim == 4 else v.to(device) for k, v in batch.items()}
        self._initial = {place: value.detach().clone() for place, value in self.model.state_dict().items()}
        self.form, self._device = form, device
        self._optimizer = optimizer(config["optimizer"], self.model, fused=form.update == "fused")
        self._loss = torch.compile(models_torch.loss) if form.mode == "compile" else models_torch.loss
        step: Callable[[], Any] = self._optimizer.step
        self._update = torch.compile(step) if form.update == "compiled" else step

    def restart(self) -> None:
        """In place, so that compiled code stays valid."""
        self.model.load_state_dict(self._initial)
        for state in self._optimizer.state.values():
            for value in state.values():
                value.zero_()

    def step(self) -> torch.Tensor:
        self._optimizer.zero_grad(set_to_none=True)
        loss = self._loss(self.model, self.batch)
        loss.backward()
        self._update()
        return loss.detach()

    def block(self, steps: int) -> float:
        """Seconds of `steps` steps."""
        self._wait()
        start_s = time.perf_counter()
        for _ in range(steps):
            self.step()
        self._wait()
        return time.perf_counter() - start_s

    def run(self, steps: int) -> float:
        self.restart()
        self.block(steps // 4 + 1)
        return self.block(steps)

    def _wait(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()


KINDS = ("params/", "batch/")


def optimizer(config: dict[str, Any], model: torch.nn.Module, *, fused: bool) -> torch.optim.Optimizer:
    """The optax optimizer that `jaxbench.workloads.optimizers` makes from this config."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    options: dict[str, Any] = {"lr": config["learning_rate"], **({"fused": True} if fused else {"foreach": True})}
    if config["name"] == "adamw":
        return torch.optim.AdamW(parameters, weight_decay=WEIGHT_DECAY, **options)
    if config["name"] == "adam":
        return torch.optim.Adam(parameters, **options)
    return torch.optim.SGD(parameters, momentum={"sgd": 0.0, "momentum": 0.9}[config["name"]], **options)


def fastest(trainings: list[Training]) -> Training:
    """The variant with the smallest median over interleaved blocks."""
    steps = []
    for training in trainings:
        steps.append(1)
        while training.run(steps[-1]) < TRIAL_S and steps[-1] < 2**14:
            steps[-1] *= 2
    times = [[one.run(count) / count for one, count in zip(trainings, steps, strict=True)] for _ in range(TRIALS)]
    return trainings[int(np.argmin(np.median(times, axis=0)))]


def forms(name: str, mode: str) -> list[Form]:
    layouts = ("contiguous", "channels_last") if name in ("cnn", "resnet18") else ("contiguous",)
    updates = ("fused", "foreach", "compiled") if mode == "compile" else ("fused", "foreach")
    return [Form(mode, layout, update) for layout, update in itertools.product(layouts, updates)]


def main() -> None:
    name, platform, folder, mode = sys.argv[1:]
    torch.set_num_threads(available_cores())
    torch.set_flush_denormal(True)
    torch.set_float32_matmul_precision("high")
    device = {"cpu": "cpu", "gpu": "cuda"}[platform]
    training = fastest([Training(name, Path(folder), device, form) for form in forms(name, mode)])
    training.restart()
    losses = [training.step().item() for _ in range(STEPS_CHECKED)]
    serve(f"torch {torch.__version__}, {training.form}", losses, training.run)


if __name__ == "__main__":
    main()
