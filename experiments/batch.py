# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Latency and throughput by batch size; with --config.search=max, the largest batch that fits (1 min).

    make run EXP=batch
    make run EXP=batch ARGS="--config.search=max --config.search_bytes=500000000"

Expect a nearly constant step time for small batches, and a nearly constant throughput for large ones.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("cnn")
get_config = changed(
    base.get_config, lever={"batch": "1,2,4,8,16,32,64,128,256"}, mesh={"devices": "1"}, scaling="strong"
)
build = base.build
