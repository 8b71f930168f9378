# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A user's model in a separate file: the right version, and versions with one line changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaxbench import discovery

MINE = """import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax import nnx
from jaxbench.workloads import Field, TrainWorkload, classification, from_functions, from_linen, from_nnx


def build(config):
    def init(key):
        return {"w": jax.random.normal(key, (3, 5))}, {"mean": jnp.zeros(5)}

    def loss(params, model_state, batch, key):
        logits = batch["x"] @ params["w"]
        mean = 0.9 * model_state["mean"] + 0.1 * logits.mean(0)
        each = optax.softmax_cross_entropy_with_integer_labels(logits - mean, batch["label"])
        return jnp.mean(each), ({"mean": mean}, {"accuracy": jnp.mean(logits.argmax(-1) == batch["label"])})

    example = {"x": Field((3,)), "label": Field((), jnp.int32, classes=5)}
    return TrainWorkload(name="mine", init=init, loss=loss, optimizer=optax.sgd(0.1), example=example)
"""


def write(folder: Path, *changes: tuple[str, str]) -> str:
    """The path of the file in `folder`, with each first text replaced by the second."""
    text = MINE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "mine.py").write_text(text)
    return str(folder / "mine.py")


def line_with(path: str, text: str) -> int:
    """The number of the last line that holds `text`."""
    return max(n for n, line in enumerate(Path(path).read_text().splitlines(), 1) if text in line)


def build(path: str) -> Any:
    """The workload of the file."""
    return discovery.build(path, None)
