# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forward and backward passes of the vision models in PyTorch, with the suite's weights on the suite's batch.

``python -m benchmarks.references.vision`` needs PyTorch. It rewrites the files, which contain PyTorch's float64
results, and shows the relative errors of float32 in PyTorch and in the suite. The last column is the largest of ten
errors in float64 after a relative perturbation of the weights by 1e-6. It is small if every ReLU and pool is far enough
from a tie that rounding cannot change the gradient. `SEEDS` give batches with this property.

The weights stay in the suite's layout and are converted to PyTorch's inside the differentiated function, so gradients
come back in the suite's. Kernels: HWIO -> OIHW. Dense: (in, out) -> (out, in). The first dense layer reads pixels
channel last here and channel first there: its rows are reordered from (H, W, C) to (C, H, W).
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from functools import partial
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict
from rich.console import Console
from rich.table import Table

from benchmarks import references
from jaxbench.discovery import load_experiment
from jaxbench.machine.start import run_once_options
from jaxbench.workloads import classification, from_nnx
from jaxbench.workloads.adapters import PureModel
from jaxbench.workloads.models.image_models import ConvNet, ResNet, ViT

with suppress(ImportError):  # only PyTorch's side needs it: the tests read its stored answers
    import torch
    from torch.nn import functional as F

BATCH = 8
RESNET = {"size": 64, "classes": 5, "stem": "imagenet", "width": 4, "block": "basic", "statistics": "device"}
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "alexnet": (ConvNet, {"size": 127, "classes": 5, "width": 4, "hidden": 24, "pooled": 3}),
    "vgg16": (ConvNet, {"size": 64, "classes": 5, "width": 3, "hidden": 24, "pooled": 2}),
    "resnet_basic": (ResNet, {**RESNET, "blocks": "2,2,2,2"}),
    "resnet_bottleneck": (ResNet, {**RESNET, "blocks": "2,1,1,1", "block": "bottleneck"}),
    "resnet_preactivation": (
        ResNet,
        {**RESNET, "blocks": "2,2,2", "block": "preactivation", "stem": "cifar", "size": 16},
    ),
    "vit": (ViT, {"size": 32, "patch": 8, "classes": 5, "width": 32, "depth": 2, "heads": 4}),
}
SEEDS = {"alexnet": 0, "vgg16": 2, "resnet_basic": 16, "resnet_bottleneck": 11, "resnet_preactivation": 11, "vit": 0}
CHANGE, CHANGES = 1e-6, 10


def model(name: str) -> PureModel:
    """The suite's model of a reference."""
    constructor, config = MODELS[name]
    # Its layers, or what it recomputes.
    variant = load_experiment(name).LAYERS if constructor is ConvNet else "none"
    return from_nnx(partial(constructor, ConfigDict(config), variant))


def batch(name: str) -> dict[str, np.ndarray]:
    return references.images(BATCH, MODELS[name][1]["size"], MODELS[name][1]["classes"], seed=SEEDS[name])


def answer(name: str) -> references.Answer:
    """The suite's, float32."""
    pure, drawn = model(name), batch(name)
    avals, model_state = jax.eval_shape(pure.init, jax.random.PRNGKey(0))
    params = references.weights(avals)
    model_state = jax.tree.map(lambda aval: np.zeros(aval.shape, aval.dtype), model_state)  # training does not read it

    def loss(params: Any) -> tuple[jax.Array, jax.Array]:
        logits, _ = pure.apply(params, model_state, drawn["image"])
        known = dataclasses.replace(pure, run=lambda *_: (logits, model_state))  # one forward pass is enough
        return classification(known)(params, model_state, drawn, jax.random.PRNGKey(0))[0], logits

    program = jax.jit(jax.value_and_grad(loss, has_aux=True), compiler_options=run_once_options())
    (value, logits), gradient = program(params)
    return references.answer(value, logits, gradient)


def torch_answer(name: str, dtype: Any, noise: int = 0) -> references.Answer:
    """PyTorch's. noise: the seed of a perturbation of the weights by `CHANGE`; 0: none."""
    avals, _ = jax.eval_shape(model(name).init, jax.random.PRNGKey(0))
    values = references.flat(references.weights(avals))
    if noise:
        random = np.random.default_rng(noise)
        values = {path: v * (1 + CHANGE * random.standard_normal(v.shape)) for path, v in values.items()}
    leaves = {path: torch.tensor(value, dtype=dtype, requires_grad=True) for path, value in values.items()}
    drawn = batch(name)
    image = torch.tensor(drawn["image"], dtype=dtype).permute(0, 3, 1, 2)
    forward = {"alexnet": _alexnet, "vgg16": _vgg, "vit": _vit}.get(name, _resnet)
    logits = forward(leaves, image, ConfigDict(MODELS[name][1]))
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(drawn["label"], dtype=torch.long))
    loss.backward()
    return loss.item(), logits.detach().numpy(), {path: leaf.grad.numpy() for path, leaf in leaves.items()}


def _conv(w: dict, path: str, x: Any, **options: int) -> Any:
    return F.conv2d(x, w[f"{path}/kernel"].permute(3, 2, 0, 1), w.get(f"{path}/bias"), **options)


def _dense(w: dict, path: str, x: Any, image: tuple[int, int, int] | None = None) -> Any:
    """image: the shape (H, W, C) of `x` before it was flattened as (C, H, W)."""
    kernel = w[f"{path}/kernel"]
    if image:
        kernel = kernel.reshape(*image, -1).permute(2, 0, 1, 3).reshape(x.shape[1], -1)
    return F.linear(x, kernel.T, w[f"{path}/bias"])


def _head(w: dict, x: Any, pooled: int) -> Any:
    """AlexNet's and VGG's average pool and dense layers."""
    x = F.adaptive_avg_pool2d(x, (pooled, pooled))
    x = F.relu(_dense(w, "hidden/0", x.flatten(1), (pooled, pooled, x.shape[1])))
    return _dense(w, "logits", F.relu(_dense(w, "hidden/1", x)))


def _alexnet(w: dict, x: Any, config: ConfigDict) -> Any:
    x = F.max_pool2d(F.relu(_conv(w, "convolutions/0", x, stride=4, padding=2)), 3, 2)
    x = F.max_pool2d(F.relu(_conv(w, "convolutions/1", x, padding=2)), 3, 2)
    x = F.relu(_conv(w, "convolutions/2", x, padding=1))
    x = F.relu(_conv(w, "convolutions/3", x, padding=1))
    return _head(w, F.max_pool2d(F.relu(_conv(w, "convolutions/4", x, padding=1)), 3, 2), config.pooled)


def _vgg(w: dict, x: Any, config: ConfigDict) -> Any:
    for place in range(13):
        x = F.relu(_conv(w, f"convolutions/{place}", x, padding=1))
        if place in (1, 3, 6, 9, 12):
            x = F.max_pool2d(x, 2)
    return _head(w, x, config.pooled)


def _norm(w: dict, path: str, x: Any) -> Any:
    return F.batch_norm(x, None, None, w[f"{path}/scale"], w[f"{path}/bias"], training=True, eps=1e-5)


def _resnet(w: dict, x: Any, config: ConfigDict) -> Any:
    block = {"basic": _basic, "bottleneck": _bottleneck, "preactivation": _preactivation}[config.block]
    x = _conv(w, "stem", x, stride=2, padding=3) if config.stem == "imagenet" else _conv(w, "stem", x, padding=1)
    if config.block != "preactivation":
        x = F.relu(_norm(w, "norm", x))
    if config.stem == "imagenet":
        x = F.max_pool2d(x, 3, 2, 1)
    number = 0
    for stage, count in enumerate(config.blocks.split(",")):
        for place in range(int(count)):
            x = block(w, f"blocks/{number}", x, 2 if stage > 0 and place == 0 else 1)
            number += 1
    if config.block == "preactivation":
        x = F.relu(_norm(w, "norm", x))
    return _dense(w, "logits", x.mean((2, 3)))


def _shortcut(w: dict, path: str, x: Any, stride: int) -> Any:
    if f"{path}/shortcut/kernel" not in w:
        return x
    return _norm(w, f"{path}/shortcut_norm", _conv(w, f"{path}/shortcut", x, stride=stride))


def _basic(w: dict, path: str, x: Any, stride: int) -> Any:
    y = F.relu(_norm(w, f"{path}/norms/0", _conv(w, f"{path}/convolutions/0", x, stride=stride, padding=1)))
    y = _norm(w, f"{path}/norms/1", _conv(w, f"{path}/convolutions/1", y, padding=1))
    return F.relu(y + _shortcut(w, path, x, stride))


def _bottleneck(w: dict, path: str, x: Any, stride: int) -> Any:
    y = F.relu(_norm(w, f"{path}/norms/0", _conv(w, f"{path}/convolutions/0", x)))
    y = F.relu(_norm(w, f"{path}/norms/1", _conv(w, f"{path}/convolutions/1", y, stride=stride, padding=1)))
    y = _norm(w, f"{path}/norms/2", _conv(w, f"{path}/convolutions/2", y))
    return F.relu(y + _shortcut(w, path, x, stride))


def _preactivation(w: dict, path: str, x: Any, stride: int) -> Any:
    y = F.relu(_norm(w, f"{path}/norms/0", x))
    if f"{path}/shortcut/kernel" in w:
        x = _conv(w, f"{path}/shortcut", y, stride=stride)
    y = F.relu(_norm(w, f"{path}/norms/1", _conv(w, f"{path}/convolutions/0", y, stride=stride)))
    y = F.relu(_norm(w, f"{path}/norms/2", _conv(w, f"{path}/convolutions/1", y, padding=1)))
    return x + _conv(w, f"{path}/convolutions/2", y)


def _vit(w: dict, x: Any, config: ConfigDict) -> Any:
    def norm(path: str, x: Any) -> Any:
        return F.layer_norm(x, (config.width,), w[f"{path}/scale"], w[f"{path}/bias"], 1e-6)

    x = _conv(w, "patches", x, stride=config.patch).flatten(2).transpose(1, 2)
    x = torch.cat([w["class_token"].expand(len(x), -1, -1), x], 1) + w["positions"]
    for path in (f"blocks/{number}" for number in range(config.depth)):
        qkv = _dense(w, f"{path}/qkv", norm(f"{path}/norm1", x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (config.heads, -1)).transpose(1, 2) for part in qkv)
        x = x + _dense(w, f"{path}/out", F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        hidden = F.gelu(_dense(w, f"{path}/hidden", norm(f"{path}/norm2", x)), approximate="tanh")
        x = x + _dense(w, f"{path}/back", hidden)
    return _dense(w, "logits", norm("norm", x)[:, 0])


def main() -> None:
    table = Table(
        "model", "logits, PyTorch", "logits, suite", "gradient, PyTorch", "gradient, suite", "parameters", "changed"
    )
    for name in MODELS:
        loss, logits, gradient = torch_answer(name, torch.float64)
        references.save(name, loss, logits, gradient)
        answers = torch_answer(name, torch.float32), answer(name)
        errors = [references.relative_l2({"": each[1]}, {"": logits}) for each in answers]
        errors += [references.relative_l2(each[2], gradient) for each in answers]
        changed = [torch_answer(name, torch.float64, noise)[2] for noise in range(1, CHANGES + 1)]
        worst = max(references.relative_l2(each, gradient) for each in changed)
        table.add_row(name, *(f"{e:.1e}" for e in errors), str(sum(g.size for g in gradient.values())), f"{worst:.1e}")
    Console().print(table)


if __name__ == "__main__":
    main()
