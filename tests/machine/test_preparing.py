# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The ledger of preparing: what a process counts, and what a run makes of it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from jaxbench.core.workload import random_key
from jaxbench.machine.preparing import COMPILE, LOAD_EVENT, LOWER, TRACE, Spans, Watch
from jaxbench.records.preparation import Ledger, Spent, in_turn, saved_s, sentence, together
from jaxbench.report import preparation as page


def test_a_trace_inside_another_one_counts_once() -> None:
    spans = Spans()
    spans.ended(1.0, 3.0)
    spans.ended(1.0, 5.0)
    spans.ended(4.0, 6.0)  # from 2 to 6: both are in it
    spans.ended(1.0, 9.0)
    assert spans.take() == 5.0 and spans.take() == 0.0


def test_a_watch_tells_compiled_programs_from_loaded_ones() -> None:
    now = [0.0]
    watch = Watch(clock=lambda: now[0])
    watch.begin()
    for event, seconds in ((TRACE, 1.0), (LOWER, 0.5), (COMPILE, 4.0)):
        now[0] += seconds
        watch.duration(event, seconds, fun_name="jit(step)")
    watch.set_aside()
    watch.event(LOAD_EVENT)
    now[0] += 0.25
    watch.duration(COMPILE, 0.25)
    watch.first_run(0.125)
    watch.duration("/jax/another", 100.0)
    spent = watch.take(import_s=2.0)
    assert (spent.compiled, spent.loaded, spent.compile_s, spent.load_s) == (0, 1, 0.0, 0.25)
    assert (spent.import_s, spent.first_run_s, spent.busy_s, spent.trace_s) == (2.0, 0.125, 0.25, 0.0)
    aside = watch.take_aside()
    assert (aside.compiled, aside.compile_s, aside.trace_s, aside.lower_s, aside.busy_s) == (1, 4.0, 1.0, 0.5, 5.5)
    assert watch.take_aside() == in_turn([]) and watch.take().compiled == 0


def test_jax_reports_each_program() -> None:
    watch = Watch()
    watch.listen(tunes=True)
    try:
        watch.begin()
        jax.jit(lambda x: jnp.sin(x) * 52.5).lower(jnp.ones(3)).compile()
        spent = watch.take()
    finally:
        jax.monitoring.unregister_event_listener(watch.event)
        jax.monitoring.unregister_event_duration_listener(watch.duration)
    assert spent.compiled + spent.loaded >= 1 and spent.trace_s > 0 and spent.lower_s > 0
    assert spent.tune_s is None, "an accelerator's tuning is a part of compiling"


@pytest.mark.parametrize("seed", [0, 1, 42, 2**31, 2**32 - 1])
def test_a_key_of_the_host_is_the_key_of_jax(seed: int) -> None:
    assert (random_key(seed) == jax.random.PRNGKey(seed)).all()


def test_processes_of_a_group_work_at_the_same_time() -> None:
    two = [Spent(compile_s=2.0, compiled=1, tune_s=0.0), Spent(compile_s=3.0, compiled=2, tune_s=None)]
    assert together(two) == Spent(compile_s=3.0, compiled=3, tune_s=None)
    assert in_turn(two) == Spent(compile_s=5.0, compiled=3, tune_s=None)


def ledger(*, compiled: int, loaded: int, compile_s: float, load_s: float) -> Ledger:
    found = Ledger(measured_s=27.0)
    found.add(0, "", Spent(busy_s=5.0, import_s=5.0))
    spent = Spent(busy_s=36.0, compile_s=compile_s, load_s=load_s, compiled=compiled, loaded=loaded)
    found.add(1, "jit_auto/strong/2", spent)
    return found


def test_the_sentence_says_what_the_same_command_takes_now() -> None:
    cold = ledger(compiled=8, loaded=1, compile_s=36.0, load_s=0.5).to_json(started="", total_s=68.0)
    assert saved_s(Spent(), 41.0) == 0.0
    expected = 68 - 41 * (36 - 8 * 0.5) / 41
    assert cold["again_s"] == pytest.approx(expected, abs=0.01)
    said = sentence(cold)
    assert said.startswith(f"41 of 68 s were preparation; the same command now takes {expected:.0f} s")
    assert (cold["compiled"], cold["loaded"], cold["kept"]) == (8, 1, True)
    warm = ledger(compiled=0, loaded=9, compile_s=0.0, load_s=0.5).to_json(started="", total_s=31.0)
    assert sentence(warm) == "4 of 31 s were preparation; no program was compiled, 9 were loaded."
    assert sentence(Ledger().to_json(started="", total_s=1.0)) == ""
    lost = ledger(compiled=8, loaded=0, compile_s=36.0, load_s=0).to_json(started="", total_s=68.0, note="No room.")
    assert sentence(lost) == "41 of 68 s were preparation; 8 programs were compiled, 0 loaded. No room."
    assert lost["again_s"] == 68.0 and not lost["kept"]


def test_the_page_has_a_line_for_each_point_and_set() -> None:
    cold = ledger(compiled=8, loaded=1, compile_s=36.0, load_s=0.5).to_json(started="", total_s=68.0)
    assert [(each["point"], each["cache"], each["programs"]) for each in cold["points"]] == [
        ("", "", 0),
        ("jit_auto/strong/2", "mixed", 9),
    ]
    table = page.ledger(cold)
    assert table is not None and [str(line.cells[0]) for line in table.lines] == [
        "the processes and the model",
        "jit_auto strong on 2 devices",
    ]
    assert "at most 9 programs" in page.sentences(cold)[1]
    assert page.ledger({}) is None and page.sentences({}) == []
