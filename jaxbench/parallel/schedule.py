# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Who does what when in a pipeline: tables of work by tick and stage, made before anything is compiled.

K stages, M micro-batches, V chunks of blocks a stage. In one tick a stage does the forward pass of a micro-batch
through one chunk, or its backward pass, or nothing; what it made is with its neighbour in the next tick.

    gpipe        all forward passes, then all backward passes (Huang et al., arXiv:1811.06965)
    1f1b         as many forward passes as there are stages to come, then one backward, one forward (Narayanan et al.,
                 PipeDream, arXiv:1806.03377, with the flush of arXiv:2104.04473)
    interleaved  1f1b with V > 1 chunks a stage, so that the pipe fills V times as fast (arXiv:2104.04473)

In the first two, 2 (K - 1) of 2 (M + K - 1) ticks of each stage are idle; they differ in how many micro-batches a stage
holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.errors import UserError

IDLE, FORWARD, BACKWARD = 0, 1, 2
CHUNKS = {"gpipe": 1, "1f1b": 1, "interleaved": 2}
NOWHERE = -1


@dataclass(frozen=True)
class Work:
    kind: int
    micro_batch: int
    chunk: int


@dataclass(frozen=True)
class Schedule:
    """Tables [tick, stage], int32. kind: IDLE, FORWARD or BACKWARD. micro_batch, chunk: of which.

    A stage has `inputs` and `gradients` places for what came and is not used yet, and `kept` places for what a forward
    pass leaves for its backward pass. input, gradient, keep: the place that the work of this tick uses. comes_input,
    comes_gradient: the place for what came from a neighbour at the start of this tick. NOWHERE: none.
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

    @property
    def idle_share(self) -> float:
        """Of all pairs of tick and stage."""
        return float(np.mean(self.kind == IDLE))

    def segments(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """The ticks in at most three rows of (first, end, kinds of work): forward passes only, both, backward only."""
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
    """The schedule of that name. Raises UserError for micro-batches that an interleaved one cannot group."""
    chunks = CHUNKS[name]
    if name == "interleaved" and micro_batches % stages:
        near = max(1, round(micro_batches / stages)) * stages
        raise UserError(
            f"--config.lever.schedule=interleaved takes micro-batches in groups of the {stages} stages, and "
            f"--config.lever.accumulate={micro_batches} is none: use {near}, for example."
        )
    orders = [_order(name, stage, stages, micro_batches, chunks) for stage in range(stages)]
    return _tables(_played(orders, chunks), stages, chunks)


def _order(name: str, stage: int, stages: int, micro_batches: int, chunks: int) -> list[Work]:
    """What one stage does, in order."""
    forward = [Work(FORWARD, m, v) for m, v in _rounds(stages, micro_batches, chunks)]
    backward = [Work(BACKWARD, m, chunks - 1 - v) for m, v in _rounds(stages, micro_batches, chunks)]
    if name == "gpipe":
        return forward + backward
    ahead = stages - 1 - stage if chunks == 1 else 2 * (stages - 1 - stage) + (chunks - 1) * stages
    ahead = min(ahead, len(forward))
    order = forward[:ahead]
    for f, b in zip(forward[ahead:], backward, strict=False):
        order += [f, b]
    return order + backward[len(forward) - ahead :]


def _rounds(stages: int, micro_batches: int, chunks: int) -> list[tuple[int, int]]:
    """(micro-batch, chunk) in the order in which they pass: with several chunks, in groups of K micro-batches."""
    if chunks == 1:
        return [(m, 0) for m in range(micro_batches)]
    return [(first + m, v) for first in range(0, micro_batches, stages) for v in range(chunks) for m in range(stages)]


def _played(orders: Sequence[list[Work]], chunks: int) -> list[list[Work | None]]:
    """Rows of what each stage does in a tick: its next work, as soon as what that needs has come."""
    stages, at = len(orders), [0] * len(orders)
    done: dict[tuple[int, int, int, int], int] = {}
    rows: list[list[Work | None]] = []
    while any(at[s] < len(orders[s]) for s in range(stages)):
        row: list[Work | None] = []
        for s, order in enumerate(orders):
            work = order[at[s]] if at[s] < len(order) else None
            ready = work is not None and all(
                done.get(n, len(rows)) < len(rows) for n in _needs(work, s, stages, chunks)
            )
            row.append(work if ready else None)
        for s, work in enumerate(row):
            if work is not None:
                done[work.kind, work.micro_batch, work.chunk, s] = len(rows)
                at[s] += 1
        assert any(row), "a schedule that waits for itself"
        rows.append(row)
    return rows


def _needs(work: Work, stage: int, stages: int, chunks: int) -> list[tuple[int, int, int, int]]:
    """What must have been done before: the neighbour's part; and a backward pass needs its own forward pass."""
    if work.kind == FORWARD:
        source = _neighbour(work.chunk, stage, stages, chunks, -1)
        return [] if source is None else [(FORWARD, work.micro_batch, *source)]
    source = _neighbour(work.chunk, stage, stages, chunks, 1)
    own = (FORWARD, work.micro_batch, work.chunk, stage)
    return [own] if source is None else [own, (BACKWARD, work.micro_batch, *source)]


def _neighbour(chunk: int, stage: int, stages: int, chunks: int, step: int) -> tuple[int, int] | None:
    """(chunk, stage) one further along the row of blocks; None beyond its ends."""
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


class _Places:
    """Of one stage: numbers that are given to names, and again when they are free."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._have: dict[tuple[int, int], int] = {}
        self.most = 0

    def take(self, work: Work, chunk: int) -> int:
        place = self._free.pop() if self._free else len(self._have)
        self._have[work.micro_batch, chunk] = place
        self.most = max(self.most, len(self._have))
        return place

    def release(self, work: Work) -> int:
        """Which place it was; NOWHERE if there is none of that name."""
        place = self._have.pop((work.micro_batch, work.chunk), NOWHERE)
        if place != NOWHERE:
            self._free.append(place)
        return place


def _arrivals(rows: list[list[Work | None]], stages: int, chunks: int, kind: int) -> tuple[np.ndarray, np.ndarray, int]:
    """(the place that is read, the place that is filled, by tick and stage; places needed) of what neighbours sent that
    did `kind` of work, from when it comes until this stage's own."""
    read, filled = (np.full((len(rows), stages), NOWHERE, np.int32) for _ in range(2))
    places = [_Places() for _ in range(stages)]
    for t, row in enumerate(rows):
        for source, work in enumerate(rows[t - 1] if t else []):
            if work is not None and work.kind == kind:
                target = _neighbour(work.chunk, source, stages, chunks, 1 if kind == FORWARD else -1)
                if target is not None:
                    filled[t, target[1]] = places[target[1]].take(work, target[0])
        for s, work in enumerate(row):
            if work is not None and work.kind == kind:
                read[t, s] = places[s].release(work)
    return read, filled, max(each.most for each in places)


def _keeping(rows: list[list[Work | None]], stages: int) -> tuple[np.ndarray, int]:
    """(the place by tick and stage; places needed) of what a forward pass keeps for its backward pass."""
    table, places = np.full((len(rows), stages), NOWHERE, np.int32), [_Places() for _ in range(stages)]
    for t, row in enumerate(rows):
        for s, work in enumerate(row):
            if work is not None:
                table[t, s] = places[s].take(work, work.chunk) if work.kind == FORWARD else places[s].release(work)
    return table, max(each.most for each in places)
