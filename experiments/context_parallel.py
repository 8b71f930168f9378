# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Context parallelism: the longest sequence that fits, and step time, with positions split over devices (6 min).

    make run EXP=context_parallel
    make run EXP=context_parallel ARGS="--config.search_bytes=1073741824"

The longest context is found by compiling only: it is the largest for which the compiler reports at most `search_bytes`
per device. Keys and values travel round a ring (Liu et al., 2023). Each device holds an early and a late part of the
sequence, so that causal attention is equal work for all.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("gpt")
get_config = changed(
    base.get_config,
    strategy="context",
    scaling="strong",
    batch=4,
    model={"layers": 2, "context": 512},
    search="context",
    search_bytes=512 * 2**20,
    mesh={"devices": "auto:8", "oversubscribe": True},
    report={"view": "context", "overlay": ""},
)
tiny = changed(base.tiny, model={"context": 32}, search_bytes=6 * 2**20, search_sharpness=1, mesh={"devices": "auto:2"})
build = base.build
