# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Makes the references of a user's own step: files that the processes of other device counts compare with."""

from __future__ import annotations

import dataclasses
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from jaxbench.core.point import Point
from jaxbench.core.schema import OWN
from jaxbench.levers import PART
from jaxbench.processes.client import WorkerError
from jaxbench.processes.messages import Answer, Fields, Refer, Request
from jaxbench.sweep.ablations import LOCAL

# What a worker answers if the step does not fit: an Unfit of `measure.memory`, or an error of the devices.
OUT_OF_MEMORY = ("Unfit", "JaxRuntimeError: RESOURCE_EXHAUSTED", "XlaRuntimeError: RESOURCE_EXHAUSTED")


class Asks(Protocol):
    """What can ask a process with the devices of a point."""

    def ask_for(self, point: Point, request: Request[Answer]) -> Answer: ...


class References:
    """By global batch, the result of one device or, if that cannot hold the step, of the fewest devices that can.

    run: the folder below which the files go. points: of the run.
    """

    def __init__(self, run: Path, points: Sequence[Point]):
        self.folder = run / "references"
        self._counts = sorted({1, *(p.devices for p in points if not p.of_case)})
        self._told: dict[str, Fields] = {}
        self._failed: dict[str, float] = {}  # the largest device count that failed; infinite for a broken step

    def make(self, workers: Asks, point: Point) -> None:
        """Asks for the reference of a point, unless it exists. A failure leaves the point unchecked."""
        key = self._key(point)
        if not key or "file" in self._told.get(key, {}):  # points of one global batch share it
            return
        self.folder.mkdir(exist_ok=True)
        file = str((self.folder / f"{key}.npz").resolve())
        shares = bool(point.explains)  # one device does its share of the batch, on its own
        levers = {**point.levers, PART.name: PART.default}
        batch = point.global_batch // point.devices if shares else point.global_batch
        for count in self._counts[: 1 if shares else None]:
            if not self._failed.get(key, 0) < count <= point.devices:  # larger ones are asked for when a point has them
                continue
            one = dataclasses.replace(
                point,
                point=f"{OWN}/{point.scaling}/{count}",
                devices=count,
                global_batch=batch,
                levers=levers,
                explains="",
                oversubscribed=False,
                processes=point.processes if count == point.devices else 1,
            )
            try:
                workers.ask_for(one, Refer(point=one.to_json(), file=file, runs=not shares))
            except WorkerError as error:
                where = "one device" if count == 1 else f"{count} devices"
                self._told[key] = {"why": f"the same step on {where} failed: {error}"}
                # Only memory makes more devices worth a try. The kernel kills a process that takes too much of it.
                too_large = not error.alive or str(error).startswith(OUT_OF_MEMORY)
                self._failed[key] = count if too_large else math.inf
            else:
                self._told[key] = {"file": file, "devices": count}
                return

    def close(self) -> None:
        """Removes the files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _key(self, point: Point) -> str:
        """The name of the file that a point needs; "" for a point that needs none."""
        if point.strategy != OWN:
            return ""
        if not point.explains:
            return f"{point.global_batch}-{point.arm}".replace("/", "_")
        local = point.part == LOCAL  # of the ablations, only this one runs the step of one device
        return f"share-{point.global_batch // point.devices}" if local else ""

    def told(self, point: Point) -> Fields:
        """The reference of a point, for a request about it."""
        return self._told.get(self._key(point), {})
