# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `accumulate`: the number of micro-batches over which a step adds up gradients."""

from jaxbench.levers._lever import Lever, whole

ACCUMULATE = Lever(__name__, rank=3, default="1", parse=whole(1), changes="workload", view="accumulate")
