# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pipeline schedules: tables of work by tick and stage, computed before anything is compiled.

K stages, M micro-batches, V chunks of blocks per stage. In one tick a stage runs the forward or the backward pass of
one micro-batch through one chunk, or is idle. Its neighbour has the result in the next tick.

    gpipe        all forward passes, then all backward passes (Huang et al., arXiv:1811.06965)
    1f1b         one forward pass for each later stage, then one backward, one forward in turn (Narayanan et al.,
                 PipeDream, arXiv:1806.03377, with the flush of arXiv:2104.04473)
    interleaved  1f1b with V > 1 chunks per stage, so that the pipeline fills V times as fast (arXiv:2104.04473)

In the first two, each stage is idle in 2 (K - 1) of 2 (M + K - 1) ticks. They differ in the number of micro-batches
that a stage stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.errors import UserError

IDLE, FORWARD, BACKWARD = 0, 1, 2  # numbers, because the tables go into the compiled loop
CHUNKS = {"gpipe": 1, "1f1b": 1, "interleaved": 2}  # two, the fewest that interleave
NOWHERE = -1  # as an index it is the last slot, a dummy: a store needs no branch


@dataclass(frozen=True)
class Work:
    kind: int
    micro_batch: int
    chunk: int


@dataclass(frozen=True)
class Schedule:
    """Tables [tick, stage], int32. kind: IDLE, FORWARD or BACKWARD. micro_batch, chunk: those that the work processes.

    A stage has `inputs` and `gradients` slots for arrays that it received and has not used yet, and `kept` slots for
    what a forward pass saves for its backward pass. input, gradient, keep: the slot that this tick's work uses.
    comes_input, comes_gradient: the slot for the array that arrives from a neighbour at the start of this tick.
    NOWHERE: none.
    """

    kind: np.ndarray
    micro_batch: np.ndarray
    chunk: np.ndarray
    input: np.ndarray
    gradient: np.ndarray
    keep: np.ndarray
    comes_input: np.ndarray
    comes_gradient: np.ndarray
    inputs: int
    gradients: int
    kept: int

    @property
    def ticks(self) -> int:
        return len(self.kind)

    def segments(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """At most three ranges of ticks, (first, end, kinds of work): forward only, both, backward only."""
        has = [(bool((row == FORWARD).any()), bool((row == BACKWARD).any())) for row in self.kind]
        first = next((i for i, (_, back) in enumerate(has) if back), len(has))
        last = max((i + 1 for i, (forward, _) in enumerate(has) if forward), default=0)
        rows = [
            (0, min(first, last), (FORWARD,)),
            (first, last, (FORWARD, BACKWARD)),
            (max(first, last), len(has), (BACKWARD,)),
        ]
        return [row for row in rows if row[0] < row[1]]


def make(name: str, stages: int, micro_batches: int) -> Schedule:
    """The schedule `name`. Raises UserError if an interleaved schedule cannot group the micro-batches by stages."""
    chunks = CHUNKS[name]
    if name == "interleaved" and micro_batches % stages:
        near = max(1, round(micro_batches / stages)) * stages
        raise UserError(
            f"--config.lever.schedule=interleaved takes micro-batches in groups of {stages}, one for each stage, but "
            f"--config.lever.accumulate={micro_batches} does not divide into them: use {near}, for example."
        )
    # Simulated, because a stage waits for its neighbours: when it works follows from the order of all stages.
    orders = [_order(name, stage, stages, micro_batches, chunks) for stage in range(stages)]
    return _tables(_simulated(orders, chunks), stages, chunks)


def _order(name: str, stage: int, stages: int, micro_batches: int, chunks: int) -> list[Work]:
    """The work of one stage, in order."""
    forward = [Work(FORWARD, m, v) for m, v in _rounds(stages, micro_batches, chunks)]
    backward = [Work(BACKWARD, m, chunks - 1 - v) for m, v in _rounds(stages, micro_batches, chunks)]
    if name == "gpipe":
        return forward + backward  # every micro-batch is stored until its backward pass
    # The warm-up: forward passes before the first backward pass. With chunks, the micro-batch that returns first must
    # have passed all chunks (arXiv:2104.04473).
    ahead = stages - 1 - stage if chunks == 1 else 2 * (stages - 1 - stage) + (chunks - 1) * stages
    ahead = min(ahead, len(forward))
    order = forward[:ahead]
    for f, b in zip(forward[ahead:], backward, strict=False):  # the last `ahead` backward passes follow below
        order += [f, b]
    return order + backward[len(forward) - ahead :]


def _rounds(stages: int, micro_batches: int, chunks: int) -> list[tuple[int, int]]:
    """(micro-batch, chunk) in the order of their passes: with several chunks, in groups of K micro-batches."""
    if chunks == 1:
        return [(m, 0) for m in range(micro_batches)]
    return [(first + m, v) for first in range(0, micro_batches, stages) for v in range(chunks) for m in range(stages)]


def _simulated(orders: Sequence[list[Work]], chunks: int) -> list[list[Work | None]]:
    """The work of each stage in each tick: a stage runs its next work as soon as all of its inputs have arrived."""
    stages, next_index = len(orders), [0] * len(orders)
    done: dict[tuple[int, int, int, int], int] = {}
    rows: list[list[Work | None]] = []
    while any(next_index[s] < len(orders[s]) for s in range(stages)):
        row: list[Work | None] = []
        # All stages choose before any result of this tick counts: a message takes until the next tick.
        for s, order in enumerate(orders):
            work = order[next_index[s]] if next_index[s] < len(order) else None
            ready = work is not None and all(
                done.get(n, len(rows)) < len(rows) for n in _needs(work, s, stages, chunks)
            )
            row.append(work if ready else None)
        for s, work in enumerate(row):
            if work is not None:
                done[work.kind, work.micro_batch, work.chunk, s] = len(rows)
                next_index[s] += 1
        if not any(row):
            raise RuntimeError("the schedule deadlocks: no stage can do its next work")
        rows.append(row)
    return rows


def _needs(work: Work, stage: int, stages: int, chunks: int) -> list[tuple[int, int, int, int]]:
    """The work that must run first: the neighbour's pass and, before a backward pass, the stage's own forward pass."""
    if work.kind == FORWARD:
        source = _neighbour(work.chunk, stage, stages, chunks, -1)
        return [] if source is None else [(FORWARD, work.micro_batch, *source)]
    source = _neighbour(work.chunk, stage, stages, chunks, 1)
    forward = (FORWARD, work.micro_batch, work.chunk, stage)
    return [forward] if source is None else [forward, (BACKWARD, work.micro_batch, *source)]


def _neighbour(chunk: int, stage: int, stages: int, chunks: int, step: int) -> tuple[int, int] | None:
    """(chunk, stage) one `step` further along the sequence of blocks; None beyond its ends."""
    place = chunk * stages + stage + step
    return (place // stages, place % stages) if 0 <= place < chunks * stages else None


def _tables(rows: list[list[Work | None]], stages: int, chunks: int) -> Schedule:
    shape = (len(rows), stages)
    kind, micro_batch, chunk = (np.zeros(shape, np.int32) for _ in range(3))
    for t, row in enumerate(rows):
        for s, work in enumerate(row):
            if work is not None:
                kind[t, s], micro_batch[t, s], chunk[t, s] = work.kind, work.micro_batch, work.chunk
    input_, comes_input, inputs = _arrivals(rows, stages, chunks, FORWARD)
    gradient, comes_gradient, gradients = _arrivals(rows, stages, chunks, BACKWARD)
    keep, kept = _keeping(rows, stages)
    return Schedule(
        kind, micro_batch, chunk, input_, gradient, keep, comes_input, comes_gradient, inputs, gradients, kept
    )


class _Slots:
    """The slots of one stage: assigns a number to a (micro-batch, chunk), and reuses it when that is released."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._used: dict[tuple[int, int], int] = {}
        self.max_used = 0

    def take(self, work: Work, chunk: int) -> int:
        slot = self._free.pop() if self._free else len(self._used)  # without a free slot, 0 .. len - 1 are all in use
        self._used[work.micro_batch, chunk] = slot
        self.max_used = max(self.max_used, len(self._used))
        return slot

    def release(self, work: Work) -> int:
        """The slot that is now free; NOWHERE if there was none."""
        slot = self._used.pop((work.micro_batch, work.chunk), NOWHERE)
        if slot != NOWHERE:
            self._free.append(slot)
        return slot


def _arrivals(rows: list[list[Work | None]], stages: int, chunks: int, kind: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The slots for the results of a neighbour's `kind` of work, from their arrival until this stage's own work.

    Returns (the slot that is read, the slot that is filled, both by tick and stage; the number of slots needed).
    """
    read, filled = (np.full((len(rows), stages), NOWHERE, np.int32) for _ in range(2))
    slots = [_Slots() for _ in range(stages)]
    for t, row in enumerate(rows):
        # Results of the previous tick arrive first, so a slot that this tick's work frees is reused from the next tick.
        for source, work in enumerate(rows[t - 1] if t else []):
            if work is not None and work.kind == kind:
                target = _neighbour(work.chunk, source, stages, chunks, 1 if kind == FORWARD else -1)
                if target is not None:
                    filled[t, target[1]] = slots[target[1]].take(work, target[0])
        for s, work in enumerate(row):
            if work is not None and work.kind == kind:
                read[t, s] = slots[s].release(work)
    return read, filled, max(each.max_used for each in slots)


def _keeping(rows: list[list[Work | None]], stages: int) -> tuple[np.ndarray, int]:
    """The slots for what a forward pass saves for its backward pass: (the slot by tick and stage; the slots needed)."""
    table, slots = np.full((len(rows), stages), NOWHERE, np.int32), [_Slots() for _ in range(stages)]
    for t, row in enumerate(rows):
        for s, work in enumerate(row):
            if work is not None:
                table[t, s] = slots[s].take(work, work.chunk) if work.kind == FORWARD else slots[s].release(work)
    return table, max(each.max_used for each in slots)
