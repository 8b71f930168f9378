# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pipeline schedules: tables of work by tick and stage, computed before anything is compiled.

K stages, M micro-batches, V chunks of blocks per stage. In one tick a stage runs the forward pass of one micro-batch
through one chunk, the backward pass of another, or both. Its neighbours have the results in the next tick.

    gpipe        all forward passes, then all backward passes (Huang et al., arXiv:1811.06965)
    1f1b         backward passes start as soon as the first micro-batch has passed all stages. From then on a tick has
                 one forward and one backward pass (after Narayanan et al., PipeDream, arXiv:1806.03377)
    interleaved  1f1b with V > 1 chunks per stage, so that the pipeline fills V times as fast (arXiv:2104.04473)

All stages run the same kind of tick, because they are one compiled program: a tick takes as long as its longest work.
So there are at most three ranges of ticks: forward only, both, and backward only. In each direction a stage is idle in
K - 1 of V M + K - 1 ticks, in every schedule. 1f1b stores at most 2 K - 1 micro-batches per stage, gpipe stores all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxbench.errors import UserError
from jaxbench.levers import SCHEDULE

FORWARD, BACKWARD = "forward", "backward"
NOWHERE = -1  # as an index it is the last slot, a dummy: a store needs no branch


@dataclass(frozen=True)
class Passes:
    """Tables [tick, stage] of the passes in one direction.

    busy: bool; whether the stage has work. micro_batch, chunk: int32; in idle ticks those of the nearest work, which
    the compiled loop repeats without effect. keep: int32; the slot for what a forward pass saves for its backward pass.
    """

    busy: np.ndarray
    micro_batch: np.ndarray
    chunk: np.ndarray
    keep: np.ndarray


@dataclass(frozen=True)
class Schedule:
    """The passes of both directions. start: the tick in which the first stage to run backward begins. kept: slots of a
    stage. chunks: of each stage."""

    forward: Passes
    backward: Passes
    start: int
    kept: int
    chunks: int

    @property
    def ticks(self) -> int:
        return self.start + len(self.backward.busy)

    @property
    def idle(self) -> float:
        """The share of (tick, stage, direction) without work."""
        return 1.0 - float(np.mean([self.forward.busy, self.backward.busy]))

    @property
    def stores_gradients(self) -> bool:
        """Whether the gradient of a micro-batch's loss waits for the backward pass; otherwise both are in one tick."""
        return self.start >= len(self.forward.busy)

    def segments(self) -> list[tuple[int, int, tuple[str, ...]]]:
        """At most three ranges of ticks, (first, end, directions)."""
        end = len(self.forward.busy)
        rows = [
            (0, min(self.start, end), (FORWARD,)),
            (self.start, end, (FORWARD, BACKWARD)),
            (max(self.start, end), self.ticks, (BACKWARD,)),
        ]
        return [row for row in rows if row[0] < row[1]]


def make(text: str, stages: int, micro_batches: int) -> Schedule:
    """The schedule of a value of the lever. Raises UserError if an interleaved schedule cannot group the micro-batches
    by stages."""
    name, chunks = SCHEDULE.read(text)
    if name == "interleaved" and micro_batches % stages:
        near = max(1, round(micro_batches / stages)) * stages
        raise UserError(
            f"--config.lever.schedule={text} takes micro-batches in groups of {stages}, one for each stage, but "
            f"--config.lever.accumulate={micro_batches} does not divide into them: use {near}, for example."
        )
    forward = _passes(stages, micro_batches, chunks, FORWARD)
    backward = _passes(stages, micro_batches, chunks, BACKWARD)
    # The first micro-batch has passed all chunks of all stages after this many ticks, and is at the last stage then.
    start = len(forward.busy) if name == "gpipe" else chunks * stages - 1
    return Schedule(forward, backward, start, _assign_slots(forward, backward, start), chunks)


def _passes(stages: int, micro_batches: int, chunks: int, direction: str) -> Passes:
    """The passes of one direction, with empty slots: each stage works one tick after its neighbour.

    A group of K micro-batches passes one chunk after the other, so that the last stage's result is what the first stage
    needs in the next tick.
    """
    count, stage = chunks * micro_batches, np.arange(stages)
    delay = stage if direction == FORWARD else stages - 1 - stage
    item = np.arange(count + stages - 1)[:, None] - delay
    busy, item = (item >= 0) & (item < count), np.clip(item, 0, count - 1).astype(np.int32)
    group, within = item // (chunks * stages), item % (chunks * stages)
    chunk = within // stages
    chunk = chunk if direction == FORWARD else chunks - 1 - chunk
    return Passes(busy, group * stages + within % stages, chunk, np.full(item.shape, NOWHERE, np.int32))


def _assign_slots(forward: Passes, backward: Passes, start: int) -> int:
    """Fills `keep` of both directions in place. Returns the number of slots that a stage needs."""
    most, (length, stages) = 0, forward.busy.shape
    for s in range(stages):
        free: list[int] = []
        used: dict[tuple[int, int], int] = {}
        for t in range(start + length):
            if t < length and forward.busy[t, s]:
                work = int(forward.micro_batch[t, s]), int(forward.chunk[t, s])
                used[work] = forward.keep[t, s] = free.pop() if free else len(used)
                most = max(most, len(used))
            if t >= start:
                # Before its first and after its last pass a stage repeats that one: what it kept is still there.
                work = int(backward.micro_batch[t - start, s]), int(backward.chunk[t - start, s])
                backward.keep[t - start, s] = used[work]
                last = t + 1 == start + length or not np.array_equal(
                    (backward.micro_batch[t - start + 1, s], backward.chunk[t - start + 1, s]), work
                )
                if backward.busy[t - start, s] and last:
                    free.append(used.pop(work))
    return most
