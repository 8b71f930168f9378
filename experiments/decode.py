# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Generation over devices: time per token, why two devices may be slower than one, and the cost of tokens (1 min).

    make run EXP=decode
    make run EXP=decode ARGS="--config.model.preset=small --config.lever.batch=1,8,64 --config.context=1024"

The second command takes 40 minutes on two cores and 14 GB, because it reads caches of up to 4.8 GB.

A prompt of `config.input` tokens fills a cache, and `config.output` tokens follow, greedily, for a static batch of
requests: there is no scheduler. `config.context` is the number of places in the cache. Each length that is 0 follows
from the others: 1024/128 is `--config.input=1024 --config.output=128`.

Strategies: `tensor` splits heads, hidden units and vocabulary; `data` splits the requests; `both` does both, on
`--config.lever.mesh=data=2,tensor=4` or on the squarest mesh. `config.model` is that of gpt, with the presets 8b, 13b
and 70b in addition. Levers: `weights` and `cache` (float32, bfloat16, int8, fp8), `batch`, `context`, `cache_layout`
(heads, positions, split, pages) and `attention` (xla, cudnn, pallas). `--price_per_hour=2.50` gives the cost of tokens.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment
from jaxbench.workloads.generation import GenerationWorkload, workload

gpt = load_experiment("gpt")


def get_config() -> ConfigDict:
    config = ConfigDict({"measures": "decode", "model": gpt.get_config().model})
    config.strategy, config.scaling, config.batch = "tensor,data", "strong", 8
    config.context, config.input, config.output = 0, 0, 32
    config.price_per_hour = 0.0  # of the machine, in USD; 0: the catalogue's price of its devices
    config.lever = ConfigDict({"batch": "1,8", "weights": "auto", "cache": "auto"})
    config.lever.update({"cache_layout": "heads", "context": "0", "attention": "xla"})
    config.mesh = ConfigDict({"oversubscribe": False})
    # Fixed, so that prompts and scans are in every round, and not only the steps that claim an efficiency.
    config.measure = ConfigDict({"rounds": 9, "processes": 3, "block_s": 0.02})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"layers": 2, "width": 32, "heads": 4, "vocab": 64})
    config.input, config.output, config.lever.batch = 12, 4, "1,2"
    return config


def build(config: ConfigDict) -> GenerationWorkload:
    return workload(config)
