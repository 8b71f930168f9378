# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pipeline parallelism: the bubble by number of stages and of micro-batches, for each schedule (9 min).

    make run EXP=pipeline

K stages and M micro-batches leave (K - 1) / (M + K - 1) of all slots in the schedule idle. The executed schedule's idle
slots and the compiled step's memory are exact, even when oversubscribed. GPipe's published throughputs (Huang et al.,
2019) are drawn dashed.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("gpt")
get_config = changed(
    base.get_config,
    strategy="pipeline",
    scaling="strong",
    batch=32,
    # Small, and few rounds: when oversubscribed, a tick costs as much as waking all device threads.
    model={"layers": 8, "width": 64, "heads": 4, "context": 32},
    measure={"rounds": 5, "processes": 1},
    lever={"accumulate": "1,4,32", "schedule": "gpipe,1f1b"},
    mesh={"devices": "2,4,8", "oversubscribe": True},
    report={"view": "pipeline", "overlay": ""},
)
tiny = changed(base.tiny, model={"layers": 8}, lever={"accumulate": "1,4", "schedule": "gpipe,1f1b"})
build = base.build
