# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every data, fsdp, stage and tensor mesh of the devices, ranked by time, memory and bytes sent (9 min).

    make run EXP=hybrid
    make run EXP=hybrid ARGS="--config.mesh.devices=8"
    make run EXP=hybrid ARGS='--config.lever.mesh="data=2,tensor=2;fsdp=4"'

Each arm is a mesh, one for each factorization of the device count; plain data parallelism comes first. Memory and bytes
are exact even when oversubscribed; the ranking by time is then meaningless and is drawn hollow.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("gpt")
get_config = changed(
    base.get_config,
    strategy="hybrid",
    scaling="strong",
    batch=32,
    model={"layers": 8, "width": 64, "heads": 8, "context": 32},
    measure={"rounds": 5, "processes": 1},
    lever={"mesh": "all", "accumulate": "4"},
    mesh={"devices": "4", "oversubscribe": True},
    report={"view": "hybrid", "overlay": ""},
)
tiny = changed(base.tiny, model={"layers": 8, "heads": 8})
build = base.build
