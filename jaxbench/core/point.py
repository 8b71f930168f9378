# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A point: one program to measure. It is a training step, an ablation of one, or a case."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from jaxbench.core.schema import CaseFields, StepFields
from jaxbench.records.documents import AtLeastOne, Count, decode


@dataclass(frozen=True, kw_only=True)
class Point(StepFields, CaseFields):
    """One program to measure. A step has none of the fields of a case, and a case none of those of a step."""

    devices: AtLeastOne = 1
    platform: str = ""
    oversubscribed: bool = False
    strategy: str = ""
    scaling: str = ""
    global_batch: Count = 0
    family: str = ""
    op: str = ""
    dtype: str = ""
    impl: str = ""
    cores: Count | None = None
    resident_bytes: Count | None = None
    of_case: bool = False  # a kernel, a transfer or a collective, and not a step
    processes: AtLeastOne = 1  # the number of processes that run it together
    # What follows is planned, and in no record.
    key: str = ""  # of a case: its key in the case set
    part_of: int = 0  # of the ablation "alone", in which one device does its share of a step on n devices: n; else 0
    apart: bool = False  # of the ablation "processes": each of its trainings has cores of its own
    memory_share: float = 0.0  # the share of an accelerator's memory for each process; 0: JAX's default

    def to_json(self) -> dict[str, Any]:
        """The fields that its process needs, as in its record. The process of a step knows its platform itself."""
        names = [field.name for field in dataclasses.fields(CaseFields if self.of_case else StepFields)]
        fields = {name: value for name, value in asdict(self).items() if name in names}
        if self.of_case:
            return {**fields, "case": self.key}
        del fields["platform"]
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The point of `to_json`. Raises KeyError, TypeError or ValueError if a field is missing or impossible."""
        known = dict(fields)
        key = known.pop("case", "")
        return decode(cls, {**known, "key": key, "of_case": bool(key)})

    @property
    def part(self) -> str:
        """The part of the step that it runs, or the ablation: alone, local, communication, peak."""
        return self.levers.get("part", "step")

    @property
    def text(self) -> str:
        """For people: "jit_auto, strong, 4 devices, precision=bfloat16", "all_reduce float32 1,024 bytes"."""
        if self.of_case:
            size = self.shape or (f"{self.elements:,}" if self.elements else f"{self.payload_bytes:,} bytes")
            group = f", {self.mesh}:{self.axis}" if self.mesh else ""
            where = f", {self.source} to {self.target}" if self.source else group
            return f"{self.op} {self.dtype} {size} {self.impl}{where}"
        words = f"{self.strategy}, {self.scaling}, {self.devices} device{'s' if self.devices > 1 else ''}"
        words += f", {self.point.rpartition('/')[2]}" if self.explains else ""
        return f"{words}, {self.arm}" if self.arm else words
