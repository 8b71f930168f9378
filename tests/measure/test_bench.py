# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The differences of a bench on an accelerator, with CPU devices in its place."""

from __future__ import annotations

import csv
import types
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from doorway import QUICK_MLP, jaxbench
from jax.sharding import AxisType
from ml_collections import ConfigDict
from thin import thin
from workload_cases import TINY

from jaxbench import config as config_lib
from jaxbench import discovery, levers
from jaxbench.analysis import points
from jaxbench.core import schema
from jaxbench.core.point import Point
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.levers import DEFAULTS, Arm
from jaxbench.machine import mesh
from jaxbench.measure import model_steps
from jaxbench.measure import reference as references
from jaxbench.processes import gpu_sharing as sharing


def point(devices, **changes):
    (arm,) = levers.arms(levers.defaults())
    about = {"strategy": "shard_map", "scaling": "strong", "oversubscribed": False, "platform": "cpu"}
    return Point(**{"point": "p", **about, "devices": devices, "global_batch": 16, "levers": arm.levers, **changes})


def bench(name, devices):
    config = config_lib.compose(name, discovery.load_experiment(name), TINY, tiny=True)
    return model_steps.bench(config_lib.plain(config), name, devices, "w")


@pytest.fixture
def host(monkeypatch):
    """A CPU device that is not measured."""
    monkeypatch.setattr(mesh, "host_device", lambda: jax.devices()[5])
    return jax.devices()[5]


@pytest.mark.full
@pytest.mark.parametrize("strategy", ["jit_auto", "fsdp"])
def test_a_tiny_decoder_in_bfloat16_is_right(strategy):
    """What people try first. Its few weights hardly round otherwise, and its narrow heads are padded."""
    config = config_lib.compose("gpt", discovery.load_experiment("gpt"), discovery.load_preset("smoke"), tiny=True)
    mine = model_steps.bench(config_lib.plain(config), "gpt", jax.devices()[:1], "w")
    (arm,) = levers.arms(ConfigDict({**levers.defaults(), "precision": "bfloat16"}))
    prepared = mine.prepare(point(1, strategy=strategy, levers=arm.levers).to_json())
    assert [check.reason for check in prepared.checks if not check.ok] == []


def test_the_initial_values_of_one_device_are_compiled_once():
    """Compiling those of a deep model takes many seconds on a GPU, and several checks need them."""
    compiled = []

    def listen(event, seconds, fun_name="", **more):
        if event.endswith("backend_compile_duration"):
            compiled.append(fun_name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        mine = bench("mlp", jax.devices()[:2])
        for name, batch in (("p", 16), ("q", 32)):
            record = mine.prepare(point(2, point=name, global_batch=batch).to_json(), paced=False)
            assert all(check.ok for check in record.checks)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert compiled.count("jit(create_state)") == 1, compiled


def test_no_accelerator_holds_the_whole_batch_while_it_is_drawn(host):
    mine = bench("mlp", jax.devices())
    expected = jax.device_get(mine.source.batch(point(4)))
    mine.steps.devices = [types.SimpleNamespace(platform="gpu")]
    mine.steps.proof.draw.devices = mine.steps.devices
    draw, places = mine.steps.proof.draw.compiled, set()

    def spied(*arguments):
        drawn = draw(*arguments)
        places.update(device for leaf in jax.tree.leaves(drawn) for device in leaf.devices())
        return drawn

    mine.steps.proof.draw.compiled = spied
    with jax.set_mesh(mesh.data_mesh(jax.devices()[:4], AxisType.Auto)):  # as the rounds draw it
        found = mine.source.batch(point(4))
    assert places == {host}
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(found))
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def full(names):
    """A `references.reference` that runs out of memory on the named devices."""
    real = references.reference

    def reference(workload, state, batch, *, device, **options):
        if str(device) in names:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.")
        return real(workload, state, batch, device=device, **options)

    return reference


@pytest.mark.parametrize("name", thin(["mlp", "resnet18"], 1))
def test_an_answer_that_does_not_fit_one_device_is_the_hosts(name, host, monkeypatch):
    monkeypatch.setattr(references, "reference", full({str(jax.devices()[1])}))
    record = bench(name, jax.devices()[1:3]).prepare(point(2).to_json())
    found = {verdict.name: verdict for verdict in record.checks}
    assert all(verdict.ok for verdict in record.checks)
    assert "does not fit on one cpu, so the host computed it in float32" in found["parameters"].reason


@pytest.mark.full
def test_an_answer_that_nobody_can_give_leaves_a_point_unchecked(host, monkeypatch):
    monkeypatch.setattr(references, "reference", full({str(jax.devices()[1])}))
    monkeypatch.setattr(references, "HOST_FLOPS", 1.0)
    mine = bench("mlp", jax.devices()[1:3])
    record = mine.prepare(point(2).to_json())
    parameters, collectives, *_ = record.checks
    assert parameters.unchecked and not parameters.ok and "would take the host too long" in parameters.reason
    measured = mine.round("p", 0)
    assert collectives.ok and measured.block_s
    assert [(v.name, v.ok, v.unchecked) for v in measured.checks][-1] == ("timed update", False, True)
    about = points.PointLines(compile_reports=[record])
    assert points.check(about) == (None, f"parameters: {parameters.reason}")
    assert not list(points.faults(record))
    assert schema.from_json(schema.to_json(record)) == record


def test_another_error_of_the_reference_is_a_failure_and_the_host_has_nothing_to_fall_back_on(host):
    def fails(device):
        raise jax.errors.JaxRuntimeError("INTERNAL: no" if device != host else "RESOURCE_EXHAUSTED: Out of memory.")

    for device, said in ((jax.devices()[1], "INTERNAL"), (host, "RESOURCE_EXHAUSTED")):
        with pytest.raises(jax.errors.JaxRuntimeError, match=said):
            references.where_it_fits(fails, device, flops=1.0)


# Concurrent trainings (lever.trainings): real processes that share a core, and refusals.


CPU = {"platform": "cpu", "devices": 1, "cores": 2}


def settings(*trainings: str, processes: str = "1") -> SimpleNamespace:
    arms = tuple(Arm(f"trainings={each}", {**DEFAULTS, "trainings": each}) for each in trainings)
    return SimpleNamespace(arms=arms, mesh_processes=processes)


@pytest.mark.full
def test_two_trainings_share_a_core_and_each_is_timed_and_checked(tmp_path):
    words = (*QUICK_MLP, "--config.mesh.devices=1", "--config.lever.trainings=1,2", "--config.measure.processes=1")
    done = jaxbench("run", "mlp", f"--workdir={tmp_path / 'run'}", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    run = RunFolder(tmp_path / "run")
    alone, both = "jit_auto/strong/1/trainings=1", "jit_auto/strong/1/trainings=2"
    records = run.records()
    points = {record.point: record for record in records if isinstance(record, schema.PointRecord)}
    assert points.keys() == {alone, both}
    assert all(check.ok for record in points.values() for check in record.checks)
    assert points[both].processes == 1, "of one training"
    rounds = [record for record in records if isinstance(record, schema.RoundRecord)]
    assert {record.point: len(record.process_block_s) for record in rounds} == {alone: 0, both: 2}
    workers = run.manifest()["workers"]
    one, two = (workers[f"session0/cpu1{name}"]["cpus"] for name in ("", "-2trainings"))
    assert one == two and len(one) == 1, "all are pinned to the same core"
    rows = list(csv.DictReader((run.path / "summary.csv").read_text().splitlines()))
    fairness = {row["trainings"]: row["fairness"] for row in rows}
    assert fairness["1"] == "" and 0.5 <= float(fairness["2"]) <= 1
    assert len(list((run.path / "figures").glob("sharing.*"))) >= 1


@pytest.mark.parametrize(
    ("asked", "machine", "words"),
    [
        (settings("2:mps"), CPU, "trainings=2:mps needs an NVIDIA GPU, .* measures on the cpu: use 2"),
        (settings("2"), {**CPU, "platform": "tpu"}, "trainings=2 is not possible on a TPU"),
        (settings("1", "2"), {**CPU, "hosts": ["a", "b"]}, "trainings=2 is measured by processes of this machine"),
        (settings("2", processes="2"), CPU, "so --config.mesh.processes=2 has no place"),
    ],
)
def test_what_cannot_share(asked, machine, words):
    with pytest.raises(UserError, match=words):
        sharing.require_sharable(asked, machine)


def test_a_gpu_needs_the_service_only_for_mps(tmp_path, monkeypatch):
    gpu = {**CPU, "platform": "gpu"}
    monkeypatch.setenv(sharing.PIPES, str(tmp_path))
    sharing.require_sharable(settings("1", "2"), gpu)
    with pytest.raises(UserError, match="start it with nvidia-cuda-mps-control -d"):
        sharing.require_sharable(settings("2:mps"), gpu)
    (tmp_path / "control").touch()
    sharing.require_sharable(settings("2:mps"), gpu)


def test_the_processes_of_all_arms_share_a_gpus_memory(tmp_path, monkeypatch):
    monkeypatch.setenv(sharing.PIPES, str(tmp_path))
    arms = settings("1", "2", "2:mps").arms
    share = sharing.memory_share(arms, "gpu")
    assert share == pytest.approx(0.9 / 5)
    assert sharing.memory_share(arms, "cpu") == 0 and sharing.memory_share(arms[:1], "gpu") == 0
    alone, two, mps = (sharing.sharing_of(arm.levers, share) for arm in arms)
    assert [alone[0], two[0], mps[0]] == ["", "-2trainings", "-2trainings-mps"]
    assert all(variables["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.180" for _, variables in (alone, two, mps))
    assert mps[1][sharing.PIPES] == str(tmp_path) != two[1][sharing.PIPES]


@pytest.mark.parametrize("free", [1e3, 1e12])
def test_a_loaded_point_keeps_its_state_only_while_there_is_memory(free, monkeypatch):
    """Sets that load many points would otherwise hold the states of all at once."""
    first, second = bench("mlp", jax.devices()[:1]), bench("mlp", jax.devices()[:1])
    of = point(1)
    record = first.prepare(of.to_json())
    monkeypatch.setattr("jaxbench.measure.memory.available", lambda: free)
    assert second.prepare_again(of.to_json(), record.program_sha256, steps=2)
    assert bool(second.kept.states) is bool(second.kept.batches) is (free > 1e6)
    assert second.round("p", 0, steps=2).block_s
