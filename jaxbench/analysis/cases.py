# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The points of a run of cases, including missing ones."""

from __future__ import annotations

from dataclasses import dataclass

from jaxbench.analysis import measured
from jaxbench.analysis.measured import Measured
from jaxbench.errors import UserError
from jaxbench.records.schema import CasePlace, CaseRecord, FailureRecord
from jaxbench.records.store import RunFolder


@dataclass(frozen=True, kw_only=True)
class CasePoint(CasePlace, Measured[CaseRecord]):
    """One case on given devices, with everything that the run recorded about it."""

    @property
    def group_processes(self) -> int | None:
        """For a collective, the number of processes that own the devices of one group; None: unknown."""
        return self.record.group_processes if self.record is not None and self.family == "collective" else None

    @property
    def group_hosts(self) -> int | None:
        """For a collective, the number of hosts of those processes; None: unknown."""
        return self.record.group_hosts if self.record is not None and self.family == "collective" else None

    @property
    def between(self) -> str:
        """What a collective's group spans: "2 hosts", "2 processes", or "" within one process."""
        return between(self.group_processes or 1, self.group_hosts or 1)


def between(processes: int, hosts: int) -> str:
    """What these processes and hosts are in words: "2 hosts"; "2 processes" on one host; "" for one process."""
    if hosts > 1:
        return f"{hosts} hosts"
    return f"{processes} processes" if processes > 1 else ""


def load(run: RunFolder) -> list[CasePoint]:
    """Reads a run folder. Returns the planned points in the order of the plan, then any that are not in the plan.

    Raises:
      UserError: not a run folder, damaged, of another schema, or not a run of cases.
    """
    plan = run.manifest().get("plan")
    if not (isinstance(plan, dict) and plan.get("measures") == "cases" and isinstance(plan.get("points"), list)):
        raise UserError(
            f"'{run.path}' has no plan of cases in its manifest: it is not a run of kernels or collectives."
        )
    return measured.load(run, plan, CasePoint, CaseRecord, CasePlace, _unplanned)


def _unplanned(name: str, platform: str, failure: FailureRecord | None) -> CasePlace:
    """Only the operation is known, from the beginning of the id."""
    return CasePlace(
        point=name, devices=failure.devices if failure is not None else 1, platform=platform, oversubscribed=False,
        family="", op=name.split("/")[0], dtype="", impl="", cores=None, resident_bytes=None,
    )  # fmt: skip
