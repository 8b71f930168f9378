# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A fabricated machine: the files that the doctor reads, below a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jaxbench.features.doctor.finding import DoctorFinding


def machine(root: Path, files: Mapping[str, object]) -> Path:
    """Writes each file below `root`; returns it."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    return root


def by_name(findings: list[DoctorFinding]) -> dict[str, DoctorFinding]:
    return {finding.name: finding for finding in findings}
