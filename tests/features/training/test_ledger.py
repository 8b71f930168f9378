# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The time ledger of a training adds up, for any end of its starts. Its clocks are fake."""

from __future__ import annotations

import json

import pytest
from train_cases import STEPS_PER_EPOCH, train_toy

from jaxbench.errors import UserError
from jaxbench.features.training import trainings, worker
from jaxbench.features.training.folder import TimeLedger, process_begun_ns
from jaxbench.features.training.run import Watch
from jaxbench.features.training.train import ProcessRole
from jaxbench.features.training.trainings import LEDGER


class Clocks:
    """A system's clock and a monotonic one, in ns; only `tick` moves them."""

    def __init__(self) -> None:
        self.wall_ns, self.since_boot_ns = 10**18, 77

    def tick(self, ns: int) -> None:
        self.wall_ns += ns
        self.since_boot_ns += ns


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def begin(tmp_path, clocks):
    """Opens the ledger of a start with a process that is `age` ns old. No thread writes."""

    def opened(age: int = 0, from_step: int | None = 0) -> TimeLedger:
        begun = clocks.wall_ns - age
        made = TimeLedger(tmp_path, begun_ns=begun, wall=lambda: clocks.wall_ns, clock=lambda: clocks.since_boot_ns)
        made.from_step = from_step
        return made

    return opened


def spend(made: TimeLedger, clocks: Clocks, kind: str, ns: int) -> None:
    with made.doing(kind):
        clocks.tick(ns)


def train(made: TimeLedger, clocks: Clocks, steps: int, *, save: bool = False) -> None:
    """Steps of 10 ns, and a checkpoint that blocks for 3."""
    spend(made, clocks, "steps", 10 * steps)
    made.step += steps
    if save:
        made.write(saving=True)
        spend(made, clocks, "checkpoint", 3)


def read(folder) -> dict[str, int]:
    return {name: ns for name, ns in trainings.totals(trainings.read_ledger(folder)).items() if ns}


def test_all_time_is_of_one_kind_and_an_inner_context_takes_it(tmp_path, begin, clocks):
    made = begin(age=100)
    with made.doing("steps"):
        clocks.tick(10)
        with made.doing("input"):
            clocks.tick(4)
        with made.doing("input"):
            clocks.tick(2)
            made.write()  # in the middle of it
            made.rename("steps")  # the devices were busy
        clocks.tick(1)
    clocks.tick(5)
    made.write()
    assert read(tmp_path) == {"steps": 13, "start": 105, "input": 4}
    assert trainings.goodput(trainings.totals(trainings.read_ledger(tmp_path))) == 13 / 122


def test_steps_after_the_checkpoint_that_was_gone_back_to_are_done_again(tmp_path, begin, clocks):
    first = begin(age=50)
    train(first, clocks, 5, save=True)
    train(first, clocks, 5, save=True)
    train(first, clocks, 2)
    first.write()
    clocks.tick(1000)  # killed: nothing more is written
    second = begin(age=100, from_step=5)  # the second checkpoint had no seal yet
    second.step = 5
    train(second, clocks, 7, save=True)
    second.finished = True
    second.write()
    assert read(tmp_path) == {"steps": 50 + 70, "again": 70, "start": 150, "checkpoint": 9, "idle": 900}
    assert sum(read(tmp_path).values()) == clocks.wall_ns - (10**18 - 50)


def test_a_start_that_went_further_back_undoes_the_one_in_between_too(tmp_path, begin, clocks):
    for from_step, steps in ((0, 10), (10, 5), (0, 15)):
        made = begin(from_step=from_step)
        made.step = from_step
        train(made, clocks, steps, save=True)
        made.write()
    assert read(tmp_path) == {"steps": 150, "again": 150, "checkpoint": 9}


def test_time_after_a_training_had_finished_is_no_loss(tmp_path, begin, clocks):
    first = begin()
    train(first, clocks, 5, save=True)
    first.finished = True
    first.write()
    clocks.tick(10**15)
    second = begin(age=20, from_step=5)
    second.step = 5
    train(second, clocks, 5, save=True)
    second.write()
    assert read(tmp_path) == {"steps": 100, "start": 20, "checkpoint": 6}


def test_a_clock_that_was_set_back_makes_no_negative_time(tmp_path, begin, clocks):
    train(begin(), clocks, 5, save=True)
    clocks.wall_ns -= 10**12
    second = begin(age=30, from_step=5)
    train(second, clocks, 1)
    second.write()
    assert read(tmp_path) == {"steps": 60}
    assert min(trainings.totals(trainings.read_ledger(tmp_path)).values()) == 0


def test_a_process_that_replaced_itself_is_not_counted_twice(tmp_path, begin, clocks):
    first = begin(age=40)
    spend(first, clocks, "compile", 60)
    first.write()
    clocks.tick(7)
    begin(age=107)  # the creation of the process that the first start had too
    assert read(tmp_path) == {"start": 40 + 7, "compile": 60}


def test_a_line_that_a_crash_cut_off_is_left_out(tmp_path, begin, clocks):
    train(begin(), clocks, 5, save=True)
    whole = read(tmp_path)
    with open(tmp_path / LEDGER, "a") as file:
        file.write('{"start": 1, "ns": {"ste')
    assert read(tmp_path) == whole
    begin(from_step=5)
    assert read(tmp_path) == {**whole, "idle": 3}  # of the checkpoint: nothing was written during it


def test_asking_a_finished_training_again_leaves_no_trace(tmp_path, begin, clocks):
    train(begin(), clocks, 5, save=True)
    before = (tmp_path / LEDGER).read_bytes()
    with begin(age=99) as again:
        again.discard()
    assert (tmp_path / LEDGER).read_bytes() == before


def test_a_busy_start_still_writes(tmp_path):
    """By its thread, until the second line of a start that writes nothing itself."""
    with TimeLedger(tmp_path, begun_ns=0):
        while len((tmp_path / LEDGER).read_text().splitlines()) < 3:
            pass


def test_the_process_was_created_before_now_and_after_boot():
    assert 0 < process_begun_ns() == pytest.approx(process_begun_ns(), abs=10**8)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(UserError, match="cannot write to"):
        TimeLedger(tmp_path / "none", begun_ns=0)


def test_a_training_accounts_for_its_time(tmp_path):
    train_toy(tmp_path, devices=4, epochs=2)
    (start,) = trainings.read_ledger(tmp_path)
    assert (start.from_step, start.step, start.finished) == (0, 2 * STEPS_PER_EPOCH, True)
    assert [save.step for save in start.saves] == [3, 6, 8, 9, 12, 15, 16] and start.sealed == 7
    assert all(start.ns[kind] > 0 for kind in ("start", "compile", "steps", "evaluation", "checkpoint"))
    lines = (tmp_path / LEDGER).read_text()
    train_toy(tmp_path, devices=4, epochs=2, wrap=None)  # it had finished
    assert (tmp_path / LEDGER).read_text() == lines
    assert all(json.loads(line)["start"] == 1 for line in lines.splitlines())


def test_a_worker_tells_its_supervisor_what_the_ledger_is_doing(begin):
    """Without this beat the supervisor takes a worker for hung."""
    training = worker.Training()
    assert training.beat() == worker.Beat(kind="start", ticks=0, step=0)
    ledger = begin()
    training.role = ProcessRole(ledger=ledger)
    with ledger.doing("input"):
        ledger.step = 7
        watch = Watch(1, 10.0)
        watch.heard(0, training.beat(), 5.0)
        assert training.beat() == worker.Beat(kind="input", ticks=ledger.ticks, step=7)
    assert watch.fault([0], 14.0) is None
    assert watch.fault([0], 16.0) == (0, "gave no sign of life for 10 s (--fault_timeout)")
