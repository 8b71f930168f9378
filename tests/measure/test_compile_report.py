# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The compile report: separate phases, formulas confirmed, FLOPs by formula equal to those counted in the jaxpr."""

import dataclasses

import jax
import numpy as np
import pytest
from workload_cases import KEY, experiment_workload, linear_workload

from jaxbench import config as config_lib
from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.measure.compile_report import compile_step, example_flops, peak_bytes
from jaxbench.measure.step_facts import held, train_briefly
from jaxbench.workloads.models import image_layers


@pytest.mark.parametrize("strategy", parallel.of_any_model())
def test_phases_and_memory(strategy):
    ticks = iter(range(100))
    workload = linear_workload()
    program = parallel.build(strategy, workload, jax.devices()[:2])
    report = compile_step(workload, program, 8, clock=lambda: float(next(ticks))).report
    assert report.trace_s == (None if strategy == "pmap" else 1.0)
    assert (report.lower_s, report.compile_s) == (1.0, 1.0)
    assert report.parameters == 8
    assert report.expected_gradient_bytes == 32
    # float32 state (8 parameters, step, key) and half of the batch of 8 x 5 values live on each device
    assert report.argument_bytes == pytest.approx(4 * (8 + 1 + 2 + 20), rel=0.2)
    assert report.peak_bytes >= report.argument_bytes


# gpt is causal: see test_models_sequence
@pytest.mark.parametrize("name", sorted(set(config_lib.training_experiments()) - {"gpt"}))
def test_formula_equals_the_jaxpr(name, monkeypatch):
    fewer_products = lambda x, kernel, _: image_layers._plain(x, kernel)  # noqa: E731
    monkeypatch.setattr(image_layers, "_rewritten", fewer_products)
    workload = experiment_workload(name)
    counted = example_flops(dataclasses.replace(workload, flops_per_example=None), 16)
    assert example_flops(workload, 16) == pytest.approx(counted, rel=0.01)


@pytest.mark.parametrize(("name", "parameters"), [("cnn", 215_370), ("mlp", 101_770)])
def test_parameter_count(name, parameters):
    params, _ = jax.eval_shape(experiment_workload(name, tiny=False).init, KEY)
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == parameters


@pytest.fixture
def source_lines():
    """In the text of a program, which is compiled anew."""
    jax.config.update("jax_traceback_in_locations_limit", 10)
    jax.config.update("jax_enable_compilation_cache", False)
    yield
    jax.config.update("jax_traceback_in_locations_limit", 0)
    jax.config.update("jax_enable_compilation_cache", True)


@pytest.mark.usefixtures("source_lines")
def test_a_program_is_the_same_whoever_has_it_compiled():
    def compiled(width=5):
        workload = linear_workload()
        program = parallel.build("jit_auto", workload, jax.devices()[:2])
        return compile_step(workload, program, 8 * width)

    first = compiled()
    again = compiled()  # from another line, which is in the text of the program
    assert first.hlo != again.hlo and first.sha256 == again.sha256
    assert compiled(6).sha256 != first.sha256


# A short training: it learns, reports its result, and is reproducible.


@pytest.fixture(scope="module")
def mlp():
    return experiment_workload("mlp")


def trained(workload, *, steps, batch=50, devices=1):
    program = parallel.build("jit_auto", workload, jax.devices()[:devices])
    return train_briefly(workload, program, workload.data(), steps=steps, batch=batch, seed=0)


def test_more_steps_come_to_more(mlp):
    little, much = trained(mlp, steps=2), trained(mlp, steps=60)
    assert much["final_accuracy"] > 0.7 > little["final_accuracy"] and much["final_loss"] < little["final_loss"]
    assert (little["steps"], much["steps"]) == (2, 60)


def test_it_is_the_same_again_and_on_other_devices(mlp):
    once = trained(mlp, steps=5)
    assert trained(mlp, steps=5) == once
    assert trained(mlp, steps=5, devices=2) == pytest.approx(once, rel=1e-4)


def test_a_loss_that_is_no_number_is_left_out_and_a_batch_larger_than_the_data_one_sentence(mlp):
    broken = dataclasses.replace(mlp, loss=lambda *a: (mlp.loss(*a)[0] * float("nan"), mlp.loss(*a)[1]))
    assert "final_loss" not in trained(broken, steps=1)
    with pytest.raises(UserError, match="train.batch=100000 exceeds the"):
        trained(mlp, steps=1, batch=100_000)


def test_memory_that_a_step_takes_over_from_its_argument_counts_once() -> None:
    x = jax.ShapeDtypeStruct((1 << 20,), "float32")
    once = x.size * x.dtype.itemsize
    for donated, copies in ((0, 1), ((), 2)):
        compiled = jax.jit(lambda x: x + 1, donate_argnums=donated).lower(x).compile()
        assert peak_bytes(compiled.memory_analysis()) == pytest.approx(copies * once, rel=0.01)


def test_a_device_holds_its_shard_of_an_array_and_counters_do_not_count() -> None:
    mesh = jax.make_mesh((2,), ("data",), devices=jax.devices()[:2])
    split, whole = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in (("data",), ()))
    arrays = {"split": ((8, 4), split), "whole": ((3,), whole), "counter": ((), whole)}
    tree = {name: jax.device_put(np.zeros(shape, "float32"), where) for name, (shape, where) in arrays.items()}
    program = parallel.Program(mesh=mesh, init=lambda key: None, step=None, put=lambda batch: batch)
    assert held(tree, program) == 4 * (8 * 4 / 2 + 3)
