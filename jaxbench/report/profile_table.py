# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the time of a traced step went to, as tables of the page."""

from __future__ import annotations

from jaxbench.records.schema import ProfileRecord
from jaxbench.report.page import Column, Line, Sheet

IDLE = "idle"


def kinds(record: ProfileRecord) -> Sheet:
    """Milliseconds a step and the share of each kind of operation, longest first, idle last."""
    named = sorted(record.kinds.items(), key=lambda item: (item[0] == IDLE, -item[1]))
    lines = [_line((kind,), seconds, record) for kind, seconds in named if seconds > 0]
    total = _line(("all",), record.wall_s, record, first=True)
    columns = Column("time goes to", "text"), Column("ms per step"), Column("% of the step")
    return Sheet(columns=columns, lines=(*lines, total), note=_note(record))


def operations(record: ProfileRecord) -> Sheet:
    """The operations that took longest, under their names in the compiled program."""
    lines = tuple(_line((name, kind), seconds, record) for name, kind, seconds in record.top if seconds > 0)
    columns = Column("operation", "fold"), Column("kind", "text"), Column("ms per step"), Column("% of the step")
    return Sheet(columns=columns, lines=lines, note="" if lines else "No operation of the program ran in the trace.")


def _line(names: tuple[str, ...], seconds: float, record: ProfileRecord, *, first: bool = False) -> Line:
    step = f"{1e3 * seconds / record.steps:.3g}"
    return Line(cells=(*names, step, f"{100 * seconds / record.wall_s:.1f}"), first=first)


def _note(record: ProfileRecord) -> str:
    steps = "1 traced step" if record.steps == 1 else f"{record.steps} traced steps"
    return (
        f"Mean over the devices of {steps}, which a profiler slows down; a fusion counts as the heaviest work in it, a "
        f"collective or a copy only where nothing computes. {record.trace} opens in Perfetto; for TensorBoard install "
        "xprof and start tensorboard --logdir with the folder profiles."
    )
