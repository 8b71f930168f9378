# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The models in idiomatic PyTorch, with the suite's weights.

Modules are named as in the suite, so that "blocks.0.norms.1.weight" is the suite's "blocks/0/norms/1/scale".
Kernels: HWIO -> OIHW; dense: (in, out) -> (out, in); the rows of cnn's first dense layer from the order (H, W, C) to
(C, H, W). nn.LSTM adds two biases and the suite one: the second stays zero and is not trained.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

Batch = dict[str, torch.Tensor]


class Perceptron(nn.Module):
    def __init__(self, config: dict[str, Any]):
        super().__init__()
        widths = [28 * 28, *[config["width"]] * config["depth"], 10]
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in zip(widths[:-1], widths[1:], strict=True))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class LeNet(nn.Module):
    def __init__(self, config: dict[str, Any]):
        super().__init__()
        widths = [1, *[config["width"] * 2**i for i in range(config["depth"])]]
        self.side = 28 // 2 ** config["depth"]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(i, o, 5, padding=2) for i, o in zip(widths[:-1], widths[1:], strict=True)
        )
        self.hidden = nn.Linear(self.side**2 * widths[-1], config["hidden"])
        self.logits = nn.Linear(config["hidden"], 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for convolution in self.convolutions:
            x = F.max_pool2d(F.relu(convolution(x)), 2)
        return self.logits(F.relu(self.hidden(x.flatten(1))))


class Block(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        first = nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False)
        self.convolutions = nn.ModuleList([first, nn.Conv2d(width, width, 3, padding=1, bias=False)])
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
        self.projected = stride > 1
        if self.projected:
            self.shortcut = nn.Conv2d(inputs, width, 1, stride, bias=False)
            self.shortcut_norm = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = self.shortcut_norm(self.shortcut(x)) if self.projected else x
        x = F.relu(self.norms[0](self.convolutions[0](x)), inplace=True)
        return F.relu(self.norms[1](self.convolutions[1](x)) + shortcut, inplace=True)


class ResNet(nn.Module):
    """Basic blocks after a 3x3 stem."""

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        width, inputs, blocks = config["width"], config["width"], []
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        for stage, count in enumerate(config["blocks"].split(",")):
            for place in range(int(count)):
                blocks.append(Block(inputs, width * 2**stage, 2 if stage and not place else 1))
                inputs = width * 2**stage
        self.blocks = nn.Sequential(*blocks)
        self.logits = nn.Linear(inputs, config["classes"] or 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm(self.stem(x)), inplace=True)
        return self.logits(self.blocks(x).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm_attention, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm_perceptron = nn.LayerNorm(width)
        self.perceptron = nn.ModuleDict({"up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_attention(x))
        hidden = F.gelu(self.perceptron["up"](self.norm_perceptron(x)), approximate="tanh")
        return x + self.perceptron["down"](hidden)


class GPT(nn.Module):
    def __init__(self, config: dict[str, Any]):
        super().__init__()
        width = config["width"]
        self.tokens, self.positions = nn.Embedding(config["vocab"], width), nn.Embedding(config["context"], width)
        self.blocks = nn.Sequential(*(Layer(width, config["heads"]) for _ in range(config["layers"])))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


class Texts(nn.Module):
    def __init__(self, config: dict[str, Any]):
        super().__init__()
        self.embedding = nn.Embedding(256, config["embedding"])
        self.lstm = nn.LSTM(config["embedding"], config["width"], batch_first=True)
        self.lstm.bias_hh_l0.requires_grad_(False).zero_()
        self.logits = nn.Linear(config["width"], config["classes"])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.embedding(tokens))
        real = (tokens > 0).unsqueeze(-1)
        return self.logits((states * real).sum(1) / real.sum(1).clamp(min=1))


MODELS = {"mlp": Perceptron, "cnn": LeNet, "resnet18": ResNet, "gpt": GPT, "lstm": Texts}
ENDS = {"kernel": "weight", "scale": "weight"}
PLACES = {
    "tokens": "tokens.weight",
    "positions": "positions.weight",
    "embedding": "embedding.weight",
    "lstm.inputs.weight": "lstm.weight_ih_l0",
    "lstm.inputs.bias": "lstm.bias_ih_l0",
    "lstm.recurrent": "lstm.weight_hh_l0",
}
TRANSPOSED = {"kernel", "recurrent"}


def make(name: str, config: dict[str, Any], params: dict[str, np.ndarray]) -> nn.Module:
    """The model with the suite's weights. Raises ValueError unless each parameter gets one, of its shape."""
    model = MODELS[name](config)
    trained = {place: p for place, p in model.named_parameters() if p.requires_grad}
    values = dict(_placed(model, path, value) for path, value in params.items())
    if {p: tuple(v.shape) for p, v in trained.items()} != {p: tuple(v.shape) for p, v in values.items()}:
        raise ValueError(f"the parameters {sorted(values)} do not fit {sorted(trained)}")
    with torch.no_grad():
        for place, parameter in trained.items():
            parameter.copy_(values[place])
    return model


def _placed(model: nn.Module, path: str, value: np.ndarray) -> tuple[str, torch.Tensor]:
    *module, end = path.split("/")
    place = ".".join([*module, ENDS.get(end, end)])
    tensor = torch.from_numpy(value)
    if "attention" in module:  # heads have axes of their own
        tensor = tensor.flatten() if end == "bias" else tensor.flatten(1) if "qkv" in module else tensor.flatten(0, 1)
    if isinstance(model, LeNet) and place == "hidden.weight":
        tensor = tensor.unflatten(0, (model.side, model.side, -1)).permute(2, 0, 1, 3).flatten(0, 2)
    if end in TRANSPOSED:
        tensor = tensor.permute(3, 2, 0, 1) if tensor.ndim == 4 else tensor.T
    return PLACES.get(place, place), tensor


def loss(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy of a batch, in the layout that `torch_batch` gives."""
    if isinstance(model, GPT):
        return F.cross_entropy(model(batch["tokens"][:, :-1]).flatten(0, 1), batch["tokens"][:, 1:].flatten())
    return F.cross_entropy(model(batch["image"] if "image" in batch else batch["tokens"]), batch["label"])


def torch_batch(fields: dict[str, np.ndarray]) -> Batch:
    """NHWC images to NCHW ones, integers to int64."""
    batch = {field: torch.from_numpy(value) for field, value in fields.items()}
    return {
        field: tensor.permute(0, 3, 1, 2).contiguous() if tensor.ndim == 4 else tensor.long()
        for field, tensor in batch.items()
    }
