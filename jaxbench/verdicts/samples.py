# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The samples of a run as a hierarchy: point, process, round, block.

Blocks of one round share the disturbances of that moment. Rounds of one process share its memory layout and its
compiler's choices. So only processes are independent samples.
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
      processes: for each process its rounds, and for each round the seconds per step of its blocks.
      names: of the processes; points that were measured by one process share a name.
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
        """All seconds per step."""
        return np.concatenate([block for rounds in self.processes for block in rounds])

    def per_example(self) -> Sample:
        """The same with seconds per example."""
        times = tuple(tuple(block / self.work for block in rounds) for rounds in self.processes)
        return Sample(processes=times, names=self.names)

    def log_medians(self) -> np.ndarray:
        """(processes,): the logarithm of each process's median."""
        return np.log([np.median(np.concatenate(rounds)) for rounds in self.processes])


def of_rounds(rounds: Iterable[RoundRecord], work: float = 1.0) -> Sample:
    """The rounds of one point, by the process that measured each."""
    by_worker: dict[str, list[np.ndarray]] = {}
    for each in rounds:
        by_worker.setdefault(each.worker, []).append(np.array(each.block_s) / each.steps)
    return Sample(processes=tuple(tuple(r) for r in by_worker.values()), names=tuple(by_worker), work=work)


def of_times(times: Sequence[Sequence[Sequence[float]]], name: str = "process") -> Sample:
    """times: seconds per step by process, round, block."""
    processes = tuple(tuple(np.asarray(blocks, dtype=float) for blocks in rounds) for rounds in times)
    return Sample(processes=processes, names=tuple(f"{name} {i}" for i in range(len(processes))))


Side = Mapping[str, Sample]
