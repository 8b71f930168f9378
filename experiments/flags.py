# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""XLA's compiler options: the catalogued sets for this platform, ranked against the default (3 min).

    make run EXP=flags

The sets are those of jaxbench/catalog/compiler_options.csv. Try your own, on any training experiment:
``--config.lever.compiler="default; xla_cpu_prefer_vector_width=512; wide_vectors+fast_math"``. Expect most of them to
make no measurable difference; that is why they are not the default.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("cnn")
get_config = changed(
    base.get_config,
    lever={"compiler": "default; all"},
    mesh={"devices": "auto:2", "oversubscribe": False},  # the options of collectives need a second device
    scaling="strong",
)
build = base.build
