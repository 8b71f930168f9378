# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One optimization at a time: from eager to jit, fusion, donation, 16 bits, prefetched input (3 min).

    make run EXP=ladder

Each rung includes the rungs below it. Expect the largest gain from jit, and a loss from bfloat16 on a CPU.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("cnn")
RUNGS = (
    "execution=eager",
    "execution=unfused",
    "execution=jit",
    "execution=donated",
    "precision=bfloat16",
    "input=pipeline:2",
)
lever = {"input": "pipeline:0", "ladder": "; ".join(RUNGS)}
get_config = changed(base.get_config, batch=64, lever=lever, mesh={"devices": "1"}, scaling="strong")
build = base.build
