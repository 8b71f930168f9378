# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The time left that a sweep shows, against the time that it takes, on a clock that only answers of processes move."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from sweep import test_processes as scripted

from jaxbench.core.store import MANIFEST, RunFolder, write_json
from jaxbench.sweep import ongoing, progress, sweep
from jaxbench.sweep import workers as workers_lib
from jaxbench.sweep.job import SweepJob

CORES = 2
PREPARE_S, LOAD_S, BLOCK_S = 6.0, 3.0, 0.05


class Clock(scripted.Scripted):
    """Processes that take time. Those that work at the same time share the cores, so all end with the first answer."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.at_once = 0.0, 0

    def __call__(self, job, points, *, number=0, **rest):
        self.sets.append(TimedSet(self, points, number, rest["lose"]))
        return self.sets[-1]

    def passes(self, work_s: float) -> None:
        """Time passes for one answer. work_s: of a core, for this request."""
        ahead = sum(len(each.ahead) for each in self.sets)
        if not ahead:
            self.now += work_s
        elif not self.at_once:
            self.now += work_s * ahead / CORES
        self.at_once = max(ahead - 1, 0)


class TimedSet(scripted.ScriptedSet):
    def ask(self, point, request):
        seconds = {"prepare": PREPARE_S, "prepare_again": LOAD_S, "pace": 0.3}
        rounds_s = BLOCK_S * (1.5 + 2 * getattr(request, "double", False)) + sweep.MESSAGES_S
        self.script.passes(seconds.get(request.do, rounds_s))
        return super().ask(point, request)


def seen(folder: Path, monkeypatch: pytest.MonkeyPatch, *, rounds: int, processes: int) -> list[tuple[float, float]]:
    """(seconds that were left by the display, seconds that were left) at the begin of each task."""
    clock, shown = Clock(), []

    class Watched(progress.SweepProgress):
        def show(self, text: str) -> None:
            shown.append((self.left_s(), clock.now))
            super().show(text)

    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(sweep, "SweepProgress", Watched)
    monkeypatch.setattr(ongoing, "Workers", clock)
    monkeypatch.setattr(workers_lib.memory, "available", lambda: 1e12)
    config = {"measure": {"rounds": rounds, "processes": processes, "blocks": 1, "block_s": BLOCK_S}, "seed": 0}
    run = RunFolder.begin(folder / "run", config)
    points = [point for point in scripted.planned() if not point.oversubscribed]
    write_json(run.path / MANIFEST, {"plan": {"points": [point.to_json() for point in points]}})
    job = SweepJob(run=run, points=points, config=config, experiment="mlp", session=0, memory_bytes=1e12)
    try:
        sweep.run(job, Console(quiet=True))
    finally:
        run.close()
    return [(left, clock.now - at) for left, at in shown]


@pytest.mark.parametrize(("rounds", "processes"), [(24, 8), (6, 3), (200, 4)])
def test_the_time_left_of_many_groups_is_near_the_truth(
    rounds: int, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`jaxbench calibrate` has 8 groups of processes with 3 rounds each. All groups load at once, and a third of the
    rounds have the second clock: the others take none of the time that the first of them took."""
    found = seen(tmp_path, monkeypatch, rounds=rounds, processes=processes)
    points = 2
    loaded = len(found) - rounds * points - (processes - 1) * points + 1  # the first load has ended, the others follow
    assert len(found[loaded:]) > rounds * points
    rest = found[loaded : len(found) - rounds * points]
    assert all(2 / 3 < left / true < 3 / 2 for left, true in rest), rest
    timed = found[len(found) - rounds * points :]
    assert all(0.9 < left / true < 1.1 for left, true in timed), timed
    assert all(left < 3 / 2 * true for left, true in found), "never far too long"
