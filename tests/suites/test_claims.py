# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Each claim of each paper, with fabricated records on both sides of it; and the rules of the verdicts."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import fabricate_papers as made
import numpy as np
import pytest
from fabricate_papers import Make, both, scaling
from matplotlib.text import Text

from jaxbench.features.comparison.judge import (
    CANNOT_TELL,
    DIVERGED,
    FAILS,
    HOLDS,
    NOT_MEASURED,
    NOT_TESTABLE,
    decide_claim,
    why_undecided,
)
from jaxbench.features.training.trainings import read_trained, write_trained
from jaxbench.report.drawing import canvas
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate, student
from jaxbench.suites.papers import evidence, page, readers, series
from jaxbench.suites.papers import paper as library
from jaxbench.suites.papers.evidence import Evidence
from jaxbench.suites.papers.paper import Claim
from jaxbench.suites.papers.session import judged

# By paper and claim: records for which it holds, and records for which it does not.
SIDES: dict[tuple[str, str], tuple[Make, Make]] = {
    ("chen2016", "square root"): (made.remat(exponent=0.5), made.remat(exponent=0.9)),
    ("chen2016", "thirty per cent"): (made.remat(sqrt_s=0.012), made.remat(sqrt_s=0.015)),
    ("chen2016", "selective"): (made.remat(saveable_s=0.010), made.remat(saveable_s=0.0125)),
    ("goyal2017", "efficiency"): (scaling("cnn", 0.98), scaling("cnn", 0.7)),
    ("goyal2017", "kept accuracy"): (
        made.trainings(made.halving),
        made.trainings(made.halving, lambda batch: 0.97 - 0.02 * (batch > 64)),
    ),
    ("goyal2017", "lost accuracy"): (
        made.trainings(made.halving, lambda batch: 0.97 - 0.02 * (batch > 256)),
        made.trainings(made.halving),
    ),
    ("huang2019", "bubble"): (
        made.pipeline({"gpipe": 1 / 5}, "pipeline"),
        made.pipeline({"gpipe": 0.3}, "pipeline"),
    ),
    ("huang2019", "interleaving"): (
        made.pipeline({"1f1b": 1 / 5, "interleaved": 1 / 9}, "interleaved"),
        made.pipeline({"1f1b": 1 / 5, "interleaved": 1 / 5}, "interleaved"),
    ),
    ("krizhevsky2014", "dense parameters"): (made.frozen(0.95), made.frozen(0.4)),
    ("krizhevsky2014", "data parallelism alone"): (scaling("alexnet", 0.6), scaling("alexnet", 1.02)),
    ("krizhevsky2014", "less is sent"): (made.mixture(0.009, 0.4), made.mixture(0.009, 1.6)),
    ("krizhevsky2014", "hybrid"): (made.mixture(0.009, 0.4), made.mixture(0.011, 0.4)),
    ("li2020", "not one each"): (made.buckets(0.013, 0.01), made.buckets(0.008, 0.01)),
    ("li2020", "not one for all"): (made.buckets(0.01, 0.013), made.buckets(0.01, 0.008)),
    ("li2020", "overlap"): (made.overlap(0.95), made.overlap(0.68)),
    ("micikevicius2018", "same accuracy"): (made.precision(0.0), made.precision(3.0)),
    ("micikevicius2018", "gradients vanish"): (made.precision(0.0, unscaled=4.0), made.precision(0.0)),
    ("rajbhandari2020", "bytes"): (made.state(1.001), made.state(1.1)),
    ("rajbhandari2020", "volume of P_os"): (
        made.zero("volume", jit_auto=100, zero1=100),
        made.zero("volume", jit_auto=100, zero1=150),
    ),
    ("rajbhandari2020", "volume of P_os+g"): (
        made.zero("volume", jit_auto=100, zero2=101),
        made.zero("volume", jit_auto=100, zero2=200),
    ),
    ("rajbhandari2020", "volume of P_os+g+p"): (
        made.zero("volume", jit_auto=100, fsdp=148),
        made.zero("volume", jit_auto=100, fsdp=100),
    ),
    ("sergeev2018", "resnet"): (scaling("resnet18", 0.98), scaling("resnet18", 0.7)),
    ("sergeev2018", "vgg below resnet"): (
        both(scaling("resnet18", 0.98), scaling("vgg16", 0.7)),
        both(scaling("resnet18", 0.7), scaling("vgg16", 0.98)),
    ),
    ("shallue2019", "perfect scaling"): (made.trainings(made.halving), made.trainings(lambda batch: 1000.0)),
    ("shallue2019", "no further gain"): (made.trainings(made.quadratic), made.trainings(made.halving)),
    ("shallue2019", "the knee"): (
        made.trainings(made.quadratic, noise_scale=64),
        made.trainings(made.quadratic, noise_scale=4000),
    ),
    ("shoeybi2019", "weak scaling"): (scaling("weak", 0.95), scaling("weak", 0.5)),
    ("shoeybi2019", "all-reduces"): (made.depths(14, 22), made.depths(14, 26)),
    ("williams2009", "Williams"): (made.kernels(0.8), made.kernels(1.5)),
    ("williams2009", "Hockney"): (made.all_reduces(0.0), made.all_reduces(3.0)),
    ("williams2009", "Amdahl"): (made.follows(made.AMDAHL, "strong"), made.follows(made.jump, "strong")),
    ("williams2009", "Gustafson"): (made.follows(made.AMDAHL, "weak"), made.follows(made.jump, "weak")),
    ("williams2009", "Gunther"): (made.follows(made.USL, "strong"), made.follows(made.jump, "strong")),
}
# Claims that no run of this version can test, on any machine.
NOWHERE = {("huang2019", "mixture")}
CLAIMS = {(id, claim.name): claim for id in library.names() for claim in library.load(id).claims}


def test_every_claim_is_tried_on_both_sides() -> None:
    assert CLAIMS.keys() == SIDES.keys() | NOWHERE and not SIDES.keys() & NOWHERE


@pytest.mark.parametrize("which", SIDES, ids=" ".join)
def test_a_claim_holds_on_one_side_and_not_on_the_other(which: tuple[str, str], tmp_path: Path) -> None:
    for make, expected in zip(SIDES[which], (HOLDS, FAILS), strict=True):
        make(tmp_path / expected)
        found = judged(CLAIMS[which], Evidence(tmp_path / expected))
        assert found["verdict"] == expected, found


@pytest.mark.parametrize("which", CLAIMS, ids=" ".join)
def test_without_runs_no_claim_is_testable_and_it_says_why(which: tuple[str, str], tmp_path: Path) -> None:
    found = judged(CLAIMS[which], Evidence(tmp_path))
    expected = NOT_TESTABLE if which in NOWHERE else NOT_MEASURED
    assert found["verdict"] == expected and found["why"].endswith(".") and found["value"] is None


@pytest.mark.parametrize("outcome", ["not yet", "stopped", "broken"])
def test_part_of_a_run_decides_nothing(outcome: str, tmp_path: Path) -> None:
    """A killed run may have left some of its points, even enough for a number."""
    scaling("cnn", 0.98)(tmp_path)
    found = judged(CLAIMS["goyal2017", "efficiency"], Evidence(tmp_path, {"cnn": {"outcome": outcome, "said": ""}}))
    assert found["verdict"] == NOT_MEASURED and "the same command continues" in found["why"]


def test_a_refused_run_is_not_testable_and_says_why(tmp_path: Path) -> None:
    runs = {"cnn": {"outcome": "refused", "said": "It needs two devices."}}
    found = judged(CLAIMS["goyal2017", "efficiency"], Evidence(tmp_path, runs))
    assert found["verdict"] == NOT_TESTABLE and "It needs two devices." in found["why"]


@pytest.mark.parametrize("claim", ["kept accuracy", "lost accuracy"])
@pytest.mark.parametrize("how", ["chance", "loss not finite", "unknown accuracy"])
def test_a_diverged_training_is_evidence_of_nothing(claim: str, how: str, tmp_path: Path) -> None:
    """At 90 % error a network has learnt nothing because of its learning rate; this says nothing about its batch."""
    made.trainings(made.halving, lambda batch: 0.1 if how == "chance" and batch > 64 else 0.97)(tmp_path)
    changes = {"chance": {}, "loss not finite": {"diverged": 17}, "unknown accuracy": {"accuracy": None}}[how]
    trained = read_trained(tmp_path / "targets")
    large = [dataclasses.replace(one, **changes) if one.batch in (256, 1024) else one for one in trained]
    write_trained(tmp_path / "targets", large)
    found = judged(CLAIMS["goyal2017", claim], Evidence(tmp_path))
    assert found["verdict"] == DIVERGED and found["value"] is None
    assert f"5 of 5 trainings at batch {256 if claim == 'kept accuracy' else 1024} diverged" in found["why"]


def test_a_diverged_training_is_crossed_out_in_the_figure(tmp_path: Path) -> None:
    made.trainings(made.halving, lambda batch: 0.1 if batch > 256 else 0.97)(tmp_path)
    (found,) = series.make(library.load("goyal2017").panels[0].measured[0], Evidence(tmp_path))
    assert {int(mark.at) for mark in found.marks if mark.state == "refused"} == {512, 1024}
    assert "diverged" in found.crosses


@pytest.mark.parametrize("id", library.names())
def test_a_figure_prints_the_verdict_of_every_claim(id: str, tmp_path: Path) -> None:
    """Its title cannot contradict the data, because it names only the measured quantity."""
    found, paper = Evidence(tmp_path), library.load(id)
    answers = [FAILS, CANNOT_TELL, HOLDS, DIVERGED]
    claims = [judged(claim, found) | {"verdict": answers[at]} for at, claim in enumerate(paper.claims[:4])]
    with canvas.style():
        drawn = page.draw_figure(paper, found, claims)
    text = " ".join(" ".join(each.get_text().split()) for each in drawn.findobj(Text))
    assert paper.title in text and all(f"{claim['name']}: {claim['verdict']}" in text for claim in claims)


def test_a_symbol_has_one_meaning_in_all_panels(tmp_path: Path) -> None:
    both(made.kernels(0.8), made.all_reduces(0.0), made.follows(made.AMDAHL, "strong"))(tmp_path)
    paper, found = library.load("williams2009"), Evidence(tmp_path)
    with canvas.style():
        drawn = page.draw_figure(paper, found, [judged(claim, found) for claim in paper.claims])
    handles = drawn.legends[0].legend_handles
    styles = {(str(line.get_color()), line.get_marker(), str(line._unscaled_dash_pattern)) for line in handles}
    assert len(styles) == len(handles) > 3


def test_oversubscribed_points_prove_no_speed(tmp_path: Path) -> None:
    scaling("cnn", 0.5, cores=1)(tmp_path)
    found = judged(CLAIMS["goyal2017", "efficiency"], Evidence(tmp_path))
    assert found["verdict"] == NOT_TESTABLE and "cores" in found["why"]


def test_a_refused_law_says_what_it_needs(tmp_path: Path) -> None:
    scaling("scaling", 0.9, "strong")(tmp_path)
    found = judged(CLAIMS["williams2009", "Amdahl"], Evidence(tmp_path))
    assert found["verdict"] == NOT_TESTABLE and "Amdahl needs 3" in found["why"]


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (Estimate(value=1.0, lo=0.95, hi=1.05), HOLDS),
        (Estimate(value=1.0, lo=0.85, hi=1.05), CANNOT_TELL),
        (Estimate(value=0.7, lo=0.6, hi=0.8), FAILS),
        (Estimate(value=1.3, lo=1.2, hi=1.4), FAILS),
        (Estimate(value=1.0, lo=0.5, hi=2.0), CANNOT_TELL),
        (Estimate(value=1.0), CANNOT_TELL),
        (UNKNOWN, CANNOT_TELL),
    ],
)
def test_only_a_whole_interval_decides(value: Estimate, verdict: str) -> None:
    assert decide_claim(value, 0.9, 1.1) == verdict


def test_why_names_the_limit_that_the_interval_contains() -> None:
    wide = Estimate(value=1.0, lo=0.85, hi=1.05)
    assert "0.9" in why_undecided(wide, 0.9, math.inf) and "no interval" in why_undecided(Estimate(value=1.0), 0.9, 1.1)


def test_the_knee_of_a_quadratic_is_its_noise_scale(tmp_path: Path) -> None:
    made.trainings(made.quadratic)(tmp_path)
    knee = evidence.trainings(Evidence(tmp_path), "linear").knee()
    assert knee.lo <= 64 <= knee.hi or abs(knee.value / 64 - 1) < 0.01


def test_a_batch_that_did_not_reach_the_target_has_no_steps(tmp_path: Path) -> None:
    made.trainings(lambda batch: 1e7 if batch == 1024 else 100.0)(tmp_path)
    found = evidence.trainings(Evidence(tmp_path), "linear")
    assert 1024 in found.accuracy and 1024 not in found.steps and 512 in found.steps


def test_welch_and_student_equal_known_intervals() -> None:
    """The quantiles of Student's distribution are those of a printed table: 2.776 at 4, 2.447 at 6, 2.365 at 7."""
    one, other = np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 3, 4, 5, 9])
    assert student(one).lo == pytest.approx(3 - 2.776 * math.sqrt(2.5 / 5), rel=1e-3)
    found = readers.difference(one, other)
    df = (2.5 / 5 + 7.3 / 5) ** 2 / ((2.5 / 5) ** 2 / 4 + (7.3 / 5) ** 2 / 4)
    assert found.value == pytest.approx(-1.6) and 6 < df < 7
    assert 2.365 * 1.4 < found.hi - found.value < 2.447 * 1.4


def test_limits_in_words() -> None:
    def claim(**limits: float) -> str:
        return Claim(name="", sentence="", source="", quantity="", read={}, here="", **limits).limit

    assert [claim(low=0.9), claim(high=2), claim(low=1, high=3), claim(low=4, high=4)] == [
        "at least 0.9", "at most 2", "between 1 and 3", "4"
    ]  # fmt: skip
