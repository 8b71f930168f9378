# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Input pipelines: a batch on the device, from the host, or decoded with 0, 1, 2 or 4 batches prefetched (1 min).

    make run EXP=input

The pipeline decodes PNG images and augments them on the CPU (Grain). Expect the host batch to be nearly as fast as the
resident one. Expect the pipeline to be far slower unless it prefetches, especially if training has its own cores.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("cnn")
get_config = changed(
    base.get_config,
    batch=64,
    lever={"input": "device,host,pipeline:0,pipeline:1,pipeline:2,pipeline:4"},
    mesh={"devices": "1"},
    scaling="strong",
)
build = base.build
