# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Keras' arm, on its JAX back-end: models that are a stack of layers, trained by `fit` on one repeated batch.

Run by the parent: python -m benchmarks.peers.keras_arm MODEL PLATFORM FOLDER
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"  # before Keras is imported

import jax
import keras
import numpy as np
from keras import layers

from benchmarks.peers.arms import STEPS_CHECKED, serve
from jaxbench.machine.cores import available_cores
from jaxbench.machine.start import start

MODELS = ("mlp", "cnn")


def stack(name: str, config: dict[str, Any]) -> list[Any]:
    """The layers of a model."""
    if name == "mlp":
        hidden = [layers.Dense(config["width"], activation="relu") for _ in range(config["depth"])]
        return [layers.Flatten(), *hidden, layers.Dense(10)]
    stages = [
        (layers.Conv2D(config["width"] * 2**i, 5, padding="same", activation="relu"), layers.MaxPool2D())
        for i in range(config["depth"])
    ]
    dense = layers.Dense(config["hidden"], activation="relu")
    return [*itertools.chain(*stages), layers.Flatten(), dense, layers.Dense(10)]


def weights(params: dict[str, np.ndarray]) -> list[np.ndarray]:
    """In Keras' order: layer by layer from the input, the kernel before the bias. Layouts are the same."""
    places = sorted({path.rsplit("/", 1)[0] for path in params}, key=lambda place: (place == "logits", place))
    return [params[f"{place}/{end}"] for place in places for end in ("kernel", "bias")]


def optimizer(config: dict[str, Any]) -> Any:
    if config["name"] == "adam":
        return keras.optimizers.Adam(config["learning_rate"], epsilon=1e-8)
    return keras.optimizers.SGD(config["learning_rate"])


def _endless(*batch: Any) -> Iterator[Any]:
    """The batch for ever, as a generator: `fit` does not accept itertools.repeat."""
    while True:
        yield batch


def main() -> None:
    name, platform, folder = sys.argv[1:]
    start(platform, 1, cores=available_cores() if platform == "cpu" else None)
    config = json.loads((Path(folder) / "config.json").read_text())
    with np.load(Path(folder) / "start.npz", allow_pickle=False) as file:
        params = {path.removeprefix("params/"): file[path] for path in file.files if path.startswith("params/")}
        image, label = jax.device_put((file["batch/image"], file["batch/label"]))
    model = keras.Sequential(stack(name, config["model"]))
    model.build(image.shape)
    model.compile(optimizer(config["optimizer"]), keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    def restart() -> None:
        model.set_weights(weights(params))
        for variable in model.optimizer.variables:
            if "learning_rate" not in variable.path:
                variable.assign(np.zeros(variable.shape, variable.dtype))

    def block(steps: int) -> float:
        start_s = time.perf_counter()
        model.fit(_endless(image, label), steps_per_epoch=steps, shuffle=False, verbose=0)
        return time.perf_counter() - start_s

    def run(steps: int) -> float:
        restart()
        block(steps // 4 + 1)
        return block(steps)

    restart()
    losses = [float(model.train_on_batch(image, label)) for _ in range(STEPS_CHECKED)]
    serve(f"keras {keras.__version__}", losses, run)


if __name__ == "__main__":
    main()
