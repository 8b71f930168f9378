# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What is stated of a step against what was counted in it, and the sentences of a row and of a headline."""

from __future__ import annotations

import csv
import dataclasses
import io

import fabricate
import fabricate_cases
import pytest

from jaxbench.analysis import gates
from jaxbench.analysis.step_work import Stated, products, sentences
from jaxbench.core import schema
from jaxbench.core.schema import StepWork
from jaxbench.core.store import RunFolder
from jaxbench.levers import DEFAULTS
from jaxbench.report import run_report

BATCH = 256
STATED = fabricate.compile_report().flops_per_step


def work(flops: float = STATED, **changes: object) -> StepWork:
    return StepWork(
        **{"product_flops": {"float32": flops}, "all_products_counted": True, "model_flops": flops, **changes}
    )


def contradiction(counted: StepWork | None, *, devices: int = 1, beyond: float = 0.0) -> str | None:
    return Stated(STATED, BATCH, devices, beyond).contradiction(counted)


def test_a_formula_may_differ_by_a_few_percent():
    for factor in (0.97, 1.0, 1.03):
        assert contradiction(work(factor * STATED)) == ""


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 2.0])
def test_a_formula_that_differs_is_refused_in_both_directions(factor):
    reason = contradiction(work(factor * STATED))
    each, found = (f"{flops / BATCH:,.0f}" for flops in (STATED, factor * STATED))
    what = "the compiled step has" if factor < 1 else "the products of the model have"
    assert reason == f"states {each} FLOPs per example, {what} {found}"


def test_a_step_may_have_more_products_than_its_model():
    """Recomputation, padding, and layers that each device computes again."""
    more = work(product_flops={"float32": 3 * STATED})
    assert contradiction(more) == ""
    assert contradiction(more, devices=4) == ""


def test_a_formula_may_leave_out_what_it_names():
    half = work(1.5 * STATED)
    assert contradiction(half) != ""
    assert contradiction(half, beyond=0.5 * STATED / BATCH) == ""


def test_a_text_may_lack_products_with_vectors_only():
    less = work(model_flops=STATED, product_flops={"float32": 0.4 * STATED})
    assert "the compiled step has" in contradiction(less)
    assert contradiction(dataclasses.replace(less, vector_flops=0.6 * STATED)) == ""


def test_an_own_step_has_no_model_to_count():
    more = work(2 * STATED, model_flops=None)
    assert contradiction(more) == "states 12,500,000 FLOPs per example, the compiled step has 25,000,000"
    assert contradiction(dataclasses.replace(more, recomputes=True)) == ""
    assert contradiction(more, devices=2) == "", "a device may repeat another's products"
    assert contradiction(work(STATED / 2, model_flops=None), devices=2) != ""


@pytest.mark.parametrize("counted", [None, StepWork(), work(model_flops=None, all_products_counted=False)])
def test_what_cannot_be_counted_contradicts_nothing(counted):
    assert contradiction(counted) is None


def test_the_gate_of_a_run_refuses_and_the_first_line_says_so(tmp_path):
    run = fabricate.run_folder(tmp_path / "run", devices=(1, 2), work=work(STATED / 2))
    report = run_report.find(RunFolder(run))
    assert {row.gate for row in report.rows} == {"refused"}
    assert all(gates.impossible(row.gates) for row in report.rows)
    assert "states 12,500,000 FLOPs per example, the compiled step has 6,250,000" in " ".join(report.shortfalls())


def test_an_opaque_kernel_keeps_the_wide_limit(tmp_path):
    """Both counts of the text are used then: the formula may exceed them by 2."""
    unknown = StepWork(product_flops={"float32": STATED / 4})
    run = fabricate.run_folder(tmp_path / "run", devices=(1,), work=unknown)
    assert {row.gate for row in run_report.find(RunFolder(run)).rows} == {"passed"}


def test_sentences():
    assert (
        sentences(None)
        == sentences(work(steps=8, changing_steps=8, first_change=1, last_change=8, moved_share=0.9))
        == []
    )
    assert sentences(work(steps=8, changing_steps=4, first_change=1, last_change=7)) == [
        "parameters changed in 4 of 8 steps: the time is a mean of two kinds of steps"
    ]
    assert sentences(work(steps=8, changing_steps=7, first_change=2, last_change=8)) == [], "a warm-up"
    assert sentences(work(steps=8, changing_steps=1, first_change=5, last_change=5)) == [
        "parameters changed in 1 of 8 steps: the time is a mean of two kinds of steps"
    ]
    assert sentences(work(steps=8, changing_steps=3, first_change=1, last_change=3)) == [
        "parameters changed in the first 3 of 8 steps only"
    ]
    assert sentences(work(steps=48, changing_steps=0)) == ["no parameter changed in 48 steps"]
    still = work(parameter_arrays=6, still_arrays=("w1", "w2", "w3"), still_share=0.9939, moved_share=0.006)
    assert sentences(still) == ["3 of 6 parameter arrays, 99.4 % of the parameters, never changed: w1, w2, w3"]
    assert sentences(work(steps=8, changing_steps=8, first_change=1, last_change=8, moved_share=0.04)) == [
        "96.0 % of the parameters never changed in 8 steps"
    ]
    assert sentences(work(frozen_arrays=2, frozen_share=0.5)) == [
        "the lever freeze holds 2 parameter arrays, 50.0 % of the parameters"
    ]
    assert sentences(work(idle_fields=("x",))) == [
        "the field x of the batch has no effect on the loss and its gradient"
    ]
    assert sentences(work(examples=64, examples_with_gradient=32)) == ["at least 32 of 64 examples have no gradient"]


@pytest.mark.parametrize(
    ("formats", "precision", "text"),
    [
        ({"float32": 1}, "default", ""),
        ({"bfloat16": 1}, "default", "bfloat16 products"),
        ({"bfloat16": 1}, "bfloat16", ""),
        ({"float32": 1}, "tf32", ""),
        ({"bfloat16": 95, "float32": 5}, "default", "bfloat16 products"),
        ({"bfloat16": 60, "float32": 40}, "default", "60 % bfloat16 and 40 % float32 products"),
        ({"float32": 96, "bfloat16": 4}, "default", ""),
        ({"float32": 1}, "bfloat16", "float32 products"),
        ({"bfloat16": 85, "float32": 15}, "bfloat16", ""),
        ({"int8": 1}, "default", "int8 products"),
        ({}, "default", ""),
    ],
)
def test_the_number_formats_that_a_reader_would_not_expect(formats, precision, text):
    counted = work(product_flops={dtype: float(part) for dtype, part in formats.items()})
    assert products(counted, {**DEFAULTS, "precision": precision}) == text


def test_the_row_and_the_headline_say_it_and_the_peak_is_that_of_the_products(tmp_path):
    counted = work(
        product_flops={"bfloat16": STATED}, steps=8, changing_steps=4, first_change=1, last_change=7, idle_fields=("x",)
    )
    gpu = {"platform": "gpu", "device_kind": "NVIDIA H200"}
    run = fabricate.run_folder(tmp_path / "run", devices=(1, 2), work=counted, **gpu)
    fabricate.edit(run, lambda line: line.update(levers=dict(DEFAULTS)) if line["kind"] == "point" else None)
    report = run_report.find(RunFolder(run))
    said = " ".join(report.headlines)
    for sentence in (
        "parameters changed in 4 of 8 steps",
        "the step has bfloat16 products",
        "the field x of the batch",
    ):
        assert sentence in said
        assert all(any(sentence in note for note in row.notes) for row in report.rows)
    cells = next(csv.DictReader(io.StringIO(report.csv())))
    assert cells["precision"] == "bfloat16 products"
    assert all("bf16" in row.use.note for row in report.rows), "the peak of the config's float32 is another column"


def test_an_older_record_reads_as_unknown(tmp_path):
    line = schema.to_json(fabricate.point_record())
    del line["work"]
    assert schema.from_json(line).work is None


@pytest.mark.parametrize(("factor", "gate"), [(1.0, "passed"), (2.0, "refused"), (0.5, "refused")])
def test_a_kernel_is_held_to_its_products(factor, gate, tmp_path):
    counted = 2.0 * 64**3
    held = StepWork(product_flops={"float32": counted}, all_products_counted=True)
    about = {"flops": factor * counted, "compiler_flops": 1.01 * counted, "calls_library": False, "work": held}
    made = fabricate_cases.matmul(64, call_s=1e-3, **about)
    (row,) = run_report.find(RunFolder(fabricate_cases.case_folder(tmp_path / "run", [made]))).rows
    (answer,) = (each for each in row.gates if each.name == gates.FLOPS_DONE)
    assert answer.passed is (gate == "passed") and answer.certain is (gate == "refused")
    assert ("FLOPs per call" in answer.reason) is (gate == "refused")
