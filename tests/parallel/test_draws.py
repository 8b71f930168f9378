# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Random draws of every strategy are reproduced by one device."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from parallel.test_weighted import padded, uneven
from thin import KINDS, thin
from workload_cases import KEY

from jaxbench import parallel
from jaxbench.core.program import Program
from jaxbench.measure import check, reference
from jaxbench.parallel import data_parallel
from jaxbench.parallel.strategies import pipeline
from jaxbench.workloads import rng_keys


def distance(workload, program: Program) -> float:
    """The distance of a program's parameters from those of one device with the same draws, relative to the updates."""
    device, batch = jax.devices()[0], uneven(workload)
    state = reference.initial_state(workload, KEY, device=device)
    expected = reference.reference(
        workload, state, batch, device=device, layout=reference.BatchLayout.of(program, uses_key=True)
    )
    actual = check.train(program, program.step, KEY, batch)
    return reference.relative_l2(actual.params, expected.end.params)


@pytest.mark.parametrize("devices", thin([2, 8], 1))
@pytest.mark.parametrize("strategy", thin(parallel.of_any_model(), KINDS[2:]))
def test_every_strategy(strategy: str, devices: int) -> None:
    if strategy == "jit_explicit":
        pytest.skip("this model names no shardings")
    workload = padded(dropout=0.5)
    assert distance(workload, parallel.build(strategy, workload, jax.devices()[:devices])) < 1e-6


@pytest.mark.parametrize(("strategy", "devices"), thin([("pmap", 2), ("jit_auto", 1), ("jit_auto", 2), ("fsdp", 2)], 1))
def test_micro_batches(strategy: str, devices: int) -> None:
    workload = dataclasses.replace(padded(dropout=0.5), micro_batches=4)
    assert distance(workload, parallel.build(strategy, workload, jax.devices()[:devices])) < 1e-6


@pytest.mark.full
@pytest.mark.parametrize("sizes", [{"stage": 2}, {"data": 2, "stage": 2}, {"stage": 1}])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_pipelines(sizes: dict[str, int], schedule: str) -> None:
    workload = dataclasses.replace(padded(dropout=0.5), micro_batches=4)
    count = int(np.prod([*sizes.values()]))
    program = pipeline.build(workload, jax.devices()[:count], sizes=sizes, schedule=schedule)
    assert distance(workload, program) < 1e-6


@pytest.mark.full
def test_other_programs() -> None:
    """One device, too, folds its index into the key."""
    workload = padded(dropout=0.5)
    assert distance(workload, parallel.build("pmap", workload, jax.devices()[:1])) < 1e-6
    assert distance(workload, data_parallel.build_reduction(workload, jax.devices()[:2], "ring")) < 1e-6
    mixed = parallel.load("hybrid").build(workload, jax.devices()[:4], sizes={"data": 2, "fsdp": 2})
    assert distance(workload, mixed) < 1e-6


@pytest.mark.full
@pytest.mark.parametrize("partitionable", [False, True])
def test_both_generators(partitionable: bool) -> None:
    with jax.threefry_partitionable(partitionable):
        for strategy in ("jit_auto", "shard_map"):
            workload = padded(dropout=0.5)
            assert distance(workload, parallel.build(strategy, workload, jax.devices()[:2])) < 1e-6


def test_one_key_for_all_parts_is_another_draw() -> None:
    workload = padded(dropout=0.5)
    program = parallel.build("pmap", workload, jax.devices()[:2])
    wrong = dataclasses.replace(program, keys=lambda key: np.stack([key, key]))
    assert distance(workload, wrong) > 1e-2
    assert distance(workload, dataclasses.replace(program, keys=None)) > 1e-2


def test_the_keys_of_two_axes_are_folded_one_after_the_other() -> None:
    found = np.asarray(rng_keys.keys_of_parts(2, 3)(KEY))
    assert len(found) == 6 and len(np.unique(found, axis=0)) == 6
    assert np.array_equal(found[4], jax.random.fold_in(jax.random.fold_in(KEY, 1), 1))
