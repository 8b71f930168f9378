# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A GPT-2 transformer of 0.8 million to 7 billion parameters, by default the smallest, on bytes of Python (1 min).

    make run EXP=gpt                                             # how training the "tiny" preset scales
    make run EXP=gpt ARGS="--config.model.preset=small"          # GPT-2 small, 124,439,808 parameters
    make run EXP=gpt ARGS="--config.data.pad=packed"             # uneven documents; the loss is a mean over real tokens
    make train EXP=gpt                                           # to 45 % of the next bytes of unseen source files

`--config.model.layers`, `.width`, `.heads`, `.context` and `.vocab` replace the preset's numbers if they are not 0;
`.experts` replaces each perceptron by a mixture of that many experts. `.padded_vocab` pads the rows of the embedding so
that they divide over devices: 50,304 for GPT-2's 50,257 words. The padding stays zero and changes neither loss nor
gradient, but the compile report counts it among the parameters: 36,096 numbers in "small".

`.hidden` is the width of the perceptrons (0: four widths). `.gated`=1 adds a gate to them. `.kv_heads` is the number of
heads for keys and values, shared by all heads of width `.head_width`. `.rms`=1 uses RMSNorm and no biases. `.attention`
is plain, flash (JAX's kernel on a TPU or a GPU), or auto: flash for numbers of 16 bits.

`--config.data.pad` is "" (contiguous text), "padded" (one padded document per row) or "packed" (concatenated documents,
with attention across their boundaries as in GPT-3). FLOPs count all tokens.
"""

from __future__ import annotations

from functools import cache, partial

import jax.numpy as jnp
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, from_nnx, make_optimizer
from jaxbench.workloads.data import text
from jaxbench.workloads.flops import training
from jaxbench.workloads.losses import last_position, next_token
from jaxbench.workloads.models import gpt
from jaxbench.workloads.models.gpt import partition
from jaxbench.workloads.optimizers import tolerance


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 16, 512
    numbers = {"layers": 0, "width": 0, "heads": 0, "context": 0, "vocab": 0, "padded_vocab": 0, "experts": 0}
    numbers |= {"hidden": 0, "gated": 0, "kv_heads": 0, "head_width": 0, "rms": 0}
    config.model = ConfigDict({"preset": "tiny", **numbers, "attention": "auto"})
    config.data = ConfigDict({"pad": ""})
    config.optimizer = ConfigDict({"name": "adamw", "learning_rate": 1e-3})
    config.train = ConfigDict({"batch": 16, "epochs": 6, "target": 0.45})
    config.mesh = ConfigDict({"oversubscribe": False})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"layers": 2, "width": 16, "heads": 2, "context": 8})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    shape, pad = gpt.dimensions(config.model), config.data.pad
    model = from_nnx(partial(gpt.GPT, config.model, remat=config.lever.remat))
    data = cache(lambda: text.load_language(config.data.path, context=shape.context, vocab=shape.vocab, pad=pad))
    weights, example = text.weights(pad), {"tokens": Field((shape.context + 1,), jnp.int32, classes=shape.vocab)}
    if weights:
        draw = lambda key, batch: text.draw_weights(data().train[weights], key, batch)  # noqa: E731
        example[weights] = Field((shape.context,), jnp.int32, classes=2, draw=draw)
    flops = training([0.0, *gpt.layer_flops(config.model)])  # 0: every product needs its input's gradient
    return TrainWorkload(
        name="gpt",
        init=model.init,
        loss=next_token(model, weights=weights, penalty=gpt.balance_loss if shape.experts else None),
        predict=last_position(model),
        optimizer=make_optimizer(config.optimizer),
        example=example,
        flops_per_example=flops,
        masked_flops_per_example=training([0.0, *gpt.layer_flops(config.model, causal=False)]) - flops,
        padding_flops_per_example=gpt.padding_flops(config.model),
        unit="sequences",
        tokens=shape.context,
        blocks=shape.layers,
        named=True,
        partition=partition(config.model, remat=config.lever.remat, weights=weights),
        data=data,
        **tolerance(config.optimizer.name),
    )
