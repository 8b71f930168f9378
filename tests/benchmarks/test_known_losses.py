# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A loss is found in the factor into which it was built, and a factor that takes another one's loss is seen."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import fabricate_losses as fab
import pytest
from fabricate_losses import Loss

from benchmarks import known_losses
from benchmarks.known_losses import Times
from jaxbench.analysis import points, scaling, waterfall
from jaxbench.analysis.waterfall import Waterfall
from jaxbench.records.store import RunFolder

PLAIN = Loss(share=0.97, machine=0.91, communication=1 / 1.2, collectives=0.2)
LOCAL_S = fab.BASE_S / 2 / PLAIN.share / PLAIN.machine
STEP_S, WAIT_S = 1.2 * LOCAL_S, known_losses.WAIT_S
TWICE = fab.less(PLAIN, communication=1 / 1.4, collectives=0.4)
HEARD = fab.less(PLAIN, rest=STEP_S / (STEP_S + WAIT_S))
CROWDED = fab.less(PLAIN, machine=PLAIN.machine * LOCAL_S / (LOCAL_S + WAIT_S), communication=1 / 1.2)


def made(path: Path, loss: Loss, **facts: object) -> Waterfall:
    run = RunFolder(fab.folder(path, {2: loss}, noise=0.002, drift=0.0, **facts))  # type: ignore[arg-type]
    (found,) = waterfall.find(scaling.analyse(points.load(run), config=run.config()))
    return found


def said(name: str, found: Waterfall, plain: Waterfall | None) -> dict[str, str]:
    return {line[0]: line[-1] for line in known_losses.lines(name, found, plain)}


def test_factors_are_those_of_the_report(tmp_path: Path) -> None:
    for i, loss in enumerate((PLAIN, HEARD, fab.less(PLAIN, communication=1 / 1.05))):
        found = made(tmp_path / str(i), loss)
        measured = {factor.name: factor.value.value for factor in found.factors}
        for name, value in Times.of(found).factors().items():
            assert value == pytest.approx(measured.get(name, 1.0), abs=2e-3), name


def test_a_loss_is_found_where_it_was_built_in_and_no_other_factor_moves(tmp_path: Path) -> None:
    plain, twice, heard = (made(tmp_path / str(i), loss) for i, loss in enumerate((PLAIN, TWICE, HEARD)))
    others = dict.fromkeys(("smaller share", "shared machine"), "as expected")
    assert said("twice", twice, plain) == {"communication": "FOUND", **others, "not explained": "as expected"}
    assert said("heard", heard, plain) == {"not explained": "FOUND", **others, "communication": "as expected"}


def test_a_factor_that_takes_another_ones_loss_is_seen(tmp_path: Path) -> None:
    plain, twice, crowded = (made(tmp_path / str(i), loss) for i, loss in enumerate((PLAIN, TWICE, CROWDED)))
    assert said("heard", crowded, plain)["not explained"] == "MISSED"
    assert said("heard", crowded, plain)["shared machine"] == "MOVED"
    assert said("heard", twice, plain)["not explained"] == said("twice", plain, plain)["communication"] == "MISSED"


def test_what_a_wait_adds_to_each_time() -> None:
    plain = Times(one=0.03, alone=0.016, local=0.017, communication=0.001, step=0.018)
    fixed = plain.with_loss("fixed", plain)
    assert (fixed.one, fixed.alone, fixed.local, fixed.step) == pytest.approx((0.04, 0.026, 0.027, 0.028))
    for local, counted in ((0.016, 0.017), (0.024, 0.024), (0.05, 0.027)):  # a wait is in the local step at most once
        late = plain.with_loss("late", dataclasses.replace(plain, local=local))
        assert (late.local, late.step) == pytest.approx((counted, 0.028))


def test_memory_must_cost_what_two_threads_of_numpy_show(tmp_path: Path) -> None:
    plain = made(tmp_path / "plain", PLAIN)
    ratio = known_losses.interval(0.5, (0.48, 0.53))
    alone_s, passes_s = fab.BASE_S / 2 / PLAIN.share, fab.BASE_S
    alone = fab.BASE_S / 2 / (alone_s + passes_s)
    right = Loss(share=alone, machine=(alone_s + passes_s) / (LOCAL_S + passes_s / 0.5))
    found = made(tmp_path / "right", right)
    for loss, said in ((found, "FOUND"), (made(tmp_path / "none", fab.less(right, machine=0.99)), "MISSED")):
        assert known_losses.lines("memory", loss, plain, ratio)[0][-1] == said


def test_a_bubble_that_the_step_does_not_have_is_seen(tmp_path: Path) -> None:
    pipeline = {"strategies": ("pipeline",), "levers": {"accumulate": "2"}}
    right = Loss(idle=1 / 3, communication=1 / 1.02, collectives=0.02)
    for which, found in ((right, "FOUND"), (fab.less(right, idle=0), "MISSED")):
        one = made(tmp_path / found, which, **pipeline)
        assert said("few", one, None)["pipeline bubble x not explained"] == found


def test_only_the_verdict_host_is_taken_out_of_the_records(tmp_path: Path) -> None:
    path, other = tmp_path / "records.jsonl", '{"kind": "round", "checks": []}\n'
    path.write_text('{"kind": "point", "checks": [{"name": "host"}, {"name": "work"}]}\n' + other)
    known_losses.without_host_verdict(path)
    assert path.read_text() == '{"kind": "point", "checks": [{"name": "work"}]}\n' + other
