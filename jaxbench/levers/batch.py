# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `batch`: several batch sizes in one run. 0 means ``config.batch``."""

from jaxbench.levers._lever import Lever, whole

BATCH = Lever(
    __name__,
    rank=5,
    default="0",
    parse=whole(0),
    changes="feed",
    untrained="the batch of a training is --config.train.batch",
    view="batch",
)
