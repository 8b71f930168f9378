# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rematerialization: the activation memory of a step against the time of recomputation, on 16 blocks (3 min).

    make run EXP=remat

The step of each policy is also compiled, but not run, at other depths: this shows the square-root law of Chen et al.
(2016). Expect `none` to be the fastest and to need most memory, and `sqrt` to need least.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("gpt")
get_config = changed(
    base.get_config,
    batch=8,
    model={"layers": 16, "width": 64, "heads": 2},
    lever={"remat": "none,dots_saveable,sqrt,block"},
    depths="4,8,16,32",
    measure={"rounds": 10, "processes": 1},  # compiling 16 blocks takes longer than measuring them
    mesh={"devices": "1", "oversubscribe": True},
    scaling="strong",
)
tiny = changed(base.tiny, model={"layers": 4}, depths="2,4")
build = base.build
