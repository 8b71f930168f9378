# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The verdicts on points of a user's step: they are compared with a run of the same step on other devices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jax

from jaxbench.core.point import Point
from jaxbench.core.program import Call, TrainState
from jaxbench.core.schema import Verdict
from jaxbench.errors import present
from jaxbench.features.own_step import compare
from jaxbench.features.own_step import program as programs
from jaxbench.features.own_step.program import OwnProgram
from jaxbench.features.own_step.reference import OwnReference
from jaxbench.measure import check
from jaxbench.measure.compile_report import CompiledStep
from jaxbench.parallel import multihost
from jaxbench.processes.messages import Fields

NOT_JUDGED = "your own step: collectives are listed, not judged"


class OwnProof:
    """Judges the points of a user's step.

    reference: {"file": of an OwnReference, "devices": that it has}, or {"why": there is none}.
    """

    def __init__(self) -> None:
        self.reference: Fields = {"why": "no run on one device was asked for"}
        self._of: dict[str, Fields] = {}  # the reference of each point that was judged

    def expected(self, point: str = "") -> OwnReference | None:
        """The reference of a judged point, or the one given last; None if there is none."""
        about = self._of.get(point, self.reference)
        return OwnReference.load(Path(str(about["file"]))) if "file" in about else None

    def verdicts(
        self, point: Point, devices: Sequence[jax.Device], program: OwnProgram, compiled: CompiledStep
    ) -> tuple[Verdict, ...]:
        inputs = present(compiled.inputs)
        self._of[point.point], expected = self.reference, self.expected()
        programs.require_same_each_time(program)  # first: the comparison below would fail with a worse reason
        if expected is None:
            results: tuple[Verdict, ...] = (check.unchecked(str(self.reference["why"])),)
        # The reference itself would agree with itself. On one device that is worth a check: its second run must agree.
        elif expected.devices == program.mesh.size > 1:
            results = (check.unchecked(f"fewer than {expected.devices} devices cannot hold the step"),)
        else:
            results = compare.judge(program, compiled.call, expected)
        collectives = compiled.report.collectives
        listed = [f"{c.count} {c.kind} over '{c.axis or 'unknown'}' ({c.bytes:,} bytes)" for c in collectives]
        return (
            *results,
            check.judge_host_calls(compiled.host_calls),
            check.judge_devices(devices[: point.devices], None, *inputs, collectives),
            check.judge_inputs(dict(jax.tree.map(multihost.on_host, program.batch_of(0)))),
            Verdict(name="collectives", ok=True, reason=f"{NOT_JUDGED}: {', '.join(listed) or 'there are none'}"),
        )

    def after_round(
        self, point: Point, program: OwnProgram, call: Call, state: TrainState
    ) -> tuple[tuple[Verdict, ...], None]:
        """The verdict on one more step of the timed state, which it donates."""
        if (expected := self.expected(point.point)) is None:
            return (), None  # which makes the point unchecked already
        return (compare.judge_timed(program, call, state, expected),), None
