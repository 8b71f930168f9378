# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A record of a user's step says what the compiled step does, and refuses what contradicts its name."""

from __future__ import annotations

import jax
import pytest
from experiment_cases import contradiction
from ml_collections import ConfigDict
from own_steps import lies

from jaxbench import levers
from jaxbench.analysis.step_work import sentences
from jaxbench.core.point import Point
from jaxbench.core.schema import PointRecord
from jaxbench.features.own_step import recipe, requests, settle
from jaxbench.features.own_step.recipe import OwnBench
from jaxbench.levers import DEFAULTS
from jaxbench.workloads.own_step import StepWorkload


def prepared(workload: StepWorkload, devices: int, monkeypatch: pytest.MonkeyPatch) -> tuple[OwnBench, PointRecord]:
    monkeypatch.setattr(settle, "load", lambda config, experiment: workload)
    config = ConfigDict({"seed": 0, "experiment": "mine", "lever": levers.defaults().to_dict(), "weak": "batch"})
    config.measure = {"blocks": 1, "block_s": 0.001, "gradients": False, "train_steps": 0, "rounds": 2, "processes": 1}
    bench = recipe.bench(config.to_dict(), "mine", jax.devices()[:devices], "test")
    point = Point(
        point=f"own/strong/{devices}", strategy="own", scaling="strong", devices=devices, global_batch=workload.batch,
        oversubscribed=True, platform="cpu", levers=dict(DEFAULTS),
    )  # fmt: skip
    return bench, bench.prepare(point.to_json(), paced=False)


SENTENCES = {
    "right": [],
    "every_second": ["parameters changed in 4 of 8 steps: the time is a mean of two kinds of steps"],
    "bfloat16": ["the step has bfloat16 products"],
    "still": ["1 of 2 parameter arrays, 81.6 % of the parameters, never changed: still"],
    "labels_alone": ["the field x of the batch has no effect on the loss and its gradient"],
}


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("how", SENTENCES)
def test_a_step_that_does_less_says_so_and_stays_right(how, devices, monkeypatch):
    bench, record = prepared(lies.workload(how), devices, monkeypatch)
    assert sentences(record.work, record.levers) == SENTENCES[how]
    assert not [check for check in record.checks if not check.ok and not check.unchecked]
    assert not contradiction(record)
    assert record.work == bench.steps.work(bench.prepared[record.point], {})


def test_a_step_that_closes_over_its_data_is_refused(monkeypatch):
    bench, record = prepared(lies.workload("closed"), 2, monkeypatch)
    (wrong,) = (check for check in record.checks if not check.ok and not check.unchecked)
    assert wrong.name == "batch" and wrong.reason.startswith("the step does not depend on its batch")
    tried = requests.explain(bench, bench.prepared[record.point].point.to_json())
    assert wrong in tried.checks, "jaxbench try asks the same"


@pytest.mark.parametrize(("factor", "devices"), [(2, 1), (2, 2), (0.5, 1), (1.1, 1)])
def test_a_formula_of_other_products_is_refused(factor, devices, monkeypatch):
    _, record = prepared(lies.workload(flops=factor * lies.FORMULA), devices, monkeypatch)
    stated, counted = f"{factor * lies.FORMULA:,.0f}", f"{lies.FORMULA:,.0f}"
    assert contradiction(record) == f"states {stated} FLOPs per example, the compiled step has {counted}"


def test_without_a_formula_the_count_is_stated(monkeypatch):
    _, record = prepared(lies.workload(flops=None), 1, monkeypatch)
    assert record.compile_report.flops_per_step == lies.BATCH * lies.FORMULA and not contradiction(record)
