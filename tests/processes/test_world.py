# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Points on two processes of this machine: the checks, the collective counts and the clocks of each strategy."""

import dataclasses

import pytest
from doorway import QUICK_MLP, environment, jaxbench
from thin import KINDS, thin

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.cases import placement
from jaxbench.cases.case_bench import build_cases
from jaxbench.core import schema
from jaxbench.core.point import Point
from jaxbench.core.store import RunFolder
from jaxbench.levers import DEFAULTS
from jaxbench.processes.client import Worker
from jaxbench.processes.messages import Compile, Prepare, Round
from jaxbench.sweep.plan import worker_of
from jaxbench.workloads.cases import COLLECTIVES

MOE = {"model.experts": 2}
# (experiment, changes of its config, strategy, levers)
CASES = [
    *(("mlp", {}, strategy, {}) for strategy in parallel.of_any_model()),
    ("gpt", {}, "tensor", {}),
    ("gpt", {}, "context", {}),
    ("gpt", {}, "pipeline", {"accumulate": "2"}),
    ("gpt", {}, "hybrid", {"mesh": "tensor=2"}),
    ("gpt", MOE, "expert", {}),
    ("mlp", {}, "shard_map", {"part": "gradient"}),
    ("mlp", {}, "shard_map", {"part": "inference"}),
    ("mlp", {}, "shard_map", {"reduction": "ring"}),
    ("mlp", {}, "jit_auto", {"input": "host"}),
    ("mlp", {}, "jit_auto", {"precision": "bfloat16"}),
]


def point(strategy: str, levers: dict[str, str], devices: int = 2, processes: int = 2) -> Point:
    arm = "".join(f"/{name}={value}" for name, value in levers.items())
    return Point(
        point=f"{strategy}/strong/{devices}{arm}", strategy=strategy, scaling="strong", devices=devices, global_batch=8,
        oversubscribed=False, platform="cpu", processes=processes, levers={**DEFAULTS, **levers},
    )  # fmt: skip


def world(asked: Point, experiment: str, changes: dict, log) -> Worker:
    config = config_lib.compose(experiment, discovery.load_experiment(experiment), discovery.load_preset("smoke"))
    with config.unlocked():
        config.update_from_flattened_dict(
            {**changes, "optimizer.name": "sgd", "measure.block_s": 0.001, "measure.gradients": True}
        )
    about = {"experiment": experiment, "config": config.to_dict(), "worker": "test"}
    return Worker(dataclasses.replace(worker_of(asked)[1], **about), log)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """One process group per experiment and config, kept for all its cases."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        patch.delenv("NPROC", raising=False)
        made: dict[str, Worker] = {}

        def of(experiment, changes, asked):
            key = experiment + str(changes)
            if key not in made:
                made[key] = world(asked, experiment, changes, tmp_path_factory.mktemp("world") / "log")
            return made[key]

        yield of
        for worker in made.values():
            worker.close()


@pytest.mark.parametrize(
    ("experiment", "changes", "strategy", "levers"),
    thin(CASES, [case for case in CASES if case[2] == KINDS[2] and not case[3]]),
)
def test_two_processes_train_as_one_device(worlds, experiment, changes, strategy, levers):
    asked = point(strategy, levers)
    worker = worlds(experiment, changes, asked)
    record = worker.ask(Prepare(point=asked.to_json())).record
    assert record.processes == 2
    assert {check.name: check.reason for check in record.checks if not check.ok} == {}
    about = worker.ask(Round(point=asked.point, round=0)).record
    assert len(about.process_block_s) == 2
    assert about.block_s == tuple(map(max, *about.process_block_s))
    assert about.compilations == 0 and about.cpus >= 1
    assert {check.name: check.reason for check in about.checks if not check.ok} == {}
    assert {check.name for check in about.checks} >= {"finite", "steps"}


def test_a_process_without_a_device_of_the_point_waits(worlds):
    """On accelerators one process group has the points of every device count."""
    worker = worlds("mlp", {}, point("jit_auto", {}))
    asked = point("jit_auto", {}, devices=1)
    record = worker.ask(Prepare(point=asked.to_json())).record
    assert record.processes == 1 and all(check.ok for check in record.checks)
    about = worker.ask(Round(point=asked.point, round=0)).record
    assert about.process_block_s == ()
    both = worker.ask(Compile(point=point("shard_map", {}).to_json()))
    assert both.flops > 0


@pytest.mark.full
def test_a_run_says_of_each_point_how_many_processes_it_had(tmp_path):
    words = (*QUICK_MLP, "--config.mesh.devices=1,2", "--config.mesh.processes=2", "--config.measure.processes=1")
    done = jaxbench("run", "mlp", f"--workdir={tmp_path / 'run'}", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    run = RunFolder(tmp_path / "run")
    of = {record.point: record.processes for record in run.records() if isinstance(record, schema.PointRecord)}
    assert of == {"jit_auto/strong/1": 1, "jit_auto/strong/2": 2}
    manifest = run.manifest()
    assert manifest["plan"]["processes"] == 2
    assert {each["point"]: each["processes"] for each in manifest["plan"]["points"]} == of
    assert manifest["workers"]["session0/cpu2-2processes"]["processes"] == 2
    header, *rows = (run.path / "summary.csv").read_text().splitlines()
    column = header.split(",").index("processes")
    assert sorted(row.split(",")[column] for row in rows) == ["1", "2"]


@pytest.fixture(scope="module")
def collective_world(tmp_path_factory):
    """Two processes of two devices each."""
    words = {"mesh.devices": "4", "mesh.processes": "2", "sizes": "4Ki", "measure.block_s": 0.001}
    config = config_lib.compose("collectives", discovery.load_experiment("collectives"), discovery.load_preset("smoke"))
    with config.unlocked():
        config.update_from_flattened_dict(words)
    machine = {"platform": "cpu", "devices": 1, "cores": 2, "memory_bytes": 2**34}
    points, _ = placement.place(build_cases(config, "collectives"), config_lib.parse_cases(config), machine)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        patch.delenv("NPROC", raising=False)
        (_, setup) = worker_of(points[0])
        about = {"experiment": "collectives", "config": config.to_dict(), "worker": "test"}
        worker = Worker(dataclasses.replace(setup, **about), tmp_path_factory.mktemp("collectives") / "log")
    yield {point.point: point for point in points}, worker
    worker.close()


WHERE = {"4": (4, 2), "2x2:x": (2, 2), "2x2:y": (2, 1)}  # mesh and axis: devices and processes of a group


@pytest.mark.parametrize(("op", "where"), thin([(op, where) for op in COLLECTIVES for where in WHERE]))
def test_collectives_are_right_between_processes_and_inside_them(collective_world, op, where):
    points, worker = collective_world
    point = points[f"{op}/float32/4096B/{where}"]
    record = worker.ask(Prepare(point=point.to_json())).record
    assert (record.devices, record.group_processes) == WHERE[where]
    assert (record.processes, record.group_hosts) == (2, 1)
    assert record.wrong == 0 and all(check.ok for check in record.checks)
    about = worker.ask(Round(point=point.point, round=0)).record
    assert len(about.process_block_s) == 2 and about.compilations == 0 and about.loop_s
