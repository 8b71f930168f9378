# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""PyTorch's results for small, mathematically equal models, stored in files for the tests.

A file ``tests/workloads/references/<model>.npz`` has the loss, the logits and the gradient of every parameter. The
weights and the batch are not stored: both sides draw them with NumPy from a fixed seed, in the order of the paths.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

FOLDER = Path(__file__).parents[2] / "tests" / "workloads" / "references"
SEED = 20260101
Answer = tuple[float, np.ndarray, dict[str, np.ndarray]]  # loss, logits, gradient by path


def flat(tree: Any) -> dict[str, Any]:
    """A tree of parameters or gradients by path ("blocks/0/conv1/kernel"), in alphabetic order."""
    paths = jax.tree_util.tree_flatten_with_path(tree)[0]
    return dict(sorted(("/".join(str(key.key) for key in path), leaf) for path, leaf in paths))


def weights(avals: Any) -> Any:
    """Float32 values for a tree of parameter shapes, with the magnitude of trained weights, none of them 0 or 1.

    Kernels are normal with variance 1 / inputs, scales near 1, all else near 0.
    """
    random = np.random.default_rng(SEED)
    drawn = {path: _draw(random, path.rsplit("/", 1)[-1], aval.shape) for path, aval in flat(avals).items()}
    paths, structure = jax.tree_util.tree_flatten_with_path(avals)
    return jax.tree.unflatten(structure, [drawn["/".join(str(key.key) for key in path)] for path, _ in paths])


def _draw(random: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    values = random.standard_normal(shape)
    if name == "kernel":
        return np.float32(values / np.sqrt(np.prod(shape[:-1])))
    return np.float32((name == "scale") + 0.1 * values)


def images(batch: int, size: int, classes: int, *, channels: int = 3, seed: int = 0) -> dict[str, np.ndarray]:
    """A batch for a classifier: "image" float32 NHWC and "label" int32."""
    random = np.random.default_rng(SEED + 1 + seed)
    image = random.standard_normal((batch, size, size, channels)).astype(np.float32)
    return {"image": image, "label": random.integers(0, classes, batch).astype(np.int32)}


def relative_l2(actual: dict[str, Any], expected: dict[str, Any]) -> float:
    """||actual - expected|| / ||expected|| over all entries, in float64."""
    pairs = [(np.float64(actual[path]), np.float64(expected[path])) for path in expected]
    difference = sum(np.sum((a - b) ** 2) for a, b in pairs)
    return float(np.sqrt(difference / sum(np.sum(b**2) for _, b in pairs)))


def answer(loss: Any, logits: Any, gradient: Any) -> Answer:
    """The same as host arrays, the gradient by path."""
    return float(loss), np.asarray(logits), {path: np.asarray(leaf) for path, leaf in flat(gradient).items()}


def load(model: str) -> Answer:
    """Reads a reference file."""
    with np.load(FOLDER / f"{model}.npz", allow_pickle=False) as file:
        gradient = {path.removeprefix("gradient/"): file[path] for path in file.files if path.startswith("gradient/")}
        return float(file["loss"]), file["logits"], gradient


def save(model: str, loss: float, logits: np.ndarray, gradient: dict[str, np.ndarray]) -> None:
    """Writes a reference file, float32; loss as float64."""
    arrays = {f"gradient/{path}": np.float32(value) for path, value in sorted(gradient.items())}
    FOLDER.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(FOLDER / f"{model}.npz", loss=np.float64(loss), logits=np.float32(logits), **arrays)
