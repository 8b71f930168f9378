# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every lever experiment, at its tiny size in this process: each arm is checked and measured."""

from __future__ import annotations

import experiment_cases
import jax
import pytest
from experiment_cases import composed, lever_experiments, points_of
from ml_collections import ConfigDict
from thin import thin

from jaxbench import config as config_lib
from jaxbench import parallel
from jaxbench.core import schema
from jaxbench.features.profile import profile
from jaxbench.measure import model_steps
from jaxbench.processes.server import StageError
from jaxbench.report import build

BATCH = 16


def small(name: str, **changes: object) -> ConfigDict:
    config = composed(name)
    with config.unlocked():
        config.strategy = "shard_map" if config.lever.part != "step" else "jit_auto"
        config.batch, config.train.batch = BATCH, BATCH
        config.update_from_flattened_dict({"lever.batch": "0", **changes} if config.lever.batch == "0" else changes)
    return config


def measure(name: str, **changes: object) -> dict[str, schema.PointRecord]:
    records = experiment_cases.measure(name, small(name, **changes))
    return {r.arm if r.devices == 1 else f"{r.arm} on {r.devices}": r for r in records}


def test_there_is_an_experiment_for_every_lever():
    names = lever_experiments()
    assert {"precision", "remat", "batch", "accumulate", "freeze", "ladder", "phases", "input", "profile"} < set(names)
    for name in names:
        config = small(name)
        swept = config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model()).swept
        assert swept or config.profile or config.report.view in build.views_of("training"), name


@pytest.mark.full
def test_precision():
    found = measure("precision", **{"measure.train_steps": 30})
    assert list(found) == ["precision=default", "precision=bfloat16", "precision=float16"]
    for arm, record in found.items():
        assert record.outcome["steps"] == 30 and record.outcome["final_accuracy"] > 0.2
        assert ("skipped_steps" in record.outcome) == (arm == "precision=float16")
        products = [check for check in record.checks if check.name == "products"]
        assert bool(products) == (arm != "precision=default")
        assert all(check.value > 0.99 for check in products)


@pytest.mark.full
def test_accumulate():
    found = measure("accumulate", batch=64)
    memory = [record.compile_report.temp_bytes for record in found.values()]
    assert memory == sorted(memory, reverse=True) and memory[-1] < 0.7 * memory[0]


@pytest.mark.full
def test_remat():
    found = measure("remat", **{"lever.remat": "none,sqrt,block"})
    memory = {arm.removeprefix("remat="): record.compile_report.temp_bytes for arm, record in found.items()}
    assert memory["sqrt"] < memory["none"] and memory["block"] < memory["none"]


@pytest.mark.full
def test_freeze():
    patterns = small("freeze").lever.freeze.split(",")
    trained, frozen = measure("freeze", **{"mesh.devices": "2", "lever.freeze": f"none,{patterns[-1]}"}).values()
    assert frozen.compile_report.product_flops_per_step < 0.8 * trained.compile_report.product_flops_per_step
    assert frozen.compile_report.expected_gradient_bytes < trained.compile_report.expected_gradient_bytes


@pytest.mark.full
def test_ladder():
    found = measure("ladder")
    assert found["execution=eager"].compile_report.peak_bytes is None
    assert found["execution=donated"].compile_report.peak_bytes < found["execution=jit"].compile_report.peak_bytes
    assert {record.levers["input"] for record in list(found.values())[:-1]} == {"pipeline:0"}
    assert all("waited_share" in record.outcome for record in found.values())


@pytest.mark.full
def test_phases():
    found = measure("phases", **{"mesh.devices": "1,2"})
    flops = [record.compile_report.product_flops_per_step for record in list(found.values())[:4]]
    assert flops[0] < 0.6 * flops[1] and flops[1] <= flops[2]
    reduced = {arm: sum(c.bytes - c.scalar_bytes for c in r.compile_report.collectives) for arm, r in found.items()}
    assert reduced["part=local on 2"] == 0 < reduced["part=step on 2"]


@pytest.mark.full
def test_input():
    found = measure("input")
    assert list(found)[:3] == ["input=device", "input=host", "input=pipeline:0"]
    assert "waited_share" not in found["input=device"].outcome
    assert 0 < found["input=pipeline:0"].outcome["waited_share"] <= 1


@pytest.mark.full
def test_inference_is_timed_call_by_call():
    config = small("inference", **{"lever.batch": "1,8", "measure.rounds": 10})
    bench = model_steps.bench(config_lib.plain(config), "inference", jax.devices(), "session0/here")
    point = points_of(config)[1]
    assert bench.prepare(point.to_json()).checks[0].ok
    measured = bench.round(point.point, 0)
    assert measured.steps == 1 and len(measured.block_s) == 20


@pytest.mark.full
def test_profile(tmp_path):
    config = small("profile", **{"mesh.devices": "2"})
    bench = model_steps.bench(config_lib.plain(config), "profile", jax.devices(), "session0/here")
    (point,) = points_of(config)
    bench.prepare(point.to_json())
    record = profile.of_point(bench, point.point, str(tmp_path / "trace"))
    assert record.kinds["matmul"] > 0 and record.kinds["collective"] > 0
    assert schema.from_json(schema.to_json(record)) == record


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    thin(
        [
            (
                "accumulate",
                {"lever.accumulate": "3", "mesh.devices": "1"},
                "accumulate=3 does not divide the 16 examples",
            ),
            ("phases", {"strategy": "jit_auto"}, "use --config.strategy=shard_map"),
            ("ladder", {"strategy": "pmap"}, "execution=eager is not possible under pmap"),
            ("cnn", {"lever.remat": "block"}, "remat=block"),
            ("cnn", {"lever.precision": "tf32"}, "precision=tf32"),
            ("cnn", {"lever.freeze": "no/such"}, "freeze=no/such"),
        ],
        2,
    ),
)
def test_what_cannot_be_is_one_sentence(name, changes, said):
    config = small(name, **changes)
    with pytest.raises(Exception) as caught:
        points = points_of(config)
        model_steps.bench(config_lib.plain(config), name, jax.devices(), "w").prepare(points[0].to_json())
    error = caught.value.__cause__ if isinstance(caught.value, StageError) else caught.value
    assert said in str(error) and "\n" not in str(error)
