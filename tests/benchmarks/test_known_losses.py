# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A loss is found in its own factor, and a loss in the wrong factor is detected."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import fabricate_losses as fab
import pytest
from fabricate_losses import Loss

from benchmarks import known_losses, known_losses_expected
from benchmarks.known_losses_expected import Alone, Times
from jaxbench.analysis import points, run_rows, waterfall
from jaxbench.analysis.waterfall import Waterfall
from jaxbench.core.store import RunFolder

PLAIN = Loss(share=0.97, machine=0.91, communication=1 / 1.2, collectives=0.2)
LOCAL_S = fab.BASE_S / 2 / PLAIN.share / PLAIN.machine
STEP_S, WAIT_S = 1.2 * LOCAL_S, known_losses_expected.WAIT_S
AGAIN = fab.less(PLAIN, communication=1 / 2, collectives=1.0)  # five times as much
HEARD = fab.less(PLAIN, rest=STEP_S / (STEP_S + WAIT_S))
CROWDED = fab.less(PLAIN, machine=PLAIN.machine * LOCAL_S / (LOCAL_S + WAIT_S), communication=1 / 1.2)


def made(path: Path, loss: Loss, **facts: object) -> Waterfall:
    run = RunFolder(fab.folder(path, {2: loss}, noise=0.002, drift=0.0, **facts))  # type: ignore[arg-type]
    (found,) = waterfall.find(run_rows.analyse(points.load(run), config=run.config()))
    return found


def said(name: str, found: Waterfall, plain: Waterfall | None) -> dict[str, str]:
    return {line[0]: line[-1] for line in known_losses_expected.lines(name, found, plain)}


def test_factors_are_those_of_the_report(tmp_path: Path) -> None:
    for i, loss in enumerate((PLAIN, HEARD, fab.less(PLAIN, communication=1 / 1.05))):
        found = made(tmp_path / str(i), loss)
        measured = {factor.name: factor.value.value for factor in found.factors}
        for name, value in Times.of(found).factors().items():
            assert value == pytest.approx(measured.get(name, 1.0), abs=2e-3), name


def test_a_loss_is_found_where_it_was_built_in_and_no_other_factor_moves(tmp_path: Path) -> None:
    plain, again, heard = (made(tmp_path / str(i), loss) for i, loss in enumerate((PLAIN, AGAIN, HEARD)))
    others = dict.fromkeys(("smaller share", "shared machine"), "as expected")
    assert said("again", again, plain) == {"communication": "FOUND", **others, "not explained": "as expected"}
    assert said("heard", heard, plain) == {"not explained": "FOUND", **others, "communication": "as expected"}


def test_a_factor_that_takes_another_ones_loss_is_seen(tmp_path: Path) -> None:
    plain, again, crowded = (made(tmp_path / str(i), loss) for i, loss in enumerate((PLAIN, AGAIN, CROWDED)))
    assert said("heard", crowded, plain)["not explained"] == "MISSED"
    assert said("heard", crowded, plain)["shared machine"] == "MOVED"
    assert said("heard", again, plain)["not explained"] == "MISSED"
    hidden = made(tmp_path / "hidden", fab.less(AGAIN, communication=1 / 1.2))  # repeated messages cost nothing
    assert said("again", hidden, plain)["communication"] == "MISSED"


def test_the_effect_of_a_wait_on_each_time() -> None:
    plain = Times(one=0.03, alone=0.016, local=0.017, communication=0.001, step=0.018)
    fixed = plain.with_loss("fixed", plain)
    assert (fixed.one, fixed.alone, fixed.local, fixed.step) == pytest.approx((0.04, 0.026, 0.027, 0.028))
    for local, counted in ((0.016, 0.017), (0.024, 0.024), (0.05, 0.027)):  # a wait is in the local step at most once
        late = plain.with_loss("late", dataclasses.replace(plain, local=local))
        assert (late.local, late.step) == pytest.approx((counted, 0.028))
    faster = dataclasses.replace(plain, local=0.015, step=0.027)
    heard = plain.with_loss("heard", faster, 0.011)
    assert (heard.local, heard.step) == pytest.approx((0.015, 0.027))


def test_passes_over_memory_must_cost_what_they_cost_by_themselves(tmp_path: Path) -> None:
    plain = made(tmp_path / "plain", PLAIN)
    alone_s, whole_s, half_s, both_s = fab.BASE_S / 2 / PLAIN.share, 0.09, 0.03, 0.05
    alone, local = alone_s + half_s, LOCAL_S + both_s
    right = Loss(share=(fab.BASE_S + whole_s) / (2 * alone), machine=alone / local)
    passes = [(whole_s * x, half_s * x, both_s * x) for x in (0.98, 0.99, 1.0, 1.01, 1.02)]
    for loss, verdict in ((right, "FOUND"), (fab.less(right, machine=0.5), "MISSED")):
        found = made(tmp_path / verdict, loss)
        share, machine, *_ = known_losses_expected.lines("memory", found, plain, Alone(passes=passes))
        assert (share[0], share[-1], machine[0], machine[-1]) == ("smaller share", "FOUND", "shared machine", verdict)


def test_a_bubble_equals_its_formula_plus_the_time_of_its_messages(tmp_path: Path) -> None:
    pipeline = {"strategies": ("pipeline",), "levers": {"accumulate": "2"}}
    right = Loss(idle=1 / 3, communication=1 / 1.02, collectives=0.02)
    for idle, verdict in ((1 / 3, "FOUND"), (0.345, "FOUND"), (0.4, "MISSED"), (0.0, "MISSED")):
        one = made(tmp_path / f"{idle}", fab.less(right, idle=idle), **pipeline)
        assert said("few", one, None)["pipeline bubble"] == verdict, idle


def test_intervals_of_medians_follow_from_their_order() -> None:
    found = known_losses_expected.interval([float(x) for x in range(15)])
    assert (found.lo, found.value, found.hi) == (3, 7, 11)


def test_only_the_verdict_host_is_taken_out_of_the_records(tmp_path: Path) -> None:
    path, other = tmp_path / "records.jsonl", '{"kind": "round", "checks": []}\n'
    path.write_text('{"kind": "point", "checks": [{"name": "host"}, {"name": "work"}]}\n' + other)
    known_losses.without_host_verdict(path)
    assert path.read_text() == '{"kind": "point", "checks": [{"name": "work"}]}\n' + other
