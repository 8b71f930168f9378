# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gradient accumulation: step time and memory of one update from 1, 2, 4 or 8 micro-batches (1 min).

    make run EXP=accumulate

The parameters of each arm are compared with those of the undivided batch. Expect less memory and slightly more time.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("cnn")
get_config = changed(
    base.get_config, batch=256, lever={"accumulate": "1,2,4,8"}, mesh={"devices": "1"}, scaling="strong"
)
build = base.build
