# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Each claim of each paper, with fabricated records on both sides; the rules of the verdicts; the pages and gallery."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fabricate
import fabricate_arms
import fabricate_cases
import fabricate_losses
import fabricate_tokens
import jax
import numpy as np
import pytest
from experiment_cases import points_of
from fabricate_arms import arm
from matplotlib.text import Text
from ml_collections import ConfigDict
from rich.console import Console
from thin import thin
from workload_cases import KEY

import jaxbench as jb
from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.analysis import waterfall
from jaxbench.core.store import lock_folder
from jaxbench.errors import UserError
from jaxbench.features.comparison.claims import (
    DIVERGED,
    FAILS,
    HOLDS,
    NOT_MEASURED,
    NOT_TESTABLE,
    decide_claim,
    why_undecided,
)
from jaxbench.features.comparison.judge import CANNOT_TELL
from jaxbench.features.training.trainings import Trained, read_trained, write_trained
from jaxbench.report.drawing import canvas
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate, student
from jaxbench.suites.command import Ended
from jaxbench.suites.papers import figure, page, paper, readers, series, session
from jaxbench.suites.papers import paper as library
from jaxbench.suites.papers.paper import Claim, Evidence
from jaxbench.suites.papers.session import judged
from jaxbench.sweep import progress

Make = Callable[[Path], Any]
Law = Callable[[int], float]  # by batch


def scaling(run: str, efficiency: float, scaling: str = "weak", **more: Any) -> Make:
    """A run on one and two devices with this efficiency on two."""
    more = {"law": lambda _, n: n * efficiency if n > 1 else 1.0, "devices": (1, 2), "rounds": 9, **more}
    return lambda folder: fabricate.run_folder(folder / run, scalings=(scaling,), **more)


# Nothing is shared by the requests of a batch, and each call costs less than nothing.
DEARER = fabricate_tokens.Law(weights_s=1e-5, smaller_s=1e-5, cache_s=1e-3, starting_s=-5e-4)


def generated(run: str, law: fabricate_tokens.Law) -> Make:
    """A run of generation on one and two devices."""
    return lambda folder: fabricate_tokens.folder(folder / run, law)


def follows(law: fabricate.Law, scaling: str) -> Make:
    return lambda folder: fabricate.run_folder(folder / "scaling", law=law, scalings=(scaling,), rounds=9, noise=0.001)


def both(*makes: Make) -> Make:
    def make(folder: Path) -> None:
        for each in makes:
            each(folder)

    return make


def remat(sqrt_s: float = 0.012, saveable_s: float = 0.0102, exponent: float = 0.5) -> Make:
    arms = [arm(0.010, remat="none"), arm(saveable_s, remat="dots_saveable"), arm(sqrt_s, remat="sqrt")]

    def make(folder: Path) -> None:
        fabricate_arms.lever_folder(folder / "remat", arms, ["remat"], rounds=9)
        rows = [{"blocks": n, "remat": "sqrt", "temp_bytes": int(1e6 * n**exponent)} for n in (4, 8, 16, 32)]
        (folder / "remat" / "remat_law.json").write_text(json.dumps({"rows": rows, "schema": 1}))

    return make


def precision(lost: float, unscaled: float = 0.0) -> Make:
    """Four seeds: accuracy in float16 is lower by `lost` points, within a tenth, and without loss scaling by `unscaled`
    more points."""

    def make(folder: Path) -> None:
        for seed in range(4):
            scaled = 0.97 - (lost + 0.1 * (seed % 2)) / 100
            ends = {"default": 0.97, "float16": scaled, "float16_unscaled": scaled - (unscaled + 0.01 * seed) / 100}
            arms = [arm(0.01, precision=name, outcome={"final_accuracy": each}) for name, each in ends.items()]
            fabricate_arms.lever_folder(folder / f"seed{seed}", arms, ["precision"], rounds=1)

    return make


def pipeline(idle: Mapping[str, float], run: str) -> Make:
    """Pipelines of two stages and four micro-batches on two devices, with the idle share of each schedule."""

    def make(folder: Path) -> None:
        arms = [fabricate_arms.Made(levers={"accumulate": "4", "schedule": name}, step_s=0.01) for name in idle]
        fabricate_arms.lever_folder(folder / run, arms, ["schedule"], strategy="pipeline", devices=(2,), rounds=2)
        edit(folder / run, lambda line: line["facts"].update(busy_share=1 - idle[line["levers"]["schedule"]]))

    return make


def depths(*sums: int) -> Make:
    """Steps of two and four blocks with these numbers of all-reduces over the tensor axis, and two of scalars."""

    def make(folder: Path) -> None:
        for depth, count in zip((2, 4), sums, strict=True):
            path = folder / f"depth{depth}"
            fabricate.run_folder(path, strategies=("tensor",), scalings=("strong",), devices=(2,), rounds=1)
            edit(path, lambda line, count=count: _collective(line, count=count + 2, scalars=2, elements=100))

    return make


def zero(**sent: int) -> Make:
    """Bytes that a device sends, by strategy."""

    def make(folder: Path) -> None:
        fabricate.run_folder(folder / "volume", strategies=tuple(sent), scalings=("strong",), devices=(2,), rounds=1)
        edit(folder / "volume", lambda line: _collective(line, wire_bytes=sent[line["strategy"]], elements=100))

    return make


def state(factor: float) -> Make:
    """The model state of each stage on one and two devices, times a factor."""
    shared = {"jit_auto": (16, 0), "zero1": (4, 12), "zero2": (2, 14), "fsdp": (0, 16)}

    def make(folder: Path) -> None:
        kinds = dict(strategies=tuple(shared), scalings=("weak",), devices=(1, 2), rounds=1)
        fabricate.run_folder(folder / "zero", **kinds)

        def holds(line: dict[str, Any]) -> None:
            whole, split = shared[line["strategy"]]
            each = whole + split / line["devices"]
            line["facts"] = {
                "state_bytes": factor * each * line["compile_report"]["parameters"],
                "held_gradient_bytes": 0.0,
            }

        edit(folder / "zero", holds)

    return make


def frozen(share: float) -> Make:
    """A model with this share of the gradient's bytes in its dense layers."""
    shares = {"none": 1.0, "convolutions": share}.items()
    arms = [
        arm(0.01, freeze=name, compile_report={"expected_gradient_bytes": int(1e6 * each)}) for name, each in shares
    ]
    return lambda folder: fabricate_arms.lever_folder(folder / "freeze", arms, ["freeze"], devices=(2,), rounds=1)


def mixture(step_s: float, sent: float) -> Make:
    """Data parallelism with 10 ms per step, and a mixture with this time and this factor of its bytes."""

    def make(folder: Path) -> None:
        meshes = {"data=2": (0.010, 1e6), "tensor=2": (step_s, 1e6 * sent)}
        arms = [fabricate_arms.Made(levers={"mesh": mesh}, step_s=each_s) for mesh, (each_s, _) in meshes.items()]
        fabricate_arms.lever_folder(folder / "mixture", arms, ["mesh"], strategy="hybrid", devices=(2,), rounds=9)
        edit(folder / "mixture", lambda line: _collective(line, wire_bytes=int(meshes[line["levers"]["mesh"]][1])))

    return make


def buckets(each_s: float, fused_s: float) -> Make:
    times = {"each": each_s, "bucketed": 0.010, "fused": fused_s}
    arms = [fabricate_arms.Made(levers={"reduction": way}, step_s=step_s) for way, step_s in times.items()]
    return lambda folder: fabricate_arms.lever_folder(folder / "buckets", arms, ["reduction"], devices=(2,), rounds=9)


def overlap(communication: float) -> Make:
    """A step with this factor of communication; the communication is half as long as the rest."""
    losses = {2: fabricate_losses.Loss(communication=communication)}
    return lambda folder: fabricate_losses.folder(folder / "overlap", losses)


def kernels(share: float) -> Make:
    """One kernel at this share of the roof in the fabricated machine profile, 15 GB/s of two cores' memory."""
    case = fabricate_cases.stream("copy", 2**26, bytes_per_s=share * 1e10)
    facts = {"view": "stream", "machine": fabricate_cases.card()}
    return lambda folder: fabricate_cases.case_folder(folder / "kernels", [case], **facts)


def all_reduces(bend: float) -> Make:
    """All-reduces at alpha + S / beta, every second size slower by a factor of 1 + bend."""
    made = [
        fabricate_cases.collective("all_reduce", size, 2, call_s=(1e-5 + size / 1e9) * (1 + bend * (i % 2)))
        for i, size in enumerate(2**power for power in range(10, 25))
    ]
    return lambda folder: fabricate_cases.case_folder(folder / "machine" / "collectives", made, view="collectives")


def trainings(steps: Law, accuracy: Law = lambda batch: 0.97, *, noise_scale: float = 64.0) -> Make:
    """Five seeds per batch, from 8 to 1,024, which differ by one per cent."""

    def make(folder: Path) -> None:
        trained = []
        for batch in (8, 16, 32, 64, 128, 256, 512, 1024):
            for seed in range(5):
                many, right = steps(batch) * (1 + 0.005 * (seed - 2)), accuracy(batch) + 1e-4 * (seed - 2)
                # A hundred times the steps: they are whole numbers, and claims are about their ratios.
                trained += [
                    Trained(
                        model="mlp", batch=batch, devices=1, seed=seed, learning_rate=0.1, rule=rule, target=0.97,
                        steps=round(100 * many), reached=many < 1e6, diverged=None, accuracy=right, step_s=None,
                        noise=((10, 1.0, noise_scale),), folder="",
                    ) for rule in ("linear", "tuned")
                ]  # fmt: skip
        (folder / "targets").mkdir(parents=True)
        write_trained(folder / "targets", trained)

    return make


def edit(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the compile reports of a run."""
    fabricate.edit(run, lambda line: change(line) if line["kind"] == "point" else None)


def _collective(line: dict[str, Any], **facts: Any) -> None:
    line["compile_report"]["collectives"] = [{"kind": "all-reduce", "count": 1, "bytes": 400, **facts}]


def quadratic(batch: int) -> float:
    """Steps of a quadratic with a noise scale of 64: 100 (1 + 64 / batch)."""
    return 100 * (1 + 64 / batch)


def halving(batch: int) -> float:
    return 8e4 / batch


AMDAHL, USL = fabricate.amdahl(0.05), fabricate.usl(0.05, 0.002)


def jump(scaling: str, n: int) -> float:
    """A speed-up that fits no law: none up to four devices, full at eight."""
    return float(np.where(n == 8, 8.0, 1.0))


# By paper and claim: records for which it holds, and records for which it does not.
SIDES: dict[tuple[str, str], tuple[Make, Make]] = {
    ("chen2016", "square root"): (remat(exponent=0.5), remat(exponent=0.9)),
    ("chen2016", "thirty per cent"): (remat(sqrt_s=0.012), remat(sqrt_s=0.015)),
    ("chen2016", "selective"): (remat(saveable_s=0.010), remat(saveable_s=0.0125)),
    ("goyal2017", "efficiency"): (scaling("cnn", 0.98), scaling("cnn", 0.7)),
    ("goyal2017", "kept accuracy"): (trainings(halving), trainings(halving, lambda batch: 0.97 - 0.02 * (batch > 64))),
    ("goyal2017", "lost accuracy"): (trainings(halving, lambda batch: 0.97 - 0.02 * (batch > 256)), trainings(halving)),
    ("huang2019", "bubble"): (pipeline({"gpipe": 1 / 5}, "pipeline"), pipeline({"gpipe": 0.3}, "pipeline")),
    ("huang2019", "interleaving"): (
        pipeline({"1f1b": 1 / 5, "interleaved": 1 / 9}, "interleaved"),
        pipeline({"1f1b": 1 / 5, "interleaved": 1 / 5}, "interleaved"),
    ),
    ("krizhevsky2014", "dense parameters"): (frozen(0.95), frozen(0.4)),
    ("krizhevsky2014", "data parallelism alone"): (scaling("alexnet", 0.6), scaling("alexnet", 1.02)),
    ("krizhevsky2014", "less is sent"): (mixture(0.009, 0.4), mixture(0.009, 1.6)),
    ("krizhevsky2014", "hybrid"): (mixture(0.009, 0.4), mixture(0.011, 0.4)),
    ("li2020", "not one each"): (buckets(0.013, 0.01), buckets(0.008, 0.01)),
    ("li2020", "not one for all"): (buckets(0.01, 0.013), buckets(0.01, 0.008)),
    ("li2020", "overlap"): (overlap(0.95), overlap(0.68)),
    ("micikevicius2018", "same accuracy"): (precision(0.0), precision(3.0)),
    ("micikevicius2018", "gradients vanish"): (precision(0.0, unscaled=4.0), precision(0.0)),
    ("rajbhandari2020", "bytes"): (state(1.001), state(1.1)),
    ("rajbhandari2020", "volume of P_os"): (zero(jit_auto=100, zero1=100), zero(jit_auto=100, zero1=150)),
    ("rajbhandari2020", "volume of P_os+g"): (zero(jit_auto=100, zero2=101), zero(jit_auto=100, zero2=200)),
    ("rajbhandari2020", "volume of P_os+g+p"): (zero(jit_auto=100, fsdp=148), zero(jit_auto=100, fsdp=100)),
    ("sergeev2018", "resnet"): (scaling("resnet18", 0.98), scaling("resnet18", 0.7)),
    ("sergeev2018", "vgg below resnet"): (
        both(scaling("resnet18", 0.98), scaling("vgg16", 0.7)),
        both(scaling("resnet18", 0.7), scaling("vgg16", 0.98)),
    ),
    ("shallue2019", "perfect scaling"): (trainings(halving), trainings(lambda batch: 1000.0)),
    ("shallue2019", "no further gain"): (trainings(quadratic), trainings(halving)),
    ("shallue2019", "the knee"): (trainings(quadratic, noise_scale=64), trainings(quadratic, noise_scale=4000)),
    ("gptfast2023", "two devices"): (
        generated("one", fabricate_tokens.Law()),
        generated("one", fabricate_tokens.Law(latency_s=1e-3)),
    ),
    ("pope2022", "batch"): (generated("batches", fabricate_tokens.Law()), generated("batches", DEARER)),
    ("pope2022", "time of a token"): (
        generated("batches", fabricate_tokens.Law()),
        generated("batches", fabricate_tokens.Law(cache_s=-1e-4)),
    ),
    ("shoeybi2019", "weak scaling"): (scaling("weak", 0.95), scaling("weak", 0.5)),
    ("shoeybi2019", "all-reduces"): (depths(14, 22), depths(14, 26)),
    ("williams2009", "Williams"): (kernels(0.8), kernels(1.5)),
    ("williams2009", "Hockney"): (all_reduces(0.0), all_reduces(3.0)),
    ("williams2009", "Amdahl"): (follows(AMDAHL, "strong"), follows(jump, "strong")),
    ("williams2009", "Gustafson"): (follows(AMDAHL, "weak"), follows(jump, "weak")),
    ("williams2009", "Gunther"): (follows(USL, "strong"), follows(jump, "strong")),
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


def told(outcome: str, said: str = "") -> dict[str, dict[str, str]]:
    return {"cnn": {"outcome": outcome, "said": said}}


REASONS: dict[str, tuple[str, Make, dict[str, Any], str, str]] = {
    # A killed run may have left some of its points, even enough for a number.
    **{
        outcome: ("goyal2017 efficiency", scaling("cnn", 0.98), told(outcome), NOT_MEASURED, "same command continues")
        for outcome in ("not yet", "stopped", "broken")
    },
    "refused": (
        "goyal2017 efficiency", lambda folder: None, told("refused", "It needs two devices."), NOT_TESTABLE,
        "It needs two devices.",
    ),
    "oversubscribed": ("goyal2017 efficiency", scaling("cnn", 0.5, cores=1), {}, NOT_TESTABLE, "cores"),
    "a law of two points": (
        "williams2009 Amdahl", scaling("scaling", 0.9, "strong"), {}, NOT_TESTABLE, "Amdahl needs 3"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REASONS)
def test_a_claim_that_cannot_be_judged_says_why(name: str, tmp_path: Path) -> None:
    which, make, runs, verdict, said = REASONS[name]
    make(tmp_path)
    found = judged(CLAIMS[tuple(which.split())], Evidence(tmp_path, runs))  # type: ignore[index]
    assert found["verdict"] == verdict and said in found["why"]


def test_a_busy_machine_leaves_open_how_much_of_a_sum_is_hidden(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    row = SimpleNamespace(point=SimpleNamespace(strategy="shard_map", scaling="weak", devices=2))
    busy = waterfall.Withheld(row, "this machine was busy: other processes took 60 % of its CPUs", busy=True)
    training = SimpleNamespace(waterfalls=[], withheld=[busy])
    monkeypatch.setattr(Evidence, "training", lambda self, run: training)
    found = judged(CLAIMS["li2020", "overlap"], Evidence(tmp_path))
    assert found["verdict"] == CANNOT_TELL and "other processes took 60 %" in found["why"]
    training.withheld = []
    assert judged(CLAIMS["li2020", "overlap"], Evidence(tmp_path))["verdict"] == NOT_TESTABLE


@pytest.mark.parametrize("claim", ["kept accuracy", "lost accuracy"])
@pytest.mark.parametrize("how", ["chance", "loss not finite", "unknown accuracy"])
def test_a_diverged_training_is_evidence_of_nothing(claim: str, how: str, tmp_path: Path) -> None:
    """At 90 % error a network has learnt nothing because of its learning rate; this says nothing about its batch."""
    trainings(halving, lambda batch: 0.1 if how == "chance" and batch > 64 else 0.97)(tmp_path)
    changes = {"chance": {}, "loss not finite": {"diverged": 17}, "unknown accuracy": {"accuracy": None}}[how]
    trained = read_trained(tmp_path / "targets")
    large = [dataclasses.replace(one, **changes) if one.batch in (256, 1024) else one for one in trained]
    write_trained(tmp_path / "targets", large)
    found = judged(CLAIMS["goyal2017", claim], Evidence(tmp_path))
    assert found["verdict"] == DIVERGED and found["value"] is None
    assert f"5 of 5 trainings at batch {256 if claim == 'kept accuracy' else 1024} diverged" in found["why"]


def test_a_diverged_training_is_crossed_out_in_the_figure(tmp_path: Path) -> None:
    trainings(halving, lambda batch: 0.1 if batch > 256 else 0.97)(tmp_path)
    (found,) = series.make(library.load("goyal2017").panels[0].measured[0], Evidence(tmp_path))
    assert {int(mark.at) for mark in found.marks if mark.state == "refused"} == {512, 1024}
    assert "diverged" in found.crosses


@pytest.mark.parametrize("id", library.names())
def test_a_figure_names_the_measured_quantity_and_no_verdict(id: str, tmp_path: Path) -> None:
    """It cannot contradict the claims, which stand in the table below it."""
    found, paper = Evidence(tmp_path), library.load(id)
    with canvas.style():
        drawn = figure.draw(paper, figure.of_runs(paper, found))
    text = " ".join(" ".join(each.get_text().split()) for each in drawn.findobj(Text))
    assert canvas.is_empty(drawn) or paper.title in text
    assert not any(verdict in text for verdict in (HOLDS, FAILS, CANNOT_TELL))


@pytest.mark.parametrize("id", ["goyal2017", "williams2009"])
def test_a_figure_is_drawn_again_from_its_data_alone(id: str, tmp_path: Path) -> None:
    trainings(halving, lambda batch: 0.1 if batch > 256 else 0.97)(tmp_path)
    both(kernels(0.8), all_reduces(0.0), follows(AMDAHL, "strong"))(tmp_path)
    paper = library.load(id)
    figure.write(paper, Evidence(tmp_path))
    again, data = figure.read(tmp_path / figure.FOLDER / f"{figure.NAME}.json")
    assert again == id and any(panel.series for panel in data)
    assert all(panel.series or panel.why_not for panel in data)
    files = canvas.render(lambda: figure.draw(paper, data))
    assert files["svg"] == (tmp_path / figure.FOLDER / f"{figure.NAME}.svg").read_bytes()


def test_a_symbol_has_one_meaning_in_all_panels(tmp_path: Path) -> None:
    both(kernels(0.8), all_reduces(0.0), follows(AMDAHL, "strong"))(tmp_path)
    paper, found = library.load("williams2009"), Evidence(tmp_path)
    with canvas.style():
        drawn = figure.draw(paper, figure.of_runs(paper, found))
    handles = drawn.legends[0].legend_handles
    styles = {(str(line.get_color()), line.get_marker(), str(line._unscaled_dash_pattern)) for line in handles}
    assert len(styles) == len(handles) > 3


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


def test_limits_in_words_and_why_names_the_one_that_the_interval_contains() -> None:
    wide = Estimate(value=1.0, lo=0.85, hi=1.05)
    assert "0.9" in why_undecided(wide, 0.9, math.inf) and "no interval" in why_undecided(Estimate(value=1.0), 0.9, 1.1)

    def claim(**limits: float) -> str:
        return Claim(name="", sentence="", source="", quantity="", read={}, here="", **limits).limit

    assert [claim(low=0.9), claim(high=2), claim(low=1, high=3), claim(low=4, high=4)] == [
        "at least 0.9", "at most 2", "between 1 and 3", "4"
    ]  # fmt: skip


def test_the_knee_of_a_quadratic_is_its_noise_scale_and_a_missed_target_has_no_steps(tmp_path: Path) -> None:
    trainings(quadratic)(tmp_path)
    knee = paper.trainings(Evidence(tmp_path), "linear").knee()
    assert knee.lo <= 64 <= knee.hi or abs(knee.value / 64 - 1) < 0.01
    trainings(lambda batch: 1e7 if batch == 1024 else 100.0)(tmp_path / "missed")
    found = paper.trainings(Evidence(tmp_path / "missed"), "linear")
    assert 1024 in found.accuracy and 1024 not in found.steps and 512 in found.steps


def test_welch_and_student_equal_known_intervals() -> None:
    """The quantiles of Student's distribution are those of a printed table: 2.776 at 4, 2.447 at 6, 2.365 at 7."""
    one, other = np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 3, 4, 5, 9])
    assert student(one).lo == pytest.approx(3 - 2.776 * math.sqrt(2.5 / 5), rel=1e-3)
    found = readers.difference(one, other)
    df = (2.5 / 5 + 7.3 / 5) ** 2 / ((2.5 / 5) ** 2 / 4 + (7.3 / 5) ** 2 / 4)
    assert found.value == pytest.approx(-1.6) and 6 < df < 7
    assert 2.365 * 1.4 < found.hi - found.value < 2.447 * 1.4


# A paper's command with fake runs: which runs it starts, continues and stores; its page, and the gallery.


ID = "shoeybi2019"
SCRIPT = "<script>alert(1)</script>"
MAKE = {"weak": scaling("weak", 0.95), "depth2": depths(14, 22)}


class Stand:
    """Replaces the start of commands: writes their folders. fails: other outcomes, by run."""

    def __init__(self, **fails: Any):
        self.asked, self.fails = list[str](), fails

    def launch(self, words: tuple[str, ...], log: Path, limit_s: float) -> Ended:
        folder = Path(words[-1].removeprefix("--workdir="))
        self.asked.append(folder.name)
        becomes = self.fails.get(folder.name, Ended(0, "fine"))
        if isinstance(becomes, KeyboardInterrupt):
            raise becomes
        if becomes.code == 0 and folder.name in MAKE:
            MAKE[folder.name](folder.parent)
        return becomes


def run(folder: Path, stand: Stand, id: str = ID, preset: str = "auto") -> tuple[bool, str]:
    console = Console(file=io.StringIO(), width=200)
    ok = session.paper(id, preset, folder, console, launch=stand.launch, clock=lambda: 0.0)
    return ok, console.file.getvalue()  # type: ignore[attr-defined]


def test_it_runs_what_is_missing_and_judges_every_claim(tmp_path: Path) -> None:
    stand = Stand()
    ok, said = run(tmp_path, stand)
    assert ok and stand.asked == ["weak", "depth2", "depth4"] and said.count("holds here") == 2
    found = page.read(tmp_path / page.DOCUMENT)
    assert [claim["verdict"] for claim in found["claims"]] == ["holds here", "holds here"]
    assert (tmp_path / "paper.html").is_file() and (tmp_path / "figures" / "paper.svg").is_file()
    assert list(jb.load(tmp_path).table["verdict"]) == ["holds here", "holds here"]
    again = Stand()
    assert run(tmp_path, again)[0] and not again.asked


def test_an_interrupt_leaves_a_page_and_the_same_command_continues(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Stand(depth2=KeyboardInterrupt()))
    found = page.read(tmp_path / page.DOCUMENT)
    outcomes = {name: about["outcome"] for name, about in found["runs"].items()}
    assert outcomes == {"weak": "done", "depth2": "stopped", "depth4": "not yet"}
    assert [claim["verdict"] for claim in found["claims"]] == ["holds here", "not measured yet"]
    assert "was interrupted" in found["claims"][1]["why"] and (tmp_path / "paper.html").is_file()
    more = Stand()
    assert run(tmp_path, more)[0] and more.asked == ["depth2", "depth4"]


def test_a_broken_run_is_said_escaped_and_tried_again(tmp_path: Path) -> None:
    ok, said = run(tmp_path, Stand(weak=Ended(-6, SCRIPT)))
    assert not ok and "broken" in said
    text = (tmp_path / "paper.html").read_text()
    assert SCRIPT not in text and "&lt;script&gt;" in text
    assert run(tmp_path, stand := Stand())[0] and stand.asked == ["weak"]


def test_a_run_that_this_version_lacks_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {name: path for name, path in discovery.experiments().items() if name != "time_to_target"}
    monkeypatch.setattr(discovery, "experiments", lambda: known)
    stand = Stand()
    ok, said = run(tmp_path, stand, "shallue2019")
    assert ok and not stand.asked and "no experiment 'time_to_target'" in said and "not testable here" in said


def test_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no paper 'goyal': .*goyal2017"):
        run(tmp_path, Stand(), "goyal")
    with pytest.raises(UserError, match="--preset=smoke is not a size of a paper"):
        run(tmp_path, Stand(), preset="smoke")
    (tmp_path / page.DOCUMENT).write_text("{}")
    with pytest.raises(UserError, match="not a jaxbench paper of this version"):
        run(tmp_path, Stand())
    (tmp_path / page.DOCUMENT).unlink()
    run(tmp_path, Stand())
    with pytest.raises(UserError, match="holds id 'shoeybi2019', not 'li2020'"):
        run(tmp_path, Stand(), "li2020")
    with lock_folder(tmp_path), pytest.raises(UserError):
        run(tmp_path, Stand())
    with pytest.raises(UserError, match="has no paper yet"):
        page.gallery(tmp_path / "none", Console(file=io.StringIO()))


def test_damaged_trainings_are_a_sentence(tmp_path: Path) -> None:
    trainings(halving)(tmp_path)
    lines = tmp_path / "targets" / "targets.jsonl"
    lines.write_text(lines.read_text().replace("accuracy", "other"))
    claim = library.load("goyal2017").claims[1]
    found = session.judged(claim, Evidence(tmp_path))
    assert "line 1 is damaged (no field 'accuracy')" in found["why"]


def test_the_gallery_has_every_paper_and_escapes_what_runs_say(tmp_path: Path, every_format: None) -> None:
    folder, docs = tmp_path / "papers", tmp_path / "docs"
    docs.mkdir()
    run(folder / ID, Stand())
    run(folder / "li2020", Stand(buckets=Ended(-6, SCRIPT), overlap=Ended(-6, SCRIPT)), "li2020")
    console = Console(file=io.StringIO(), width=200)
    page.gallery(folder, console, docs)
    text = (folder / page.GALLERY).read_text()
    assert all(f'id="{id}"' in text for id in (ID, "li2020"))
    assert not any(words in text for words in (SCRIPT, "http:", "https:"))
    text = (docs / page.MARKDOWN).read_text()
    assert all(
        words in text for words in (f"jaxbench paper {ID}", "2 hold here", f"| {ID} |", "what two cores can show")
    )
    assert all((docs / page.GALLERY_FIGURES / f"{ID}.{suffix}").is_file() for suffix in ("png", "json"))


def test_a_gallery_of_other_papers_keeps_what_the_documentation_has(tmp_path: Path, every_format: None) -> None:
    """A machine seldom has the time for all papers at once."""
    docs, both, one = tmp_path / "docs", tmp_path / "both", tmp_path / "one"
    docs.mkdir()
    for id in (ID, "li2020"):
        run(both / id, Stand(), id)
    page.gallery(both, Console(file=io.StringIO()), docs)
    first = (docs / page.MARKDOWN).read_text()
    page.gallery(both, Console(file=io.StringIO()), docs)
    assert (docs / page.MARKDOWN).read_text() == first
    run(one / ID, Stand(weak=Ended(1, "not today")))
    page.gallery(one, Console(file=io.StringIO()), docs)
    old, new = first.split("\n## "), (docs / page.MARKDOWN).read_text().split("\n## ")
    differing = [before.partition(":")[0] for before, after in zip(old[1:], new[1:], strict=True) if before != after]
    assert differing == [ID] and new[0] != old[0]
    assert [line for line in old[0].splitlines() if "li2020" in line] == [
        line for line in new[0].splitlines() if "li2020" in line
    ]


def test_the_gallery_leaves_the_documentation_alone_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every_format: None
) -> None:
    """Files in results/ must not overwrite a tracked file."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / page.MARKDOWN).write_text("kept\n")
    monkeypatch.chdir(tmp_path)
    folder = Path("results") / "papers"
    run(folder / ID, Stand())
    page.gallery(folder, Console(file=io.StringIO()))
    assert (tmp_path / "docs" / page.MARKDOWN).read_text() == "kept\n"
    assert (folder / page.MARKDOWN).is_file() and (folder / page.GALLERY_FIGURES / f"{ID}.png").is_file()


def test_a_log_says_which_run_is_under_way_and_what_it_said_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENT_S", 0.02)
    console = Console(file=io.StringIO(), width=200)

    def launch(words: tuple[str, ...], log: Path, limit_s: float) -> Ended:
        log.parent.mkdir(exist_ok=True)
        log.write_text("jit/strong/2: prepared in 3 s, about 40 s left\n")
        until = time.monotonic() + 10
        while f"{log.stem}: jit/strong/2: prepared" not in console.file.getvalue():  # type: ignore[attr-defined]
            assert time.monotonic() < until
            time.sleep(0.01)
        return Ended(1, "fine")

    session.paper(ID, "auto", tmp_path, console, launch=launch)
    assert "run 1 of 3, weak: jit/strong/2: prepared in 3 s, about 40 s left" in console.file.getvalue()  # type: ignore[attr-defined]


SIZES = [(id, size) for size in session.PRESETS for id in library.names()]


@pytest.mark.parametrize(("id", "size"), thin(SIZES, [each for each in SIZES if each[1] == "auto"]))
def test_every_command_of_a_paper_is_one_of_the_suite(id: str, size: str) -> None:
    """The experiment, the preset and every setting exist, the points can be planned, and the model can be built."""
    paper = library.load(id)
    assert paper.id == id and len({run.name for run in paper.runs}) == len(paper.runs)
    for words in {run.at(size) for run in paper.runs}:
        if words == ("machine",) or words[1] not in discovery.experiments():
            assert words in (("machine",), ("run", "time_to_target"))
            continue
        preset = next((word.partition("=")[2] for word in words if word.startswith("--preset=")), "auto")
        config = config_lib.compose(words[1], discovery.load_experiment(words[1]), discovery.load_preset(preset))
        config_lib.check_overrides([word for word in words if word.startswith("--config.")], config)
        if "measures" in config:
            continue
        pairs = (word.removeprefix("--config.").partition("=") for word in words if word.startswith("--config."))
        with config.unlocked():
            config.update_from_flattened_dict({name: literal(config, name, text) for name, _, text in pairs})
        assert points_of(config)
        jax.eval_shape(discovery.build(words[1], config).init, KEY)


def literal(config: ConfigDict, name: str, text: str) -> Any:
    """The value that the command line parses from a setting's text."""
    group, _, last = name.rpartition(".")
    kind = (config[group] if group else config).get_type(last)
    return kind(json.loads(text.lower())) if kind in (int, float, bool) else text


def test_the_document_is_strict_json(tmp_path: Path) -> None:
    scaling("weak", 0.95, rounds=2)(tmp_path)  # too few for an efficiency
    claim = library.load(ID).claims[0]
    found = session.judged(claim, Evidence(tmp_path))
    assert json.loads(json.dumps(found, allow_nan=False))["verdict"] == "not testable here" and found["lo"] is None
