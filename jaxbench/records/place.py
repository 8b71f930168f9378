# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What identifies a point: the fields that its plan, its records and its analysis rows share.

All of them inherit from `StepPlace` or `CasePlace`. A field that does not apply to a point is None or "".
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Place:
    """Common to training steps and cases."""

    point: str  # the id: of a step "strategy/scaling/devices", and "/arm" if there is one
    devices: int  # participants: 1 for a kernel, the group size n for a collective
    platform: str  # cpu | gpu | tpu
    oversubscribed: bool  # more devices than cores


@dataclass(frozen=True, kw_only=True)
class StepPlace(Place):
    """A training step with one strategy, scaling, device count and setting of the levers."""

    strategy: str
    scaling: str  # strong | weak
    global_batch: int
    arm: str = ""  # the swept levers, if the run sweeps any: "precision=bfloat16"
    levers: dict[str, str] = field(default_factory=dict)  # every lever, including defaults; {} in old records
    explains: str = ""  # of an ablation: the point that it explains, which runs more of the same step; "": not one


@dataclass(frozen=True, kw_only=True)
class CasePlace(Place):
    """A kernel, a transfer or a collective of one size on given devices."""

    family: str  # kernel | transfer | collective
    op: str
    dtype: str
    impl: str  # the implementation: jit | numpy | python | ...
    cores: int | None  # CPU cores the process may use
    resident_bytes: int | None  # peak memory of the case's arrays, all devices together
    shape: str = ""  # shown to users: "2048x2048x2048"
    elements: int | None = None  # the size axis of a kernel
    payload_bytes: int | None = None  # S of a collective or a transfer
    flops: float | None = None  # analytic, one call
    bytes_moved: float | None = None  # analytic, one call: bytes that must be read and written
    mesh: str = ""  # the mesh a collective runs on: "8", "2x4"
    axis: str = ""  # the mesh axis along which the groups of a collective lie: "x"
    source: str = ""  # where a transfer starts: "host", "cpu:0"
    target: str = ""
