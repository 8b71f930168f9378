# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where the time of a traced step went, as tables of the page."""

from __future__ import annotations

from jaxbench.records.schema import ProfileRecord
from jaxbench.report.table import FOLD, NUMBER, TEXT, Table, plain

IDLE = "idle"
_SPENT = {"ms per step": NUMBER, "% of the step": NUMBER}


def kinds(record: ProfileRecord) -> Table:
    """Milliseconds per step and share of each kind of operation, longest first, idle last."""
    named = sorted(record.kinds.items(), key=lambda item: (item[0] == IDLE, -item[1]))
    rows = [(kind, *_spent(seconds, record)) for kind, seconds in named if seconds > 0]
    rows.append(("all", *_spent(record.wall_s, record)))
    return plain({"time goes to": TEXT, **_SPENT}, rows, first=lambda row: row[0] == "all", note=_note(record))


def operations(record: ProfileRecord) -> Table:
    """The operations that took longest, under their names in the compiled program."""
    rows = [(name, kind, *_spent(seconds, record)) for name, kind, seconds in record.top if seconds > 0]
    note = "" if rows else "No operation of the program ran in the trace."
    return plain({"operation": FOLD, "kind": TEXT, **_SPENT}, rows, note=note)


def _spent(seconds: float, record: ProfileRecord) -> tuple[str, str]:
    return f"{1e3 * seconds / record.steps:.3g}", f"{100 * seconds / record.wall_s:.1f}"


def _note(record: ProfileRecord) -> str:
    steps = "1 traced step" if record.steps == 1 else f"{record.steps} traced steps"
    return (
        f"Mean over devices of {steps}; profiling slows them down. A fusion counts as its heaviest operation; a "
        f"collective or copy counts only while nothing computes. {record.trace} opens in Perfetto; for TensorBoard, "
        "install xprof and give the folder profiles as --logdir."
    )
