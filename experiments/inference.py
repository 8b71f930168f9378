# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Inference by batch size: throughput, and the median and 99th percentile of latency (1 min).

    make run EXP=inference

Calls are synchronous. Expect throughput to grow with the batch until latency grows as fast.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("cnn")
get_config = changed(
    base.get_config,
    strategy="shard_map",
    lever={"part": "inference", "batch": "1,2,4,8,16,32,64,128"},
    mesh={"devices": "1"},
    scaling="strong",
)
build = base.build
