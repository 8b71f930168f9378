# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which of several processes is to blame, and that none of them is left: with real processes, without JAX."""

import dataclasses
import json
import os
import re
import signal
import time

import pytest

from jaxbench.processes import supervisor
from jaxbench.processes.messages import Failed, Paced, Setup, line_of, message_of
from jaxbench.processes.supervisor import Cause, Fault, Lost, Supervisor

# Does what its file "<number>" says, such as "say 0.2 {...}" after 0.2 s, or "signal 0 9".
SPEAKER = """
import os, pathlib, sys, time
sys.stdin.readline()
what, after_s, word = pathlib.Path(os.environ["ORDER"]).read_text().split(" ", 2)
time.sleep(float(after_s))
if what == "signal":
    os.kill(os.getpid(), int(word))
if what == "exit":
    sys.exit(int(word))
if what == "say":
    print(word, flush=True)
sys.stdin.read()
"""
DONE = Paced(steps=4)
JAX = Failed(stage="measure", reason="JaxRuntimeError: connection closed", follows=True)
OWN = Failed(stage="measure", reason="ValueError: this row is bad")
LONG = {cause: 30.0 for cause in Cause if cause}


def say(message, after_s=0.0):
    return f"say {after_s} {json.dumps(line_of(message))}"


class Group:
    """Processes that follow orders."""

    def __init__(self, folder, orders, hosts=None):
        (folder / "speaker.py").write_text(SPEAKER)
        children = {}
        for number, order in enumerate(orders):
            (folder / str(number)).write_text(order)
            variables = {"PYTHONPATH": str(folder), "ORDER": str(folder / str(number))}
            setup = Setup(platform="cpu", devices=1, module="speaker", environment=variables)
            children |= {number: supervisor.start(setup, folder / f"log{number}")[0]}
        self.processes = Supervisor(children, hosts)
        self.pids = [child.pid for child in children.values()]
        self.heard = []

    def take(self, number, line):
        answer = message_of(line, [Paced, Failed])
        self.heard.append(number)
        return Fault.of(number, answer) if isinstance(answer, Failed) else True

    def watch(self, late=lambda waiting: None, patience_s=LONG, **more):
        self.processes.watch(self.take, late, patience_s, look_s=0.1, **more)

    def lost(self, *arguments, **more) -> Lost:
        with pytest.raises(Lost) as caught:
            self.watch(*arguments, **more)
        return caught.value


@pytest.fixture
def group(tmp_path):
    made = []

    def make(*orders, hosts=None):
        made.append(Group(tmp_path, orders, hosts))
        return made[-1]

    yield make
    for each in made:
        each.processes.kill()
        each.processes.close()


def gone(pids):
    return not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def test_it_ends_when_all_are_done_and_leaves_none(group):
    three = group(say(DONE, 0.2), say(DONE), say(DONE))
    three.watch()
    assert sorted(three.heard) == [0, 1, 2] and not gone(three.pids)
    three.processes.close()
    assert gone(three.pids)


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        # The first error of JAX comes before the death that it follows from.
        ((say(JAX), "signal 0.5 9"), r"process 1 of 2 was killed by SIGKILL \(as by the system .*\)"),
        ((say(JAX), say(OWN, 0.5)), "process 1 of 2 failed: ValueError: this row is bad"),
        (("signal 0 6", say(OWN, 0.5)), "process 1 of 2 failed: ValueError: this row is bad"),
        (("exit 0 1", "signal 0.5 11"), "process 1 of 2 was killed by SIGSEGV"),
        ((say(JAX, 0.3), "exit 0 1"), "process 1 of 2 ended with exit code 1"),
        ((say(JAX), say(JAX)), "JaxRuntimeError: connection closed"),
        (("exit 0 3", "wait 0 -"), "process 0 of 2 ended with exit code 3"),
    ],
)
def test_the_process_to_blame_is_the_one_that_explains_the_others(group, orders, words):
    two = group(*orders)
    lost = two.lost()
    assert re.fullmatch(words, str(lost)), str(lost)
    assert lost.common == (words == JAX.reason)
    assert lost.all_said == all(order.startswith("say") for order in orders)
    two.processes.close()
    assert gone(two.pids)


def test_those_that_all_failed_live_on_and_others_are_killed(group):
    both = group(say(JAX), say(OWN))
    lost = both.lost()
    assert lost.all_said and not lost.common and lost.fault.said == OWN and not gone(both.pids)
    one = group(say(OWN), "wait 0 -", say(DONE))
    begun = time.monotonic()
    lost = one.lost(patience_s={Cause.ERROR: 1.0})
    assert time.monotonic() - begun >= 1.0, "the others may say the same"
    assert lost.silent == ["process 1 of 3"] and gone(one.pids)


def test_a_late_process_and_one_that_was_stopped_are_named(group):
    two = group(say(DONE), "wait 0 -", hosts={0: "a", 1: "b"})
    os.kill(two.pids[1], signal.SIGSTOP)
    looks = []

    def late(waiting):
        looks.append(list(waiting))
        return Fault(process=1, reason="too late") if len(looks) > 12 else None

    lost = two.lost(late)
    assert str(lost) == "too late" and looks[-1] == [1] and gone(two.pids)
    assert lost.stopped == " (process 1 of 2 (on b) does not run: it was stopped, as by SIGSTOP)"


def test_a_silent_process_explains_an_error_of_jax_and_not_an_own_one(group):
    def suspect(waiting):
        return Fault(process=waiting[0], reason="is silent")

    for failed, words in ((JAX, "is silent"), (OWN, "process 0 of 2 failed: ValueError: this row is bad")):
        two = group(say(failed), "wait 0 -")
        assert str(two.lost(patience_s={Cause.ERROR: 0.3, Cause.FOLLOWS: 0.3}, suspect=suspect)) == words


def test_it_kills_all_after_an_exception(group):
    two = group("wait 0 -", "wait 0 -")
    with pytest.raises(KeyboardInterrupt), two.processes:
        raise KeyboardInterrupt
    assert gone(two.pids)


def test_a_failure_becomes_a_fault_with_its_cause():
    assert Fault.of(2, JAX).cause is Cause.FOLLOWS and Fault.of(2, OWN).cause is Cause.ERROR
    assert Fault.of(2, dataclasses.replace(OWN, detail="line 3")).detail == "line 3"
