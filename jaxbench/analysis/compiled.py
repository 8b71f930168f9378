# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rows of a run that only compiled, for absent hardware: does each point compile, fit, and communicate as expected?

No row has a step time, and no page mixes these rows with measured rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxbench.core.schema import Collective, CompiledRecord, FailureRecord
from jaxbench.core.store import RunFolder
from jaxbench.digits import digits
from jaxbench.hlo import out_of_memory
from jaxbench.levers import every_set

MARK = "compiled, not run"


@dataclass(frozen=True, kw_only=True)
class CompiledRow:
    """One planned point."""

    point: Mapping[str, Any]  # its entry in the plan
    target: str
    record: CompiledRecord | None  # None if it was not compiled; then `reason` says why
    reason: str = ""
    memory_bytes: int  # of a device
    unsupported: bool = False  # its strategy cannot run the model, or XLA does not know its options
    excused: bool = False  # it is unsupported, and it was not requested by name

    @property
    def name(self) -> str:
        return str(self.point["point"])

    @property
    def status(self) -> str:
        """compiled | too large | unsupported | failed | missing."""
        if self.record is not None:
            return "compiled"
        if self.unsupported:
            return "unsupported"
        if not self.reason:
            return "missing"
        return "too large" if "RESOURCE_EXHAUSTED" in self.reason else "failed"  # XLA's status for out of memory

    @property
    def fits(self) -> bool | None:
        """Whether the step's peak memory fits into a device's memory; None: unknown."""
        if self.status == "too large":
            return False
        known = self.record is not None and self.record.peak_bytes is not None
        return self.record.peak_bytes <= self.memory_bytes if known else None  # type: ignore[union-attr,operator]

    @property
    def needed_bytes(self) -> int | None:
        """The memory that a step needs on one device, even if the compiler refused it for that; None: unknown."""
        return self.record.peak_bytes if self.record is not None else out_of_memory.needed_bytes(self.reason)

    @property
    def right(self) -> bool | None:
        """Whether its communication is as expected; None: nothing to compare."""
        return all(check.ok for check in self.record.checks) if self.record and self.record.checks else None

    @property
    def wire_bytes(self) -> int:
        """The bytes that one device sends in a step."""
        return sum(c.wire_bytes for c in self.record.collectives) if self.record is not None else 0

    @property
    def why(self) -> str:
        """The message of its communication check, or of the compiler."""
        if self.record is None:
            return self.reason or "not compiled yet"
        return "; ".join(check.reason for check in self.record.checks)


def rows(run: RunFolder) -> list[CompiledRow]:
    """One row per point, in the order of the plan. The last record of a point counts."""
    manifest, records = run.manifest(), list(run.records())
    compiled = {record.point: record for record in records if isinstance(record, CompiledRecord)}
    failures = {r.point: r for r in records if isinstance(r, FailureRecord) and r.point not in compiled}
    planned, unsupported = manifest["plan"]["points"], {name for name, r in failures.items() if r.unsupported}
    every = run.config().get("strategy") == "all" or every_set(run.config())
    # "all" means all that can, so the others are no failure, unless nothing is left.
    excused = unsupported if every and len(unsupported) < len(planned) else set()
    return [
        CompiledRow(
            point=point,
            target=str(manifest["target"]),
            record=compiled.get(name),
            reason=failures[name].reason if name in failures else "",
            unsupported=name in unsupported,
            memory_bytes=int(manifest["device_memory_bytes"] or 0),
            excused=name in excused,
        )
        for point in planned
        for name in (point["point"],)
    ]


def problems(rows: Sequence[CompiledRow]) -> list[str]:
    """Points that do not compile, do not fit, or do not communicate as expected: one sentence per reason."""
    grouped: dict[str, list[str]] = {}
    for row in rows:
        if row.excused:
            continue
        if row.record is None or row.right is False:
            grouped.setdefault(row.why, []).append(row.name)
        elif row.fits is False:
            reason = f"does not fit in the {gigabytes(row.memory_bytes)} of a device"
            grouped.setdefault(reason, []).append(row.name)
    return [f"{', '.join(names)}: {why.rstrip('.')}." for why, names in grouped.items()]


def gigabytes(size: float) -> str:
    return f"{digits(size / 1e9)} GB" if size >= 1e9 else f"{digits(size / 1e6)} MB"


def describe_collectives(collectives: Sequence[Collective]) -> str:
    """One clause per collective: "all-reduce over data (8): 407,080 bytes; all-gather over fsdp (2): ..."."""
    return "; ".join(
        f"{c.kind} over {c.axis or 'unnamed groups'} ({c.group or '?'}): {c.bytes:,} bytes" for c in collectives
    )
