# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `input`: a feed that supplies one batch per step, and measures the time that the step waits for it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from jaxbench.levers import INPUT
from jaxbench.workloads.base import Batch, Dataset, TrainWorkload

RING = 3  # batches that `host` cycles through: with only one, a stale copy would look like a new one


class Feed:
    """Batches on the devices, in the order of their numbers. For use by one thread.

    waited_s: seconds spent inside `next`. Not all of them are lost: the devices may still be busy with earlier steps.
      The cost of the input is the time of a step minus the time of a step with input=device.
    """

    def __init__(
        self,
        fetch: Callable[[int], Batch],
        *,
        ahead: int = 0,
        close: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        """fetch: number -> batch on the devices. ahead: the number of batches that a background thread prefetches; 0:
        `next` fetches. close: releases the resources of `fetch`. clock: seconds, monotonic."""
        self.waited_s = 0.0
        self._fetch, self._ahead, self._release, self._clock = fetch, ahead, close, clock
        self._next, self._closed = 0, False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="feed") if ahead else None
        self._prefetched: deque[Future[Batch]] = deque()
        if self._thread is not None:
            self._prefetched.extend(self._thread.submit(fetch, number) for number in range(ahead))

    def next(self) -> Batch:
        """The next batch. Raises the exception of fetching it, even in the background; RuntimeError once closed."""
        if self._closed:
            raise RuntimeError("this feed is closed")
        start = self._clock()
        try:
            return self._take()
        finally:
            self.waited_s += self._clock() - start

    def _take(self) -> Batch:
        number, self._next = self._next, self._next + 1
        if self._thread is None:
            return self._fetch(number)
        batch = self._prefetched.popleft()
        self._prefetched.append(self._thread.submit(self._fetch, number + self._ahead))
        return batch.result()

    def close(self) -> None:
        """Ends the thread after its current batch; closing twice is harmless."""
        if not self._closed:
            self._closed = True
            if self._thread is not None:
                self._thread.shutdown(cancel_futures=True)
            self._prefetched.clear()
            self._release()


def open(
    kind: str,
    workload: TrainWorkload,
    *,
    batch: int,
    put: Callable[[Any], Batch],
    seed: int,
    data: Dataset | None = None,
) -> Feed:
    """Opens the feed that the lever names.

    Args:
      kind: "device": one synthetic batch stays on the devices and is reused. "host": RING synthetic batches stay on the
        host, and each step copies one to the devices. "pipeline:<k>": CPU threads read, decode, augment (images) and
        stack records and copy them to the devices, k batches ahead of the step that uses them (`pipeline`).
      batch: examples in a batch, all devices together.
      put: arrays on the host -> a batch on the devices (`Program.put`). A pipeline calls it from its own thread.
      seed: for synthetic data, and for the pipeline's order and augmentation.
      data: for a pipeline; None: synthetic examples. Other kinds ignore it.

    Raises:
      UserError: the kind is unknown, or `data` does not fit the workload's examples.
    """
    source = INPUT.read(kind)
    if source.kind == "device":
        resident = put(_drawn(workload, batch, seed, 0))  # placed once, before any step
        return Feed(lambda number: resident)
    if source.kind == "host":
        ring = [_drawn(workload, batch, seed, turn) for turn in range(RING)]
        return Feed(lambda number: put(ring[number % RING]))
    from jaxbench.input import pipeline  # late: Grain takes half a second to import and brings absl flags of its own

    batches = pipeline.open(workload, size=batch, seed=seed, data=data)
    return Feed(lambda number: put(batches.batch(number)), ahead=source.ahead, close=batches.close)


def _drawn(workload: TrainWorkload, batch: int, seed: int, turn: int) -> dict[str, np.ndarray]:
    """A synthetic batch in host memory."""
    return jax.device_get(workload.synthetic(jax.random.fold_in(jax.random.PRNGKey(seed), turn), batch))
