# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ordinary user models are right under every strategy that takes them, and never called wrong."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import pytest
from brought_models import STYLES, source
from thin import thin

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.core.point import Point
from jaxbench.core.schema import Verdict
from jaxbench.errors import Unsupported
from jaxbench.features.try_model import trial
from jaxbench.levers import DEFAULTS
from jaxbench.measure import model_steps
from jaxbench.measure.bench import Bench
from jaxbench.processes.server import StageError

BATCH = 16
BROUGHT = [
    (row, style)
    for style in STYLES
    for row in (*STYLES[style], "noise", "clip")
    if (row, style) != ("norm", "functions")
]
PLACES = [("jit_auto", 2), ("pmap", 2), ("zero2", 2), ("fsdp", 2), ("shard_map", 8)]


def bench(folder: Path, text: str) -> Bench:
    path = folder / "mine.py"
    path.write_text(text)
    config = config_lib.compose("mine", discovery.load_experiment(str(path)), discovery.load_preset("smoke"), tiny=True)
    return model_steps.bench(config_lib.plain(config), str(path), jax.devices(), "try")


def attempt(mine: Bench, strategy: str, devices: int, **levers: str) -> dict[str, Verdict]:
    levers = {**DEFAULTS, **levers}
    point = Point(
        point="p", strategy=strategy, scaling="strong", devices=devices, global_batch=BATCH, oversubscribed=True,
        levers=levers, platform="cpu",
    )  # fmt: skip
    return {check.name: check for check in trial.attempt(mine, vars(point)).checks}


@pytest.mark.full
@pytest.mark.parametrize(("row", "style"), thin(BROUGHT, BROUGHT[:1]))
def test_right_under_every_strategy(tmp_path: Path, row: str, style: str) -> None:
    mine = bench(tmp_path, source(row, style))
    for strategy, devices in PLACES:
        checks = attempt(mine, strategy, devices)
        assert all(check.ok for check in checks.values()), (strategy, devices, checks)


def test_a_loop_that_begins_with_zeros_is_told_from_a_wrong_program_under_explicit_sharding(tmp_path: Path) -> None:
    mine = bench(tmp_path, source("recurrent", "functions"))
    with pytest.raises(StageError) as error:
        attempt(mine, "jit_explicit", 2)
    said = error.value.__cause__
    assert isinstance(said, Unsupported)
    assert re.search(r"mine\.py', line \d+: with explicit .*\(.*carry.*\): start that loop with an array", str(said))


@pytest.mark.full
@pytest.mark.parametrize("levers", [{"accumulate": "2"}, {"precision": "bfloat16"}], ids=str)
def test_dropout_with_levers(tmp_path: Path, levers: dict[str, str]) -> None:
    mine = bench(tmp_path, source("dropout", "linen"))
    for strategy, devices in (("jit_auto", 2), ("shard_map", 2)):
        checks = attempt(mine, strategy, devices, **levers)
        assert all(check.ok for check in checks.values()), (strategy, devices, checks)


def test_more_than_needed_is_excess_for_a_model_that_is_brought(tmp_path: Path) -> None:
    """XLA reduces the two gradients of a tied embedding separately."""
    mine = bench(tmp_path, source("tied", "functions"))
    collectives = attempt(mine, "jit_auto", 2)["collectives"]
    assert collectives.ok and collectives.excess_bytes == 4 * 20 * 8
    assert "640 excess bytes, the size of 'embed'" in collectives.reason
    mine.steps.proof.own = True
    assert not attempt(mine, "jit_auto", 2)["collectives"].ok
