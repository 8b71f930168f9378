# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The samples of a run as a hierarchy: point, process, round, block.

The blocks of one round share the disturbances of that moment. The rounds of one process share its memory layout and its
compiled program. So only processes are independent samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.records.schema import RoundRecord


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One point of one run.

    Attributes:
      processes: for each process its rounds; a round is an array (blocks,) of seconds per step.
      names: the names of the processes. Points measured by the same process share its name.
      work: examples per step; 1 for a case.
    """

    processes: tuple[tuple[np.ndarray, ...], ...]
    names: tuple[str, ...]
    work: float = 1.0

    @property
    def rounds(self) -> int:
        return sum(len(rounds) for rounds in self.processes)

    @property
    def blocks(self) -> np.ndarray:
        """(blocks,): the seconds per step of all blocks of all processes."""
        return np.concatenate([block for rounds in self.processes for block in rounds])

    def per_example(self) -> Sample:
        """The same sample in seconds per example."""
        times = tuple(tuple(block / self.work for block in rounds) for rounds in self.processes)
        return Sample(processes=times, names=self.names)

    def log_medians(self) -> np.ndarray:
        """(processes,): the logarithm of each process's median."""
        return np.log([np.median(np.concatenate(rounds)) for rounds in self.processes])


def of_rounds(rounds: Iterable[RoundRecord], work: float = 1.0) -> Sample:
    """The sample of one point from its rounds, grouped by the process that measured them."""
    by_worker: dict[str, list[np.ndarray]] = {}
    for each in rounds:
        by_worker.setdefault(each.worker, []).append(np.array(each.block_s) / each.steps)
    return Sample(processes=tuple(tuple(r) for r in by_worker.values()), names=tuple(by_worker), work=work)


def of_times(times: Sequence[Sequence[Sequence[float]]], name: str = "process") -> Sample:
    """The sample from plain numbers. times: seconds per step, indexed by process, round and block."""
    processes = tuple(tuple(np.asarray(blocks, dtype=float) for blocks in rounds) for rounds in times)
    return Sample(processes=processes, names=tuple(f"{name} {i}" for i in range(len(processes))))


Side = Mapping[str, Sample]
