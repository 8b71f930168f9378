# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The time of a step by category of operation, from a trace that also opens in Perfetto and TensorBoard (1 min).

    make run EXP=profile

Any training experiment takes ``--config.profile=true``. The traces are in profiles/ in the run's folder.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("gpt")
get_config = changed(base.get_config, profile=True, mesh={"devices": "1,2", "oversubscribe": True}, scaling="strong")
tiny = base.tiny
build = base.build
