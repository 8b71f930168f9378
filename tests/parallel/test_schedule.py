# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pipeline schedules: every piece of work once, after its inputs, with the published share of idle ticks."""

import itertools

import numpy as np
import pytest

from jaxbench.errors import UserError
from jaxbench.parallel import schedule
from jaxbench.parallel.schedule import BACKWARD, FORWARD, NOWHERE

SIZES = [(k, m) for k in (1, 2, 3, 4, 8) for m in (1, 2, 4, 8, 32)]
CASES = [(name, k, m) for name in schedule.CHUNKS for k, m in SIZES if name != "interleaved" or m % k == 0]


@pytest.mark.parametrize(("name", "stages", "micro_batches"), CASES)
def test_all_work_is_done_once_and_after_what_it_needs(name, stages, micro_batches):
    made, chunks = schedule.make(name, stages, micro_batches), schedule.CHUNKS[name]
    when = {}
    for t, s in itertools.product(range(made.ticks), range(stages)):
        if made.kind[t, s]:
            work = int(made.kind[t, s]), int(made.micro_batch[t, s]), int(made.chunk[t, s]) * stages + s
            assert work not in when
            when[work] = t
    places = range(chunks * stages)
    assert set(when) == set(itertools.product((FORWARD, BACKWARD), range(micro_batches), places))
    for m, place in itertools.product(range(micro_batches), places[1:]):
        assert when[FORWARD, m, place - 1] < when[FORWARD, m, place]
        assert when[BACKWARD, m, place - 1] > when[BACKWARD, m, place]
        assert when[BACKWARD, m, places[-1]] > when[FORWARD, m, places[-1]]


@pytest.mark.parametrize(("name", "stages", "micro_batches"), CASES)
def test_the_idle_share_is_the_published_one(name, stages, micro_batches):
    bubble = (stages - 1) / (schedule.CHUNKS[name] * micro_batches + stages - 1)
    assert np.mean(schedule.make(name, stages, micro_batches).kind == schedule.IDLE) == pytest.approx(bubble)


@pytest.mark.parametrize(("stages", "micro_batches"), SIZES)
def test_1f1b_holds_as_many_micro_batches_as_there_are_stages(stages, micro_batches):
    assert schedule.make("1f1b", stages, micro_batches).kept == min(stages, micro_batches)
    assert schedule.make("gpipe", stages, micro_batches).kept == micro_batches


@pytest.mark.parametrize(("name", "stages", "micro_batches"), CASES)
def test_a_place_holds_what_its_reader_expects(name, stages, micro_batches):
    """Executes the tables like the compiled loop, with names instead of arrays."""
    made, chunks = schedule.make(name, stages, micro_batches), schedule.CHUNKS[name]
    inputs = [[None] * (made.inputs + 1) for _ in range(stages)]
    due = [[None] * (made.gradients + 1) for _ in range(stages)]
    kept = [[None] * made.kept for _ in range(stages)]
    onward, back = [None] * stages, [None] * stages
    for t in range(made.ticks):
        sent_onward, sent_back = [None] * stages, [None] * stages
        for s in range(stages):
            inputs[s][made.comes_input[t, s]] = onward[s]
            due[s][made.comes_gradient[t, s]] = back[s]
            m, place = int(made.micro_batch[t, s]), int(made.chunk[t, s]) * stages + s
            if made.kind[t, s] == FORWARD:
                assert inputs[s][made.input[t, s]] == (m, place) if place else made.input[t, s] == NOWHERE
                kept[s][made.keep[t, s]] = m, place
                sent_onward[(s + 1) % stages] = (m, place + 1)
            if made.kind[t, s] == BACKWARD:
                assert kept[s][made.keep[t, s]] == (m, place)
                if place < chunks * stages - 1:
                    assert due[s][made.gradient[t, s]] == (m, place)
                else:
                    assert made.gradient[t, s] == NOWHERE
                sent_back[(s - 1) % stages] = (m, place - 1)
        onward, back = sent_onward, sent_back


def test_segments_cover_all_ticks_in_order():
    for name, stages, micro_batches in CASES:
        made = schedule.make(name, stages, micro_batches)
        rows = made.segments()
        assert [row[0] for row in rows] == [0, *(row[1] for row in rows[:-1])]
        assert rows[-1][1] == made.ticks
        for first, end, kinds in rows:
            assert {int(kind) for kind in made.kind[first:end].flat} - {0} <= set(kinds)


def test_micro_batches_that_cannot_be_grouped_are_refused_with_a_number_that_can():
    with pytest.raises(UserError, match="accumulate=6 .*: use 8"):
        schedule.make("interleaved", 4, 6)
