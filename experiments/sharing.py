# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One, two and four equal trainings, concurrently on one device and in sequence (2 min).

    make run EXP=sharing
    make run EXP=sharing ARGS="--config.lever.trainings=1,2,4,2:mps,4:mps"     on an NVIDIA GPU

Each training is a process with the whole batch, pinned to the same core, or with its share of a GPU's memory.
Expect k trainings to take a little more than k times as long on a CPU, where they only take turns. On a GPU a small
step leaves room for other trainings, especially with NVIDIA's Multi-Process Service (mps).
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("cnn")
get_config = changed(base.get_config, lever={"trainings": "1,2,4"}, mesh={"devices": "1"}, scaling="strong")
build = base.build
