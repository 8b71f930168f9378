# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Shared checks of a Program for the tests of several strategies."""

from __future__ import annotations

import jax
from workload_cases import KEY, one_device

from jaxbench import parallel
from jaxbench.core.workload import TrainWorkload
from jaxbench.measure import check, expected_communication
from jaxbench.measure.compile_report import compile_step
from jaxbench.measure.reference import initial_state
from jaxbench.measure.rounding import perturbed

BATCH = 16


def verdicts(workload: TrainWorkload, program: parallel.Program, reference: object = None, options: dict | None = None):
    compiled = compile_step(workload, program, BATCH, options=options)
    batch = workload.synthetic(KEY, BATCH)
    if reference is None:
        reference = one_device(workload, batch)
    actual = check.train(program, compiled.call, KEY, batch)
    parameters, optimizer = check.judge(actual, reference, workload), check.judge_optimizer(actual, reference)
    parameters = check.judge_each(parameters, actual, reference, _perturbed(workload, reference, batch))
    parameters = parameters if optimizer.ok or not parameters.ok else optimizer
    report = compiled.report
    return parameters, expected_communication.judge(workload, program, report, BATCH), report


def assert_right(
    workload: TrainWorkload, program: parallel.Program, reference: object = None, options: dict | None = None
):
    """The compile report. Asserts the parameters of one device and the expected communication."""
    parameters, collectives, report = verdicts(workload, program, reference, options)
    assert parameters.ok, parameters.reason
    assert collectives.ok, collectives.reason
    return report


def _perturbed(workload, reference, batch):
    """Compiles the initial state only if a parameter is far enough from the reference to need it."""
    yield from perturbed(reference, initial_state(workload, KEY, device=jax.devices()[0]), batch)


def stateful(workload: TrainWorkload) -> bool:
    return bool(jax.tree.leaves(jax.eval_shape(workload.init, KEY)[1]))
