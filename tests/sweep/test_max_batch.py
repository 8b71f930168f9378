# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The largest batch that fits: the search by arithmetic, and proven by real processes under a real limit."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery, levers
from jaxbench.core.point import Point
from jaxbench.errors import UserError
from jaxbench.sweep import studies
from jaxbench.sweep.studies import MemoryLimit, Study

MEMORY_HUNGRY = '''"""A model with a step that holds 1 MB for each example."""
import jax, jax.numpy as jnp, optax
from jaxbench.workloads import Field, TrainWorkload

def get_config():
    return {"optimizer": {"name": "sgd"}}

def build(config):
    def init(key):
        return {"w": 1e-3 * jax.random.normal(key, (64, 64))}, {}

    def loss(params, model_state, batch, key):
        wide = jnp.sin(batch["x"][:, :, None] * jnp.arange(64.0))  # (batch, 4096, 64) float32: 1 MB an example
        return jnp.mean(jnp.tanh(wide @ params["w"]) ** 2), (model_state, {})

    return TrainWorkload(name="hungry", init=init, loss=loss, optimizer=optax.sgd(0.1), example={"x": Field((4096,))})
'''


@given(
    fixed=st.integers(0, 10**6), each=st.integers(1, 10**4), step=st.integers(1, 16), limit=st.integers(1, 10**8),
    bend=st.integers(0, 3),
)  # fmt: skip
def test_the_largest_multiple_that_fits_is_found(fixed, each, step, limit, bend):
    tried = []

    def peak(batch):
        tried.append(batch)
        return fixed + each * batch + bend * batch**2 // 100

    found = studies.largest_within(peak, limit, first=step, step=lambda _: step)
    assert found % step == 0
    assert found == 0 or peak(found) <= limit
    assert peak(found + step) > limit
    assert len(tried) < 60


def point(**changes):
    (arm,) = levers.arms(levers.defaults())
    about = {"strategy": "jit_auto", "scaling": "strong", "devices": 1, "global_batch": 1, "oversubscribed": False}
    return Point(**{"point": "p", **about, "levers": arm.levers, "platform": "cpu", **changes})


def asked(path, limit):
    config = config_lib.compose("hungry", discovery.load_experiment(str(path)), discovery.load_preset("smoke"))
    return Study(
        points=[point()], experiment=str(path), config={**config_lib.plain(config), "search": "max"}, limit=limit,
        folder=path.parent, console=Console(file=io.StringIO()),
    )  # fmt: skip


@pytest.mark.full
def test_the_result_of_a_search_was_run(tmp_path):
    path = tmp_path / "hungry.py"
    path.write_text(MEMORY_HUNGRY)
    limit = MemoryLimit(bytes=200_000_000, source="config.search_bytes")
    studies.run(asked(path, limit))
    found = json.loads((tmp_path / "search.json").read_text())
    peaks = {tried["batch"]: tried["peak_bytes"] for tried in found["tried"]}
    assert peaks[found["predicted"]] <= limit.bytes < peaks[found["predicted"] + 1]
    ran = {proof["batch"]: proof for proof in found["proven"]}
    assert ran[found["largest"]]["ok"] and abs(found["largest"] / found["predicted"] - 1) < 0.3
    assert abs(found["error"]) < 0.3  # predicted over measured memory
    assert any(not proof["ok"] for proof in found["proven"]) or found["largest"] > found["predicted"]


def test_a_limit_below_the_smallest_batch_names_one_that_does(tmp_path):
    path = tmp_path / "hungry.py"
    path.write_text(MEMORY_HUNGRY)
    with pytest.raises(
        UserError, match=r"a batch of 1 needs [\d,]+ bytes and the limit is 1,000 .*--config.search_bytes="
    ):
        studies.run(asked(path, MemoryLimit(bytes=1000, source="config.search_bytes")))


def test_the_owner_of_the_limit():
    assert studies.limit(5, {"device_memory_bytes": 7}).bytes == 5
    assert studies.limit(0, {"device_memory_bytes": 7}).bytes == 7 == studies.limit(9, {"device_memory_bytes": 7}).bytes
    assert studies.limit(0, {"device_memory_bytes": None}).bytes == studies.CPU_LIMIT_BYTES
