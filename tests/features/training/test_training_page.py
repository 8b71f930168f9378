# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a training: its time ledger, its expected goodput, and problems of its folder."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.features.training import page as training
from jaxbench.features.training.trainings import LEDGER

SECOND = 10**9


def line(number, begun_s, from_step, step, *, saving=False, **spent_s):
    return {
        "start": number,
        "begun_ns": begun_s * SECOND,
        "from_step": from_step,
        "step": step,
        "saving": saving,
        "sealed": step // 10,
        "sealing_ns": step * SECOND // 10,
        "finished": False,
        "ns": {kind: seconds * SECOND for kind, seconds in spent_s.items()},
    }


@pytest.fixture
def folder(tmp_path):
    """100 s: a start that loses 5 of 15 s of steps, 5 s without a process, and a start that reaches the end."""
    lines = [
        line(1, 0, 0, 10, saving=True, start=10, steps=10),
        line(1, 0, 0, 15, start=10, steps=15, checkpoint=1),
        line(2, 31, 10, 60, saving=True, start=10, steps=50),
        line(2, 31, 10, 60, start=10, steps=50, checkpoint=4, evaluation=5),
    ]
    (tmp_path / LEDGER).write_text("".join(json.dumps(each) + "\n" for each in lines))
    (tmp_path / "config.json").write_text('{"experiment": "toy"}')
    return tmp_path


def test_the_page_shows_where_the_time_went(folder):
    text = io.StringIO()
    training.write(folder, Console(file=text, width=100))
    for said in (
        "60.0 of 100.0 s, in 2 starts, were steps that count: the goodput is 60.0 %",
        "repeated steps",
        "idle between starts",
    ):
        assert said in text.getvalue()
    page = (folder / training.PAGE).read_text()
    assert "Expected goodput" in page  # the definition from docs/metrics
    # Less than ten minutes say nothing about a cluster.
    assert "Llama 3" not in text.getvalue() and not (folder / "figures" / "goodput.svg").exists()


def test_a_long_training_says_what_failures_of_a_cluster_would_cost(folder):
    path = folder / LEDGER
    lines = [json.loads(each) for each in path.read_text().splitlines()]
    for each in lines:
        each["begun_ns"], each["ns"] = 10 * each["begun_ns"], {kind: 10 * ns for kind, ns in each["ns"].items()}
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    text = io.StringIO()
    training.write(folder, Console(file=text, width=100))
    assert "Llama 3" in text.getvalue() and "<svg" in (folder / training.PAGE).read_text()
    assert (folder / "figures" / "goodput.svg").exists()


def test_a_start_that_ends_after_the_next_one_began(folder):
    """More time in steps would improve the goodput: the overlap is subtracted from idle time."""
    path = folder / LEDGER
    path.write_text(path.read_text().replace('"steps": 15000000000', '"steps": 25000000000'))
    with pytest.raises(UserError, match="account.jsonl is damaged: by its times start 1 ended 5 s after start 2 began"):
        training.write(folder)


def test_a_line_with_a_time_below_zero_is_left_out(folder):
    path = folder / LEDGER
    path.write_text(path.read_text() + json.dumps(line(2, 31, 10, 60, start=-40, steps=99)) + "\n")
    text = io.StringIO()
    training.write(folder, Console(file=text, width=100))
    assert "60.0 of 100.0 s, in 2 starts, were steps that count" in text.getvalue()


def test_before_the_first_checkpoint_there_is_nothing_to_expect(folder):
    (folder / LEDGER).write_text(json.dumps(line(1, 0, None, 0, start=3)) + "\n")
    training.write(folder)
    assert "How far apart" not in (folder / training.PAGE).read_text()


def test_a_folder_without_an_account_is_named(tmp_path):
    with pytest.raises(UserError, match=r"has no account.jsonl: give the folder of a 'jaxbench train'"):
        training.write(tmp_path)
