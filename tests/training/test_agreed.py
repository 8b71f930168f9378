# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Agreement between the processes of a training, and the rows that each reads, without starting processes."""

from pathlib import Path

import numpy as np
import pytest

from jaxbench.errors import UserError
from jaxbench.parallel import multihost
from jaxbench.training import folder
from jaxbench.training.loop import Agreed, Stop
from jaxbench.training.run import Faults


class Two:
    """The first of two processes; the answers of the second are scripted."""

    alone, leads, processes = False, True, (0, 1)

    def __init__(self, other):
        self.other, self.asked = other, 0

    def led(self, call):
        return call()

    def gathered(self, value):
        self.asked += 1
        return [value, self.other]


def test_a_folder_that_another_process_does_not_see_is_refused(tmp_path):
    with (
        pytest.raises(UserError, match="process 1 does not see what process 0 wrote into"),
        folder.locked_folder(tmp_path / "run", {}, Two(other=False)),
    ):
        pass
    assert not list((tmp_path / "run").glob("seen-*"))
    with folder.locked_folder(tmp_path / "run", {}, Two(other=True)) as checkpoints:
        assert checkpoints == Path(tmp_path / "run" / "checkpoints")


def test_a_signal_of_one_process_is_seen_at_a_step_that_all_look_at():
    """Steps of 0.1 s: they look at the first step, at the second, then every 5 steps."""
    now = [0.0]
    stop, members = Stop(), Two(other=[None, 1])
    agreed = Agreed(stop, members, clock=lambda: now[0])
    seen = []
    for step in range(1, 16):
        now[0] = step / 10
        before = members.asked
        if step == 9:
            stop.ask("SIGTERM")
        ended = agreed.at(step)
        seen += [step] if members.asked > before else []
        if ended:
            break
    assert seen == [1, 2, 7, 12] and agreed.name == "SIGTERM"


def test_rows_are_read_only_where_they_are_needed():
    array, numbers = np.arange(60).reshape(10, 6), np.array([7, 1, 3, 9])
    rows = multihost.Rows(array, numbers)
    assert rows.shape == (4, 6)
    assert (rows[slice(2, 4), slice(0, 3)] == array[[3, 9], :3]).all()
    stacked = rows.reshape(2, 2, 6)
    assert stacked.shape == (2, 2, 6)
    assert (stacked[slice(1, 2), slice(None), slice(None)] == array[[[3, 9]]]).all()
    assert (np.asarray(rows) == array[numbers]).all()


@pytest.mark.parametrize("seconds", [0.0, float("inf"), float("nan")])
def test_a_limit_that_is_none_is_refused(seconds):
    with pytest.raises(UserError, match="--fault_timeout="):
        Faults(timeout_s=seconds)
