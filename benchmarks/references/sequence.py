# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forward and backward passes of the gpt and the lstm in PyTorch, with the suite's weights on the suite's batch.

``python -m benchmarks.references.sequence`` needs PyTorch. It rewrites the files, which contain PyTorch's float64
results, and shows the relative errors of float32 in PyTorch and in the suite.

The weights stay in the suite's layout and are converted to PyTorch's inside the differentiated function, so gradients
come back in the suite's: dense (in, out) -> (out, in). The LSTM is PyTorch's own; its gates have the same order and its
second bias is 0. Attention is written out.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict
from rich.console import Console
from rich.table import Table

from benchmarks import references
from jaxbench.workloads import classification, from_nnx
from jaxbench.workloads.adapters import PureModel
from jaxbench.workloads.losses import next_token
from jaxbench.workloads.models import gpt, lstm

with suppress(ImportError):  # only PyTorch's side needs it: the tests read its stored answers
    import torch
    from torch.nn import functional as F

BATCH = 4
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "gpt": (gpt.GPT, {"preset": "tiny", "layers": 2, "width": 32, "heads": 4, "context": 16, "vocab": 64}),
    "lstm": (lstm.Classifier, {"length": 12, "embedding": 8, "width": 16, "classes": 5}),
}


def model(name: str) -> PureModel:
    """The suite's model of a reference."""
    constructor, config = MODELS[name]
    return from_nnx(partial(constructor, ConfigDict(config)))


def batch(name: str) -> dict[str, np.ndarray]:
    """The loss's batch. The lstm's texts have different lengths, and the first is empty."""
    random, config = np.random.default_rng(references.SEED + 1), MODELS[name][1]
    if name == "gpt":
        return {"tokens": random.integers(0, config["vocab"], (BATCH, config["context"] + 1)).astype(np.int32)}
    tokens = random.integers(1, lstm.VOCAB, (BATCH, config["length"])).astype(np.int32)
    lengths = np.linspace(0, config["length"], BATCH).astype(int)
    tokens[np.arange(config["length"]) >= lengths[:, None]] = 0
    return {"tokens": tokens, "label": random.integers(0, config["classes"], BATCH).astype(np.int32)}


def answer(name: str) -> references.Answer:
    """The suite's, float32."""
    pure, drawn = model(name), batch(name)
    avals, model_state = jax.eval_shape(pure.init, jax.random.PRNGKey(0))
    loss = next_token(pure) if name == "gpt" else classification(pure, inputs="tokens")
    inputs = drawn["tokens"][:, :-1] if name == "gpt" else drawn["tokens"]

    @jax.jit
    def program(params: Any) -> tuple[Any, jax.Array]:
        gradient = jax.value_and_grad(loss, has_aux=True)(params, model_state, drawn, jax.random.PRNGKey(0))
        return gradient, pure.apply(params, model_state, inputs)[0]

    ((value, _), gradient), logits = program(references.weights(avals))
    return references.answer(value, logits, gradient)


def torch_answer(name: str, dtype: Any) -> references.Answer:
    """PyTorch's."""
    avals, _ = jax.eval_shape(model(name).init, jax.random.PRNGKey(0))
    values = references.flat(references.weights(avals))
    leaves = {path: torch.tensor(value, dtype=dtype, requires_grad=True) for path, value in values.items()}
    drawn = {field: torch.tensor(value, dtype=torch.long) for field, value in batch(name).items()}
    config = ConfigDict(MODELS[name][1])
    if name == "gpt":
        logits, target = _gpt(leaves, drawn["tokens"][:, :-1], config), drawn["tokens"][:, 1:]
    else:
        logits, target = _lstm(leaves, drawn["tokens"], config), drawn["label"]
    loss = F.cross_entropy(logits.flatten(0, -2), target.flatten())
    loss.backward()
    return loss.item(), logits.detach().numpy(), {path: leaf.grad.numpy() for path, leaf in leaves.items()}


def _dense(w: dict, path: str, x: Any) -> Any:
    kernel, bias = w[f"{path}/kernel"], w[f"{path}/bias"]
    return F.linear(x, kernel.reshape(x.shape[-1], -1).T, bias.flatten())  # heads have axes of their own


def _norm(w: dict, path: str, x: Any) -> Any:
    return F.layer_norm(x, x.shape[-1:], w[f"{path}/scale"], w[f"{path}/bias"], eps=1e-5)


def _gpt(w: dict, tokens: Any, config: ConfigDict) -> Any:
    x = F.embedding(tokens, w["tokens"]) + w["positions"]
    for layer in range(config.layers):
        block = f"blocks/{layer}"
        x = x + _attention(w, f"{block}/attention", _norm(w, f"{block}/norm_attention", x), config.heads)
        hidden = F.gelu(
            _dense(w, f"{block}/perceptron/up", _norm(w, f"{block}/norm_perceptron", x)), approximate="tanh"
        )
        x = x + _dense(w, f"{block}/perceptron/down", hidden)
    return F.linear(_norm(w, "norm", x), w["tokens"])


def _attention(w: dict, path: str, x: Any, heads: int) -> Any:
    """Head by head and query by query, so that later positions cannot affect a query."""
    queries, keys, values = _dense(w, f"{path}/qkv", x).chunk(3, dim=-1)
    width = x.shape[-1] // heads
    mixed = []
    for q, k, v in zip(queries.split(width, -1), keys.split(width, -1), values.split(width, -1), strict=True):
        rows = [
            torch.softmax(q[:, t : t + 1] @ k[:, : t + 1].mT / width**0.5, -1) @ v[:, : t + 1]
            for t in range(x.shape[1])
        ]
        mixed.append(torch.cat(rows, dim=1))
    return _dense(w, f"{path}/out", torch.cat(mixed, dim=-1))


def _lstm(w: dict, tokens: Any, config: ConfigDict) -> Any:
    cell = torch.nn.LSTM(config.embedding, config.width, batch_first=True)
    bias = w["lstm/inputs/bias"]
    weights = {
        "weight_ih_l0": w["lstm/inputs/kernel"].T,
        "weight_hh_l0": w["lstm/recurrent"].T,
        "bias_ih_l0": bias,
        "bias_hh_l0": torch.zeros_like(bias),
    }
    states, _ = torch.func.functional_call(cell.to(bias.dtype), weights, (F.embedding(tokens, w["embedding"]),))
    real = (tokens > 0).unsqueeze(-1)
    mean = (states * real).sum(1) / real.sum(1).clamp(min=1)
    return _dense(w, "logits", mean)


def main() -> None:
    table = Table("model", "of", "loss", "logits", "gradient", title="relative errors to PyTorch in float64")
    for name in MODELS:
        exact = torch_answer(name, torch.float64)
        references.save(name, *exact)
        for what, other in (("the suite", answer(name)), ("PyTorch float32", torch_answer(name, torch.float32))):
            errors = [
                abs(other[0] / exact[0] - 1),
                references.relative_l2({"": other[1]}, {"": exact[1]}),
                references.relative_l2(other[2], exact[2]),
            ]
            table.add_row(name, what, *(f"{error:.1e}" for error in errors))
    Console().print(table)


if __name__ == "__main__":
    main()
