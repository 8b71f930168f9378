# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ordinary user models in three styles, as files with `build(config)`."""

from __future__ import annotations

HEAD = '''
import jax, jax.numpy as jnp, optax
from flax import linen, nnx
from ml_collections import ConfigDict
from jaxbench.workloads import (
    Field, TrainWorkload, WeightedMean, classification, first, from_functions, from_linen, from_nnx, gathered)

get_config = lambda: ConfigDict({"batch": 16})
X, ROWS = jax.ShapeDtypeStruct((1, 12), jnp.float32), {"x": Field((12,)), "y": Field((), jnp.int32, classes=4)}
TEXT, WORDS = jax.ShapeDtypeStruct((1, 6), jnp.int32), {"t": Field((7,), jnp.int32, classes=20)}

def made(model, loss, example, optimizer=optax.sgd(0.1), tolerance=1e-5):
    return TrainWorkload(
        name="brought", init=model.init, loss=loss, optimizer=optimizer, example=example, tolerance=tolerance)

def next_word(model):
    def loss(params, model_state, batch, key):
        logits, model_state = model.apply(params, model_state, batch["t"][:, :-1], key)
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), batch["t"][:, 1:, None], -1)
        return -jnp.mean(picked), (model_state, {})
    return loss

def denoising(model):
    """A diffusion model's step: the noise is to be found."""
    def loss(params, model_state, batch, key):
        of_noise, of_level, of_model = jax.random.split(key, 3)
        noise = jax.random.normal(of_noise, batch["x"].shape)
        level = jax.random.uniform(of_level, (len(noise), 1))
        y, model_state = model.apply(params, model_state, batch["x"] * (1 - level) + level * noise, of_model)
        return jnp.mean((y - noise[:, :4]) ** 2), (model_state, {})
    return loss
'''

LINEN = {
    "dropout": """
class Net(linen.Module):
    @linen.compact
    def __call__(self, x, train):
        return linen.Dense(4)(linen.Dropout(0.5, deterministic=not train)(linen.relu(linen.Dense(16)(x))))
""",
    "norm": """
class Net(linen.Module):
    @linen.compact
    def __call__(self, x, train):
        x = linen.BatchNorm(use_running_average=not train)(linen.Dense(16)(x))
        return linen.Dense(4)(linen.Dropout(0.5, deterministic=not train)(linen.relu(x)))
""",
    "tied": """
class Net(linen.Module):
    @linen.compact
    def __call__(self, t):
        embed = linen.Embed(20, 8)
        return embed.attend(jnp.tanh(linen.Dense(8)(embed(t))))
""",
    "unused": """
class Net(linen.Module):
    @linen.compact
    def __call__(self, x):
        self.param("unused", linen.initializers.ones, (7, 3))
        return linen.Dense(4)(linen.relu(linen.Dense(16)(x)))
""",
    "recurrent": """
class Net(linen.Module):
    @linen.compact
    def __call__(self, x):
        states = linen.RNN(linen.SimpleCell(8))(x.reshape(-1, 3, 4))
        return linen.Dense(4)(states[:, -1])
""",
}
NNX = {
    "dropout": """
class Net(nnx.Module):
    def __init__(self, rngs):
        self.a, self.b = nnx.Linear(12, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
    def __call__(self, x):
        return self.b(self.drop(nnx.relu(self.a(x))))
""",
    "norm": """
class Net(nnx.Module):
    def __init__(self, rngs):
        self.a, self.b = nnx.Linear(12, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
        self.norm, self.drop = nnx.BatchNorm(16, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
    def __call__(self, x):
        return self.b(self.drop(nnx.relu(self.norm(self.a(x)))))
""",
    "tied": """
class Net(nnx.Module):
    def __init__(self, rngs):
        self.embed, self.a = nnx.Embed(20, 8, rngs=rngs), nnx.Linear(8, 8, rngs=rngs)
    def __call__(self, t):
        return self.embed.attend(jnp.tanh(self.a(self.embed(t))))
""",
    "unused": """
class Net(nnx.Module):
    def __init__(self, rngs):
        self.a, self.b = nnx.Linear(12, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
        self.unused = nnx.Param(jnp.ones((7, 3)))
    def __call__(self, x):
        return self.b(nnx.relu(self.a(x)))
""",
    "made in a call": """
class Seen(nnx.Variable):
    pass
class Net(nnx.Module):
    def __init__(self, rngs):
        self.a, self.b = nnx.Linear(12, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
    def __call__(self, x):
        self.seen = Seen(jnp.mean(x))
        return self.b(nnx.relu(self.a(x)))
""",
}
FUNCTIONS = {
    "dropout": """
def init(key):
    a, b = jax.random.split(key)
    return {"a": jax.random.normal(a, (12, 16)) / 4, "b": jax.random.normal(b, (16, 4)) / 4}
def apply(params, x, key):
    x = jax.nn.relu(x @ params["a"])
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), 2 * x, 0) @ params["b"]
""",
    "tied": """
def init(key):
    return {"embed": jax.random.normal(key, (20, 8)), "a": jnp.eye(8)}
def apply(params, t):
    return jnp.tanh(params["embed"][t] @ params["a"]) @ params["embed"].T
""",
    "unused": """
def init(key):
    a, b = jax.random.split(key)
    return {"a": jax.random.normal(a, (12, 16)) / 4, "b": jax.random.normal(b, (16, 4)) / 4, "unused": jnp.ones((7, 3))}
def apply(params, x):
    return jax.nn.relu(x @ params["a"]) @ params["b"]
""",
    "shifted": """
def init(key):
    return {"embed": jax.random.normal(key, (20, 8)), "a": jnp.eye(8), "shift": jnp.zeros(1)}
def apply(params, t):
    return jnp.tanh(params["embed"][t] @ params["a"]) @ params["embed"].T + 1000 * params["shift"].sum()
""",
    "recurrent": """
def init(key):
    a, b = jax.random.split(key)
    return {"x": jax.random.normal(a, (4, 8)) / 2, "h": jnp.eye(8) / 2, "y": jax.random.normal(b, (8, 4))}
def apply(params, x):
    def step(h, x):
        return jnp.tanh(x @ params["x"] + h @ params["h"]), None
    h, _ = jax.lax.scan(step, jnp.zeros((len(x), 8)), jnp.moveaxis(x.reshape(-1, 3, 4), 1, 0))
    return h @ params["y"]
""",
}
OF_TEXT = ("tied", "shifted")
STYLES = {"linen": LINEN, "nnx": NNX, "functions": FUNCTIONS}


def source(row: str, style: str) -> str:
    """The file. row: of a dictionary above, "noise" (a diffusion step) or "clip" (the optimizer clips).

    "shifted": softmax does not see that parameter, and Adam makes steps of the rounding that is its gradient.
    """
    name = {"noise": "dropout", "clip": "unused"}.get(row, row)
    model = {
        "linen": f"from_linen(Net(), {'TEXT' if row in OF_TEXT else 'X'})",
        "nnx": "from_nnx(lambda rngs: Net(rngs))",
        "functions": "from_functions(init, apply)",
    }[style]
    loss, example = 'classification(model, inputs="x", labels="y")', "ROWS"
    if row in OF_TEXT:
        loss, example = "next_word(model)", "WORDS"
    elif row == "noise":
        loss = "denoising(model)"
    optimizer = {
        "clip": ", optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.1))",
        "shifted": ", optax.adam(1e-3), 1e-3",
    }.get(row, "")
    build = f"\ndef build(config):\n    model = {model}\n    return made(model, {loss}, {example}{optimizer})\n"
    return f'"""Brought."""\n{HEAD}{STYLES[style][name]}{build}'
