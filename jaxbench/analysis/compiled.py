# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rows of a run that only compiled, for hardware that is not here: does it compile, fit, and communicate as it must.

No row has a step time, and none is shown among measured ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxbench.digits import digits
from jaxbench.levers.compiler import every_set
from jaxbench.records import schema
from jaxbench.records.schema import Collective, CompiledRecord, FailureRecord
from jaxbench.records.store import RunFolder

MARK = "compiled, not run"


@dataclass(frozen=True, kw_only=True)
class CompiledRow:
    """One planned point. record: None when it was not compiled, and then `reason` says why.

    unsupported: its strategy cannot take the model, or XLA does not know its options. excused: and it was not requested
      by name.
    """

    point: dict[str, Any]
    target: str
    record: CompiledRecord | None
    reason: str = ""
    memory_bytes: int
    unsupported: bool = False
    excused: bool = False

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
        return "too large" if "RESOURCE_EXHAUSTED" in self.reason else "failed"

    @property
    def fits(self) -> bool | None:
        """Whether the step's peak memory is within a device's memory; None: unknown."""
        if self.status == "too large":
            return False
        known = self.record is not None and self.record.peak_bytes is not None
        return self.record.peak_bytes <= self.memory_bytes if known else None  # type: ignore[union-attr,operator]

    @property
    def needed_bytes(self) -> int | None:
        """The memory of a step on one device, also of one that the compiler refused for it; None: unknown."""
        return self.record.peak_bytes if self.record is not None else schema.needed_bytes(self.reason)

    @property
    def right(self) -> bool | None:
        """Whether its communication matches its closed form; None: nothing to compare."""
        return all(check.ok for check in self.record.checks) if self.record and self.record.checks else None

    @property
    def wire_bytes(self) -> int:
        """Bytes that a device sends in a step."""
        return sum(each.wire_bytes for each in self.record.collectives) if self.record is not None else 0

    @property
    def why(self) -> str:
        """The message of the closed form, or of the compiler."""
        if self.record is None:
            return self.reason or "not compiled yet"
        return "; ".join(check.reason for check in self.record.checks)


def rows(run: RunFolder) -> list[CompiledRow]:
    """One row per point of the plan, in its order; the last record of a point wins."""
    manifest, compiled, failures = run.manifest(), {}, {}
    for record in run.records():
        if isinstance(record, CompiledRecord):
            compiled[record.point] = record
        elif isinstance(record, FailureRecord):
            failures[record.point] = record
    failures = {name: record for name, record in failures.items() if name not in compiled}
    planned, unsupported_points = (
        manifest["plan"]["points"],
        [name for name, record in failures.items() if record.unsupported],
    )
    every = run.config().get("strategy") == "all" or every_set(run.config())
    some = len(unsupported_points) < len(planned)
    result = []
    for point in planned:
        failure = failures.get(point["point"])
        unsupported = failure is not None and failure.unsupported
        result.append(
            CompiledRow(
                point=point,
                target=str(manifest["target"]),
                record=compiled.get(point["point"]),
                reason=failure.reason if failure is not None else "",
                memory_bytes=int(manifest["device_memory_bytes"]),
                unsupported=unsupported,
                excused=unsupported and every and some,
            )
        )
    return result


def problems(rows: Sequence[CompiledRow]) -> list[str]:
    """Points that do not compile, do not fit, or communicate something else: one sentence per reason."""
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
    """ "data (8): all-reduce 407,080 bytes; fsdp (2): all-gather ..." """
    return "; ".join(
        f"{each.kind} over {each.axis or 'unnamed groups'} ({each.group or '?'}): {each.bytes:,} bytes"
        for each in collectives
    )
