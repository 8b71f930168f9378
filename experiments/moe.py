# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A mixture of experts over devices: the bytes exchanged and the share of positions dropped (9 min).

    make run EXP=moe

Each block has eight perceptrons, and a router sends each position to one of them (Fedus et al., Switch, 2021): eight
times the parameters for the same FLOPs. An expert takes 1.25 times its even share of a sequence; the rest is dropped.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("gpt")
get_config = changed(
    base.get_config,
    strategy="expert,fsdp",
    scaling="weak",
    batch=8,
    model={"experts": 8},
    mesh={"devices": "auto:8", "oversubscribe": True},
    report={"view": "moe", "overlay": ""},
)
tiny = base.tiny
build = base.build
