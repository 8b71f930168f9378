# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts of generation against published times, and the advice that follows from them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.catalog import hardware
from jaxbench.catalog import published as published_tables
from jaxbench.errors import UserError, present
from jaxbench.features.decode import absent, cost_model
from jaxbench.features.decode.cost_model import Model, TokenForecast


def published(name: str) -> list[tuple[float, TokenForecast]]:
    """(the measured seconds of a token, its forecast) of each row."""
    found = []
    for row in published_tables.read(name).frame.astype(str).to_dict("records"):
        layers, width, heads, head = (int(row[each]) for each in ("layers", "width", "kv_heads", "head_width"))
        model = Model(
            products=float(row["products"]),
            stored=float(row["stored"]),
            layers=layers,
            width=width,
            kv_heads=heads,
            place_bytes=2.0 * layers * heads * head * 2,
            weights=row["weights"],
        )
        peak, batch = present(hardware.find(row["device"])), int(row["batch"])
        made = cost_model.forecast(model, peak, int(row["devices"]), batch, int(row["context"]), prompt=128)
        found.append((float(row["tpot_s"]), made))
    return found


def test_plain_programs_are_forecast_within_the_goals() -> None:
    found = published("decode_gpt_fast")
    errors = [abs(made.tpot_s / measured - 1) for measured, made in found]
    assert np.median(errors) <= 0.12
    inside = [made.low_s <= measured <= made.high_s for measured, made in found]
    assert sum(inside) >= 0.9 * len(inside)
    assert max(made.high_s / made.low_s for _, made in found) <= 1.4
    assert all(made.fits for _, made in found)


@pytest.mark.parametrize("name", ["decode_gpt_fast", "decode_sglang_jax"])
def test_no_published_time_beats_the_bound_or_does_not_fit(name: str) -> None:
    for measured, made in published(name):
        assert made.bound_s <= measured
        # An engine queues what does not fit: one row has more requests than its devices can hold.
        assert made.fits or made.needed_bytes > made.memory_bytes / (1 - cost_model.RESERVED), (name, made)


def test_engines_on_tpus_are_within_their_wide_band() -> None:
    assert all(made.low_s <= measured <= made.high_s for measured, made in published("decode_sglang_jax"))


def composed(**changes: object) -> ConfigDict:
    config = config_lib.compose("decode", discovery.load_experiment("decode"), discovery.load_preset("auto"))
    with config.unlocked():
        config.update_from_flattened_dict({"model.preset": "8b", "lever.batch": "0", **changes})
    return config


def test_the_bound_is_that_of_the_scaling_book() -> None:
    """LLaMA-2-13B on 8 TPU v5e with 8,192 places: 4.98 ms for one request, 20.3 ms for 16."""
    peak = present(hardware.find("TPU v5 lite"))
    model = Model(
        products=13e9, stored=13e9, layers=40, width=5120, kv_heads=40, place_bytes=2.0 * 40 * 40 * 128 * 2,
        weights="bfloat16",
    )  # fmt: skip
    assert cost_model.bound_s(model, peak, 8, 1, 8192) == pytest.approx(4.98e-3, rel=0.05)
    assert cost_model.bound_s(model, peak, 8, 16, 8192) == pytest.approx(20.3e-3, rel=0.05)


def test_a_forecast_lists_each_count_and_what_does_not_fit(tmp_path: Path) -> None:
    assert absent.forecast(composed(**{"model.preset": "70b"}), "h100:8", tmp_path, Console(quiet=True))
    lines = json.loads((tmp_path / absent.FORECAST).read_text())["forecasts"]
    assert [line["devices"] for line in lines] == [1, 2, 4, 8]
    assert [line["fits"] for line in lines] == [False, True, True, True]  # 140 GB of weights
    assert all(line["bound_s"] <= line["tpot_low_s"] < line["tpot_s"] < line["tpot_high_s"] for line in lines)
    assert "h100 x 8" in (tmp_path / "report.html").read_text()


def test_advice_is_within_its_budget_and_sorted_by_cost(tmp_path: Path) -> None:
    texts = {"tpot": "50ms", "ttft": "1s", "context": "8192", "prices": None, "targets": "h100,v5e"}
    assert absent.advise(composed(), texts, tmp_path, Console(quiet=True))
    found = json.loads((tmp_path / absent.ADVICE).read_text())["candidates"]
    costs = [line["cost_per_million_tokens"] for line in found]
    assert costs == sorted(costs) and {line["device"] for line in found} <= {"h100", "v5e"}
    assert all(line["tpot_high_s"] <= 0.05 and line["ttft_s"] <= 1 and line["fits"] for line in found)
    assert all(line["context"] == 8192 for line in found)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"tpot": "50"}, "--tpot=50 is not a time with its unit: use 50ms or 1s"),
        ({"context": "long"}, "--context=long is not a number of tokens: use 8192"),
        ({"targets": "h1000"}, "--targets=h1000 is unknown"),
    ],
)
def test_bad_flags_are_refused(texts: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        absent.advise(composed(), texts, tmp_path, Console(quiet=True))
