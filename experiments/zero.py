# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO: one device's share of the model's state under data parallelism, by stage (3 min).

    make run EXP=zero

Mixed-precision Adam has 16 bytes per parameter: 2 for the parameter, 2 for its gradient, 12 for the optimizer
(Rajbhandari et al., 2020). Bytes are those of the arrays on the first device, exact even when oversubscribed; the
published curves are drawn behind them. The table shows the cost: stage 3 sends 1.5 times the bytes.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("mlp")
get_config = changed(
    base.get_config,
    strategy="jit_auto,zero1,zero2,fsdp",
    scaling="weak",
    batch=100,
    lever={"precision": "mixed"},
    mesh={"devices": "auto:8"},
    measure={"gradients": True},
    report={"view": "zero", "overlay": ""},
)
tiny = base.tiny
build = base.build
