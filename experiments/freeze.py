# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Layer freezing: the time, FLOPs and gradient bytes of a step with frozen first blocks (2 min).

    make run EXP=freeze

The pattern is a regular expression over parameter paths. Expect the FLOPs to fall by two thirds of the frozen blocks'
share: the compiled program keeps their forward pass and drops their backward pass.
"""

from jaxbench.discovery import changed, load_experiment

base = load_experiment("gpt")
FIRST = "tokens|positions"  # the embeddings too: training them would need the backward pass through every block
PATTERNS = f"none,{FIRST},{FIRST}|blocks/[01]/,{FIRST}|blocks/[012]/"
get_config = changed(
    base.get_config, lever={"freeze": PATTERNS}, mesh={"devices": "1,2", "oversubscribe": True}, scaling="strong"
)
tiny = changed(base.tiny, model={"layers": 4})
build = base.build
