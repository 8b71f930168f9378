# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The phases of a step: forward, backward, update and communication, each timed by leaving it out (1 min).

    make run EXP=phases

Expect the backward pass to take about twice the forward pass, and no communication on one device.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("cnn")
get_config = changed(
    base.get_config,
    strategy="shard_map",  # its communication is explicit and can therefore be left out
    lever={"part": "forward,gradient,local,step"},
    mesh={"devices": "1,2"},
    scaling="strong",
)
build = base.build
