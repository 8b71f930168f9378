# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The share of its rated power that an accelerator draws, as it was published. No rating is a measurement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PowerShare:
    """share: of the rated power, at most. what: it was measured on, as a clause. source: where it was published."""

    share: float
    what: str
    source: str


TRAINING = PowerShare(0.76, "the peak of a node of 8 H100 in training", "arXiv:2506.14551")
