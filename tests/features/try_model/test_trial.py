# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench try`: its processes share the points, and its table has the result of each strategy for a model."""

from __future__ import annotations

import dataclasses
import io
import re
from concurrent.futures import ThreadPoolExecutor

import brought
import pytest
from doorway import jaxbench
from launched import until
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import commandline
from jaxbench.core.schema import Verdict
from jaxbench.errors import UserError
from jaxbench.features.try_model import trial
from jaxbench.processes.client import WorkerError
from jaxbench.processes.messages import Tried, Try
from jaxbench.sweep import progress

STRATEGIES = ["fsdp", "jit_auto", "pmap"]
RIGHT = Verdict(name="parameters", ok=True, reason="near")


class Answering:
    """A worker in this process. fails: the exception by point."""

    def __init__(self, fails: dict[str, WorkerError] | None = None):
        self.fails, self.asked = fails or {}, []

    def ask(self, request: Try) -> Tried:
        point = request.point["point"]
        self.asked.append(point)
        if point in self.fails:
            raise self.fails[point]
        check = dataclasses.replace(RIGHT, ok=False, reason="far") if "pmap" in point else RIGHT
        return Tried(checks=(check,), sent_bytes=0, state_bytes=0, peak_bytes=None)


def tried(*workers: Answering, console: Console | None = None) -> dict[tuple[str, int], trial.StrategyTrial]:
    with ThreadPoolExecutor() as threads:
        return trial._try_all(workers, STRATEGIES, threads, console or Console(quiet=True))


def test_every_point_is_tried_once_however_many_workers_there_are():
    every = {f"{name}/strong/{count}" for name in STRATEGIES for count in trial.DEVICES}
    for workers in ([Answering()], [Answering(), Answering()]):
        found = tried(*workers)
        asked = [point for worker in workers for point in worker.asked]
        assert sorted(asked) == sorted(every) and len(found) == len(every)
        assert {place for place, outcome in found.items() if outcome.word != "right"} == {
            ("pmap", n) for n in trial.DEVICES
        }


def test_one_strategy_that_is_right_wherever_it_is_not_refused_trains_the_model():
    outcomes = tried(Answering({"fsdp/strong/2": WorkerError("name the layout", unsupported=True, refused=True)}))
    assert [trial._trains(name, outcomes) for name in STRATEGIES] == [True, True, False]  # pmap is wrong
    outcomes["jit_auto", 8] = trial.StrategyTrial("error", "line 3")
    assert not trial._trains("jit_auto", outcomes)


def test_those_of_the_whole_batch_come_first_as_they_share_an_answer():
    worker = Answering()
    tried(worker)
    assert [point.split("/")[0] for point in worker.asked[:3]] == ["jit_auto"] * 3


def test_a_strategy_that_cannot_take_a_model_is_not_wrong_and_a_dead_worker_ends_it():
    cannot = WorkerError("name the layout", unsupported=True, refused=True)
    assert tried(Answering({"fsdp/strong/2": cannot}))["fsdp", 2] == trial.StrategyTrial("cannot", "name the layout")
    with pytest.raises(UserError, match="fsdp on 8 devices: the worker process was ended by SIGKILL"):
        tried(Answering({"fsdp/strong/8": WorkerError("the worker process was ended by SIGKILL", alive=False)}))


@pytest.mark.full
def test_the_table_of_a_model_that_not_all_strategies_can_take(tmp_path):
    """It normalises by the batch, and reads only one of three labels from an example."""
    brought.write(tmp_path, ('logits = batch["x"] @ params["w"]', 'logits = params["w"][batch["label"] % 3]'))
    done = jaxbench("try", "mine.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cells = [line.split("│")[1:5] for line in done.stdout.splitlines() if line.startswith("│")]
    words = {name.strip(): [word.strip() for word in row] for name, *row in cells}
    assert words.pop("jit_explicit") == ["cannot"] * 3 and words.pop("jit_auto") == ["right"] * 3
    assert len(words) == 5 and all(row == ["right", "cannot", "cannot"] for row in words.values())
    assert "with explicit sharding every layout must be known" in done.stdout
    assert "the loss of 'mine' looks across examples" in done.stdout


class Gathering(Answering):
    """The ways to gather parameters send 8, 5 and 2 MB."""

    def ask(self, request: Try) -> Tried:
        sent = {"each": 8, "once": 5, "once_summed": 2}[request.point["levers"]["gather"]]
        return Tried(checks=(RIGHT,), sent_bytes=10**6 * sent, state_bytes=0, peak_bytes=10**9)


def test_with_micro_batches_it_says_which_way_to_gather_parameters_sends_least():
    words = ["--config.lever.accumulate=4"]
    commandline._check_ignored("try", words, ConfigDict())
    config = ConfigDict({"lever": {"accumulate": "4"}})
    *ways, last = trial._try_gathers(Gathering(), config, ["fsdp"], batch=16, loss="")
    assert [way.split(": ")[0].split("gather=")[1] for way in ways] == ["each", "once", "once_summed"]
    assert all(": right, sends " in way for way in ways) and last.startswith("gather=once_summed sends least")
    assert (
        trial._try_gathers(Gathering(), ConfigDict({"lever": {"accumulate": "1"}}), ["fsdp"], batch=16, loss="") == []
    )


class Slow(Answering):
    """It answers about its third point when the log has a line about the first two."""

    def __init__(self, log: io.StringIO):
        super().__init__()
        self.log = log

    def ask(self, request: Try) -> Tried:
        if len(self.asked) == 2:
            until(lambda: " s: 2 of " in self.log.getvalue())
        return super().ask(request)


def test_a_trial_in_a_log_says_what_is_done_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CI service ends a job without output."""
    monkeypatch.setattr(progress, "SILENT_S", 0.01)
    log = io.StringIO()
    tried(Slow(log), console=Console(file=log))
    assert re.search(r"^\d+ s: 2 of 9 points tried, 7 left$", log.getvalue(), re.MULTILINE), log.getvalue()
