# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A probe of an acceptance test: what one of its numbers belongs to, and its unit. Without jax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scope = Literal["device", "pair", "host", "core", "hosts", "host pair"]
FLOPS, BYTES, RATE = "FLOP/s", "B/s", "1/s"
# The margin of a latency and of a core's clock is at least this. Both change by 10 to 15 % on a healthy machine: cores
# of a virtual machine switch between two speeds, and a short message waits for the scheduler.
LOOSE = 0.20


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A probe that measures time.

    Attributes:
      title: of its column. scope: what one of its numbers belongs to. unit: of its rate.
      group: a word of --probes that selects it with others; "" for none.
      loose: judged with a margin of at least LOOSE.
      default: measured unless --probes says otherwise.
    """

    name: str
    title: str
    scope: Scope
    unit: str
    group: str = ""
    loose: bool = False
    default: bool = True

    def margin(self, asked: float) -> float:
        return max(asked, LOOSE) if self.loose else asked

    @property
    def over_hosts(self) -> bool:
        """Whether several hosts run it together."""
        return self.scope in ("hosts", "host pair")
