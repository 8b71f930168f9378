# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Input pipelines: a batch on the device, from the host, or decoded with 0, 1, 2 or 4 batches prefetched (1 min).

    make run EXP=input

The pipeline decodes PNG images and augments them on the CPU (Grain). Expect the host batch to be nearly as fast as the
resident one. Expect the pipeline to be far slower unless it prefetches, most of all where training has its own cores.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment

base = load_experiment("cnn")


def get_config() -> ConfigDict:
    config = base.get_config()
    config.lever = ConfigDict({"input": "device,host,pipeline:0,pipeline:1,pipeline:2,pipeline:4"})
    config.mesh = ConfigDict({"devices": "1"})
    config.scaling = "strong"
    return config


build = base.build
