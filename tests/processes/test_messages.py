# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Messages between processes: what is sent, what is not, and what is refused."""

import json

import fabricate
import pytest

from jaxbench.features.time_to_target import worker as target_worker
from jaxbench.features.training import worker
from jaxbench.machine.position import Position
from jaxbench.processes import messages
from jaxbench.processes.client import Worker, WorkerError
from jaxbench.processes.messages import REQUESTS, Prepare, Recorded, Round, Setup, answer_of, line_of, message_of


def sent(message):
    """The message as it arrives."""
    return json.loads(json.dumps(line_of(message)))


@pytest.mark.parametrize(
    "request_",
    [
        Prepare(point={"point": "p", "devices": 2}, paced=False),
        Round(point="p", round=3, steps=8, last=True),
        messages.CompileFor(point={"point": "p"}, text="a.gz", options={"xla_flag": True}),
        messages.Describe(),
    ],
)
def test_a_request_arrives_as_it_was_sent(request_):
    assert message_of(sent(request_), REQUESTS) == request_


def test_defaults_are_not_sent_so_a_worker_of_an_older_commit_understands():
    assert line_of(Round(point="p", round=0)) == {"do": "round", "point": "p", "round": 0}
    setup = Setup(platform="cpu", devices=2, world=Position(address="a:1", processes=2, process=0))
    world = {"address": "a:1", "processes": 2, "process": 0}
    assert sent(setup) == {"do": "setup", "platform": "cpu", "devices": 2, "world": world}
    assert message_of(sent(setup), [Setup]) == setup


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"do": "rount", "point": "p"}, "'rount' is no message: use prepare, "),
        ({"do": "round", "point": "p", "number": 0}, "unknown field 'number'"),
        ({"do": "round", "point": "p"}, "no field 'round'"),
    ],
)
def test_a_message_with_another_name_or_field_is_refused(line, words):
    with pytest.raises(ValueError, match=words):
        message_of(line, REQUESTS)


def test_an_answer_is_the_one_of_its_request_or_a_reason():
    record = fabricate.point_record()
    assert answer_of(sent(Recorded(record=record, steps=4)), Recorded) == Recorded(record=record, steps=4)
    for reason in (messages.Failed(stage="", reason=""), messages.Idle()):
        assert answer_of(sent(reason), Recorded) == reason
    assert answer_of(sent(messages.Same(same=False)), messages.Same) == messages.Same(same=False)
    with pytest.raises(ValueError, match="record: 'other' is not 'point' or 'compiled'"):
        answer_of({"do": "recorded", "record": {"kind": "other"}}, Recorded)
    with pytest.raises(ValueError, match="'paced' is no message: use recorded, failed, idle"):
        answer_of(sent(messages.Paced(steps=8)), Recorded)


def test_each_request_names_its_answer():
    assert {messages.answer_kind(kind) for kind in REQUESTS} >= {Recorded, messages.Same, messages.Paced}
    assert messages.answer_kind(target_worker.TrainModel) is target_worker.HowEnded
    names = [[kind.do for kind in kinds] for kinds in (REQUESTS, messages.LAUNCH_MESSAGES, worker.NEWS)]
    assert all(len(set(of)) == len(of) for of in names)


def test_a_worker_of_another_commit_names_the_request_that_it_does_not_know(tmp_path):
    """The stage "start" is that of a worker that does not understand; it lives on."""
    setup = Setup(platform="cpu", devices=1, module=target_worker.__name__, cache=str(tmp_path / "compiled"))
    of_targets = Worker(setup, tmp_path / "log")
    try:
        for request in (Round(point="p", round=0), messages.Pace(point="p")):
            with pytest.raises(WorkerError, match=f"'{request.do}' is no message: use describe_model") as error:
                of_targets.ask(request)
            assert error.value.stage == "start" and error.value.alive
    finally:
        of_targets.close()
