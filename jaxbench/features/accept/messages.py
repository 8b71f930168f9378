# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The requests to a process that runs probes, and its answers; `processes.messages` has the setup. Without jax."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxbench.processes.messages import Message, Request


@dataclass(frozen=True, kw_only=True)
class ProbeFacts:
    """A prepared probe.

    Attributes:
      units: what its numbers belong to: devices "0", pairs "0>1", cores "core 3", or "all".
      amount: FLOPs, bytes or calls of one measurement of one unit: amount / seconds is the rate.
      cost_s: seconds of a whole measurement, checks included.
    """

    name: str
    units: tuple[str, ...]
    amount: float
    cost_s: float


@dataclass(frozen=True, kw_only=True)
class WrongBits:
    """A result that differs from the right one. unit: an index into the units of the probe."""

    probe: str
    unit: int
    text: str


class ProbesReady(Message):
    """The probes are compiled and their first results compared with those of the host."""

    probes: tuple[ProbeFacts, ...]
    wrong: tuple[WrongBits, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)  # why, by probe
    devices: tuple[str, ...] = ()  # the kind of each device
    start_s: float = 0.0  # from the start of the process to its first result


class ProbesMeasured(Message):
    """Seconds of each unit of each probe."""

    seconds: dict[str, tuple[float, ...]]
    wrong: tuple[WrongBits, ...] = ()
    loss: str = ""  # the last loss of the gpt steps, in hexadecimal: equal on equal machines


class Examined(Message):
    """What `jaxbench doctor` finds on this host right after its work: (name, state, sentence)."""

    findings: tuple[tuple[str, str, str], ...]


class PrepareProbes(Request[ProbesReady]):
    probes: tuple[str, ...]


class MeasureProbes(Request[ProbesMeasured]):
    probes: tuple[str, ...]
    load_s: float = 1.0  # how long the gpt steps run


class ExamineHost(Request[Examined]):
    """Reads facts; it measures nothing."""

    folder: str  # where results go
