# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Real tokens from the text to the report: measurement, training and display of padded and packed documents."""

from __future__ import annotations

import dataclasses
import io
import math
from functools import partial
from pathlib import Path
from typing import Any

import fabricate
import jax
import numpy as np
import optax
import pandas as pd
import pytest
from experiment_cases import composed, measure
from ml_collections import ConfigDict
from workload_cases import KEY, experiment_workload

from jaxbench.analysis import points, run_rows
from jaxbench.analysis.run_rows import Row
from jaxbench.core.store import RunFolder
from jaxbench.features.training import metrics
from jaxbench.report import columns, run_report, table
from jaxbench.report.sentences import token_sentences
from jaxbench.workloads import from_nnx
from jaxbench.workloads.models import gpt

CONTEXT = 64


@pytest.fixture(scope="module", autouse=True)
def few_bytes() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxbench.workloads.data.text.LANGUAGE_BYTES", 400_000)
        yield


@pytest.mark.full
@pytest.mark.parametrize("pad", ["padded", "packed"])
def test_a_measured_step_says_its_share_which_is_the_texts(pad: str) -> None:
    changes = {"data.pad": pad, "model.context": CONTEXT}
    config = composed("gpt", **changes, **{"mesh.devices": "2", "scaling": "strong", "strategy": "jit_auto"})
    (record,) = measure("gpt", config)
    share = experiment_workload("gpt", **changes).data().train["real"].mean()
    assert record.facts["tokens"] == CONTEXT and record.facts["real_share"] == pytest.approx(share, abs=0.03)


def test_training_weighs_each_real_token_of_the_test_set_once(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = experiment_workload("gpt", **{"data.pad": "padded", "model.context": CONTEXT})
    monkeypatch.setattr(metrics, "CHUNK", 200)
    test = {name: array[:500] for name, array in workload.data().test.items()}
    params, _ = workload.init(KEY)
    found = metrics.Evaluator(workload, test, params=params, model_state={}, device=jax.devices()[0])(params, {})

    shape = ConfigDict({"preset": "tiny", "layers": 2, "width": 16, "heads": 2, "context": CONTEXT})
    model, given = from_nnx(partial(gpt.GPT, shape)), test["tokens"][:, :-1]
    logits = jax.jit(lambda given: model.apply(params, {}, given, KEY)[0])(given)
    each = np.asarray(optax.softmax_cross_entropy_with_integer_labels(logits, test["tokens"][:, 1:]))
    hits = np.argmax(np.asarray(logits), -1) == test["tokens"][:, 1:]
    assert found["loss"] == pytest.approx(np.sum(each * test["real"]) / np.sum(test["real"]), rel=1e-5)
    assert found["accuracy"] == np.sum(hits * test["real"]) / np.sum(test["real"])


def rows(path: Path, **facts: float) -> list[Row]:
    """Two devices are twice as fast as one, which takes 12.8 ms for 256 examples."""
    law = lambda scaling, n: n  # noqa: E731
    fabricate.run_folder(path, law=law, scalings=("strong",), devices=(1, 2), base_step_s=0.0128, noise=0, drift=0)
    made = points.load(RunFolder(path))
    edited = [dataclasses.replace(p, record=dataclasses.replace(p.record, facts=facts)) for p in made]
    return run_rows.analyse(edited, config={})


def summary_of(rows: list[Row]) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(table.to_csv(columns.FILE, rows)))


def test_the_report_has_real_tokens_and_all_tokens(tmp_path: Path) -> None:
    made = rows(tmp_path, tokens=8.0, real_share=0.25)
    (said,) = token_sentences(made)
    assert (
        said == "shard_map strong: 40.0k real of 160k tokens/s (25 %) on 1 device; 80.0k real of 320k tokens/s "
        "(25 %) on 2 devices."
    )
    csv = summary_of(made)
    assert list(csv.tokens_per_s) == pytest.approx([160_000, 320_000])
    assert list(csv.real_tokens_per_s) == pytest.approx([40_000, 80_000]) and list(csv.real_share) == [0.25, 0.25]


def test_without_weights_all_tokens_are_said_and_no_real_ones(tmp_path: Path) -> None:
    made = rows(tmp_path, tokens=8.0)
    assert not token_sentences(made) and math.isnan(made[0].tokens_per_s * made[0].real_share)
    csv = summary_of(made)
    assert list(csv.tokens_per_s) == pytest.approx([160_000, 320_000]) and csv.real_tokens_per_s.isna().all()
    headings = [section.heading for section in run_report.find(RunFolder(tmp_path)).sections()]
    assert "Real tokens" not in headings and summary_of(rows(tmp_path)).tokens_per_s.isna().all()
