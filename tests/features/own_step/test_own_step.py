# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Train steps that somebody else wrote: what is accepted, what is refused with a sentence, and what is found wrong."""

import importlib.util
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest
from doorway import ROOT, environment, jaxbench, sketching
from launched import ended
from own_steps import broken
from own_steps.checked import bench_of, checks, point_of
from rich.console import Console

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.analysis import points as points_lib
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.features.own_step import compare as own_compare
from jaxbench.features.own_step import program as own_program
from jaxbench.features.own_step import reference as own_reference
from jaxbench.features.own_step.reference import Movement, OwnReference
from jaxbench.machine import start
from jaxbench.processes.client import WorkerError
from jaxbench.sweep import plan
from jaxbench.sweep import run as run_lib
from jaxbench.sweep.references import References
from jaxbench.workloads.own_step import StepWorkload

STEPS = ROOT / "tests" / "own_steps"
PUBLIC = {"equinox": 1732, "keras": 740, "nnx": 132, "linen": 676}  # parameters, however many devices hold copies


def loaded(name: str) -> StepWorkload:
    spec = importlib.util.spec_from_file_location(f"own_{name}", STEPS / f"{name}_step.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build(module.get_config())


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.filterwarnings("default")  # of the libraries
def test_public_trainers_run_unchanged_and_agree_with_one_device(name, tmp_path, monkeypatch):
    found, record = checks(loaded(name), tmp_path, monkeypatch, timed=3)
    assert all(check.ok for check in found.values()), found
    assert found["parameters"].value < 1e-5 and found["timed update"].value < 1e-4
    assert record.compile_report.parameters == PUBLIC[name] and record.compile_report.product_flops_per_step > 0
    assert [each.kind for each in record.compile_report.collectives] == ["all-reduce"]
    assert record.facts["state_bytes"] > 4 * record.compile_report.parameters


def test_a_generation_step_has_its_cache_in_its_state(tmp_path, monkeypatch):
    found, record = checks(loaded("generation"), tmp_path, monkeypatch, timed=3)
    assert all(check.ok for check in found.values()), found
    assert record.unit == "tokens"
    assert [each.elements for each in record.compile_report.collectives] == [0]  # only the metric is summed


@pytest.mark.parametrize("case", broken.RIGHT)
def test_accepted_forms_of_a_step(case, tmp_path, monkeypatch):
    found, _ = checks(broken.workload(broken.RIGHT[case]), tmp_path, monkeypatch, timed=3)
    assert all(check.ok for check in found.values()) and found["timed update"].value < 1e-3, found


@pytest.mark.parametrize("case", broken.REFUSED)
def test_bad_input_gets_a_sentence_that_names_the_place(case, monkeypatch):
    make, batch, says = broken.REFUSED[case]
    with pytest.raises(Exception) as caught:
        bench_of(broken.workload(make, batch), 2, monkeypatch).prepare(point_of(2, batch).to_json())
    error = caught.value.__cause__
    assert isinstance(error, UserError), error
    assert says in str(error)
    assert "broken.py', line " in str(error), error


@pytest.mark.parametrize("case", broken.WRONG)
def test_a_step_that_is_wrong_on_several_devices_is_found(case, tmp_path, monkeypatch):
    make, name, says = broken.WRONG[case]
    found, _ = checks(broken.workload(make), tmp_path, monkeypatch, timed=3)
    assert not found[name].ok and says in found[name].reason, found
    assert found[name].unchecked == found["timed update"].unchecked == ("random" in case)
    assert "collectives are listed, not judged" in found["collectives"].reason


def test_one_more_step_of_the_timed_state_is_compared_with_one_device(tmp_path, monkeypatch):
    late = broken.workload(partial(broken.mapped, reduce=broken.mean_at_first))
    found, _ = checks(late, tmp_path, monkeypatch, timed=3)
    assert found["parameters"].ok and found["state"].ok and not found["timed update"].ok
    assert re.search(r"from the state after \d+ timed steps: .*NOT within", found["timed update"].reason), found


def test_a_state_that_has_learnt_its_batch_begins_with_the_first_parameters(tmp_path, monkeypatch):
    found, _ = checks(broken.workload(broken.soon_learnt), tmp_path, monkeypatch, timed=60)
    assert found["timed update"].ok and "because rounding alone moves those" in found["timed update"].reason, found


def test_a_first_state_or_batch_that_depends_on_the_devices_proves_nothing(tmp_path, monkeypatch):
    def other_start(devices, batch):
        own = broken.right(devices, batch)
        return replace(own, init=lambda: jax.tree.map(lambda x: x + len(devices), own.init()))

    def other_batch(devices, batch):
        own = broken.right(devices, batch)
        return replace(own, batch={**own.batch, "x": own.batch["x"] * len(devices)})

    for make, says in ((other_start, "init gives other parameters on 2"), (other_batch, "the batch on 2 devices")):
        found, _ = checks(broken.workload(make), tmp_path, monkeypatch)
        assert found["parameters"].unchecked and says in found["parameters"].reason


def test_a_reference_survives_its_file_and_leaves_out_arrays_that_move_by_rounding_alone(tmp_path):
    program = own_program.build(broken.workload(broken.right), jax.devices()[:1], 8)
    made = own_reference.reference(program, jax.jit(program.step))
    made.save(tmp_path / "r.npz")
    read = OwnReference.load(tmp_path / "r.npz")
    assert read.noise == made.noise and read.batches == made.batches and read.parameters == made.parameters
    assert {"params/up", "params/bias", "params/down"} == set(read.parameters) < set(read.end)
    moved = {path: read.end[path] for path in read.parameters}
    moved["params/bias"] = 2 * read.start["params/bias"] - read.end["params/bias"]

    def verdict(reference):
        found = Movement(reference.start, moved)
        return own_compare._parameters(found, reference, platform="gpu", few="one device")

    assert not verdict(read).ok
    noisy = verdict(replace(read, noise={**read.noise, "params/bias": 1.0}))
    assert noisy.ok and "without 'params/bias', moved by rounding alone" in noisy.reason


def test_a_small_array_that_is_wrong_is_named_though_all_parameters_together_are_within_the_limit():
    start = {"w": np.zeros(100, np.float32), "b": np.zeros(1, np.float32)}
    end = {"w": np.full(100, 10, np.float32), "b": np.full(1, 1e-6, np.float32)}
    exact = dict.fromkeys(start, 0.0)
    reference = OwnReference(start=start, end=end, parameters=("w", "b"), noise=exact, spacing=exact)

    def verdict(b):
        found = Movement(start, {**end, "b": np.full(1, b, np.float32)})
        return own_compare._parameters(found, reference, platform="cpu", few="one device")

    assert verdict(1e-6).ok
    assert not verdict(2e-6).ok and "'b' by itself is 1.0e+00 away" in verdict(2e-6).reason


def test_importing_jaxbench_does_not_import_jax():
    code = "import sys, jaxbench; jaxbench.__version__; print('jax' in sys.modules); jaxbench.OwnStep; jaxbench.Nothing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False"] and "no attribute 'Nothing'" in done.stderr


QUICK = ("--preset=smoke", "--config.mesh.platform=cpu", "--config.measure.rounds=2", "--config.measure.block_s=0.001")


def test_a_sweep_measures_a_step_with_its_ablations(tmp_path):
    """The whole way: processes for each count, the reference as a file, ablations, records and report."""
    words = ("--config.explain=on", "--config.mesh.devices=1,2", "--config.scaling=strong")
    done = jaxbench("run", str(STEPS / "linen_step.py"), *QUICK, *words, f"--workdir={tmp_path / 'run'}")
    assert done.returncode == 0, done.stdout + done.stderr
    points = {point.point: point for point in points_lib.load(RunFolder(tmp_path / "run"))}
    whole = points["own/strong/2"].record
    assert all(check.ok for check in whole.checks), whole.checks
    assert {"own/strong/2/alone", "own/strong/2/local", "own/strong/2/communication"} <= points.keys()
    assert all(point.check_ok for point in points.values()), {name: point.reason for name, point in points.items()}
    page = (tmp_path / "run" / "report.html").read_text()
    assert "your own step: collectives are listed, not judged" in page


def test_processes_of_a_launch_compare_the_settings_that_they_were_given(monkeypatch):
    """Only process 0 reads them, and so learns that they are those of a step."""
    path, compared = str(STEPS / "linen_step.py"), []

    def all_hosts(followers, machine, experiment, config):
        compared.append(config.strategy)
        return machine

    monkeypatch.setattr(run_lib.launch, "all_hosts", all_hosts)
    config = config_lib.compose(path, discovery.load_experiment(path), discovery.load_preset("smoke"))
    config.mesh.devices = "1,2"
    asked = run_lib.ask(path, config, Console(quiet=True), followers=object())
    assert compared == ["all"] and config.strategy == "own"
    batch = {point.point: point.global_batch for point in asked.points}
    assert batch["own/weak/2"] == 2 * batch["own/strong/2"]


@pytest.mark.full
@pytest.mark.parametrize("file", [STEPS / "equinox_step.py", ROOT / "jaxbench/templates/step.py"])
def test_two_processes_measure_a_step(file, tmp_path):
    words = ("run", str(file), *QUICK, "--config.mesh.devices=1,2", "--config.scaling=strong")
    words += (f"--coordinator={start.free_address()}", "--processes=2", f"--workdir={tmp_path / 'run'}")
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [
        subprocess.Popen(sketching(*words, f"--process={n}"), env=environment(), cwd=tmp_path, **output) for n in (1, 0)
    ]
    codes = [ended(process) for process in both]
    assert codes[0][0] == codes[1][0] == 0, codes
    points = {point.point: point for point in points_lib.load(RunFolder(tmp_path / "run"))}
    assert points["own/strong/2"].record.processes == 2
    assert all(point.check_ok for point in points.values()), {name: point.reason for name, point in points.items()}


@pytest.mark.full  # twelve processes
def test_two_settings_of_a_step_are_compared_with_their_ablations(tmp_path):
    """Each arm makes references of its own, in its first pair of processes. `ab` measures ablations only if asked."""
    words = ("--a=--config.batch=8", "--b=--config.batch=16", "--config.explain=more", "--config.mesh.devices=1,2")
    done = jaxbench("ab", str(STEPS / "linen_step.py"), *QUICK, *words, "--budget_s=1", f"--workdir={tmp_path / 'ab'}")
    assert "No further pair fits" in done.stdout, done.stdout + done.stderr
    for arm in "ab":
        points = {point.point: point for point in points_lib.load(RunFolder(tmp_path / "ab" / arm))}
        assert "own/strong/2/local" in points
        assert all(point.check_ok for point in points.values()), {name: point.reason for name, point in points.items()}


def test_try_explains_a_step_that_new_has_written(tmp_path):
    assert jaxbench("new", "mine.py", "--template=step", cwd=tmp_path).returncode == 0
    done = jaxbench("try", "mine.py", "--config.batch=16", cwd=tmp_path)
    text = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9,472 in 2 arrays" in text and "the movement of these 2 arrays" in text and "donated" in text
    assert "all-reduce" in text and text.count("right") == 4


def test_settings_of_a_model_are_refused(tmp_path):
    for word, says in (("strategy=pmap", "has a mesh of its own"), ("lever.precision=bfloat16", "changes a model")):
        done = jaxbench("run", str(STEPS / "linen_step.py"), f"--config.{word}", cwd=tmp_path)
        assert done.returncode == 2 and says in done.stderr
    done = jaxbench("train", str(STEPS / "linen_step.py"), cwd=tmp_path)
    assert done.returncode == 2 and "is your own step, not a model" in done.stderr


def test_what_a_step_counts_inside_of_an_example_is_tokens(tmp_path):
    text = STEPS.joinpath("linen_step.py").read_text()
    (tmp_path / "frames.py").write_text(text.replace('unit="rows"', 'unit="frames", units_per_example=16'))
    done = jaxbench("run", "frames.py", cwd=tmp_path)
    assert done.returncode == 2 and "gives units_per_example=16 and unit='frames'" in done.stderr


def test_on_gpus_each_device_count_has_a_process_that_sees_as_many(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3,5,7")
    name, setup = plan.worker_of(replace(point_of(2, 8), platform="gpu"))
    assert name == "gpu2" and setup.environment["CUDA_VISIBLE_DEVICES"] == "2,3"


def test_the_fewest_devices_that_can_hold_a_step_are_the_reference(tmp_path):
    class Full:
        """Processes with devices that are too small for the whole batch, unless there are `least` of them."""

        def __init__(self, least: int, reason: str = "JaxRuntimeError: RESOURCE_EXHAUSTED: out of memory"):
            self.least, self.reason, self.asked = least, reason, []

        def ask_for(self, point, request):
            self.asked.append(point.devices)
            if point.devices < self.least:
                raise WorkerError(self.reason, stage="check")
            return {}

    points = [point_of(count, 8) for count in (1, 2, 4)]
    two, none, broken_step = Full(2), Full(8), Full(8, "UserError: it cannot be chained")
    for workers, asked, told in (
        (two, [1, 2], {"devices": 2}),
        (none, [1, 2, 4], {"why": "the same step on 4 devices failed"}),
        (broken_step, [1], {"why": "the same step on one device failed: UserError: it cannot be chained"}),
    ):
        made = References(tmp_path, points)
        for point in points:  # those with fewer devices come first, and may have failed
            made.make(workers, point)
        assert workers.asked == asked
        found = made.told(points[2])
        assert all(str(found[key]).startswith(str(value)) for key, value in told.items()), found
