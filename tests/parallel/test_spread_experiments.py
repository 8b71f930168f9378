# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every experiment that splits a model, at its tiny size: points, facts, and its figure from the command line."""

from __future__ import annotations

import pytest
from doorway import jaxbench

from jaxbench.core import schema
from jaxbench.core.store import RunFolder


@pytest.fixture
def records(tmp_path):
    def typed(name: str, *changes: str) -> list[schema.PointRecord]:
        """The last record of each point, in the order of the plan; each passed its checks, and there is a figure."""
        folder = tmp_path / name
        words = ("run", name, "--preset=smoke", f"--workdir={folder}", *(f"--config.{c}" for c in changes))
        ended = jaxbench(*words, formats=("svg",))
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert list((folder / "figures").glob("*.svg"))
        found = {r.point: r for r in RunFolder(folder).records() if isinstance(r, schema.PointRecord)}
        assert found and all(check.ok for record in found.values() for check in record.checks)
        return list(found.values())

    return typed


@pytest.mark.full
def test_zero_holds_less_with_each_stage(records):
    found = records("zero", "mesh.devices=4")
    assert [record.strategy for record in found] == ["jit_auto", "zero1", "zero2", "fsdp"]
    held = [record.facts["state_bytes"] + record.facts["held_gradient_bytes"] for record in found]
    assert held == sorted(held, reverse=True) and held[-1] < 0.3 * held[0]
    per_parameter = held[0] / found[0].passport.parameters
    assert per_parameter == pytest.approx(16)


@pytest.mark.full
def test_without_fusion_fsdp_still_gathers_for_the_backward_pass_again(records):
    found = records("mlp", "strategy=fsdp", "scaling=strong", "mesh.devices=2", "lever.execution=donated,unfused")
    donated, unfused = (sum(c.bytes for c in record.passport.collectives if c.kind == "all-gather") for record in found)
    assert donated == unfused > 0


@pytest.mark.full
def test_tensor_parallel_grows_the_model_with_the_devices(records):
    found = {(r.scaling, r.devices): r for r in records("tensor_parallel", "mesh.devices=1,2")}
    parameters = {key: record.passport.parameters for key, record in found.items()}
    assert parameters["strong", 1] == parameters["strong", 2] == parameters["weak", 1] < parameters["weak", 2]
    assert len({record.global_batch for record in found.values()}) == 1
    assert found["strong", 2].facts["state_bytes"] < 0.7 * found["strong", 1].facts["state_bytes"]


@pytest.mark.full
def test_pipeline_is_as_busy_as_theory_says(records):
    found = records("pipeline", "mesh.devices=2", "lever.accumulate=4")
    assert [record.levers["schedule"] for record in found] == ["gpipe", "1f1b"]
    assert [record.facts["busy_share"] for record in found] == pytest.approx([4 / (4 + 2 - 1)] * 2)


@pytest.mark.full
def test_context_parallel_passes_keys_and_values_round(records):
    (record,) = records("context_parallel", "mesh.devices=4", "search=")
    assert "collective-permute" in {each.kind for each in record.passport.collectives}


@pytest.mark.full
def test_hybrid_says_what_each_mesh_keeps_busy(records):
    meshes = ("data=2", "stage=2")
    found = {
        r.arm: r for r in records("hybrid", "mesh.devices=2", f"lever.mesh={';'.join(meshes)}", "lever.accumulate=2")
    }
    assert list(found) == [f"mesh={mesh}" for mesh in meshes]
    assert [record.facts.get("busy_share") for record in found.values()] == [None, pytest.approx(2 / 3)]


@pytest.mark.full
def test_moe_says_what_was_dropped(records):
    found = {r.devices: r for r in records("moe", "mesh.devices=1,2", "strategy=expert")}
    assert all(0 <= record.facts["dropped"] < 1 for record in found.values())
    assert "all-to-all" in {each.kind for each in found[2].passport.collectives}
    assert found[2].facts["state_bytes"] < found[1].facts["state_bytes"]


@pytest.mark.full
def test_contrastive_gathers_more_with_each_device_and_holds_less_by_blocks(records):
    found = {
        (r.devices, r.levers["remat"]): r.passport
        for r in records("contrastive", "mesh.devices=1,2", "strategy=shard_map", "batch=64", "model.columns=8")
    }
    assert all(found[n, "none"].flops_per_step == found[n, "block"].flops_per_step for n in (1, 2))
    assert found[2, "none"].flops_per_step > 2 * found[1, "none"].flops_per_step
    assert found[2, "none"].product_flops_per_step == found[2, "none"].flops_per_step
    gathered = {c.kind: c.bytes for c in found[2, "none"].collectives}
    assert gathered["all-gather"] == 2 * 4 * 128 * 16 and gathered["reduce-scatter"] == gathered["all-gather"] / 2
    assert found[2, "block"].temp_bytes < found[2, "none"].temp_bytes
