# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""An experiment at its tiny size in this process: planned, prepared with all checks, and measured once."""

from __future__ import annotations

import functools

import jax
from ml_collections import ConfigDict

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.analysis.step_work import BEYOND, Stated
from jaxbench.core import schema
from jaxbench.core.point import Point
from jaxbench.measure import model_steps
from jaxbench.sweep import plan

MACHINE = {"platform": "cpu", "device_kind": "cpu", "devices": 8, "cores": 8, "memory_bytes": 2**33}


def composed(name: str, **changes: object) -> ConfigDict:
    config = config_lib.compose(name, discovery.load_experiment(name), discovery.load_preset("smoke"))
    with config.unlocked():
        config.measure.block_s = 0.001
        config.update_from_flattened_dict(changes)
    return config


@functools.cache  # it loads every experiment, and is asked for while tests are collected
def lever_experiments() -> tuple[str, ...]:
    """The suite's experiments that vary a lever of another experiment's model."""
    modules = {name: discovery.load_experiment(name) for name in discovery.experiments()}
    return tuple(name for name, module in modules.items() if module.build.__module__ != module.__name__)


def points_of(config: ConfigDict) -> list[Point]:
    return plan.make(config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model()), MACHINE)


def contradiction(record: schema.PointRecord) -> str:
    """How the counted products of a step differ from its formula; "" if they agree, or cannot all be counted."""
    beyond = sum(record.facts.get(name, 0.0) for name in BEYOND)
    stated = Stated(record.compile_report.flops_per_step, record.global_batch, record.devices, beyond)
    return stated.contradiction(record.work) or ""


def measure(name: str, config: ConfigDict) -> list[schema.PointRecord]:
    """The record of each point, in the order of the plan. Asserts that each passes its checks."""
    bench = model_steps.bench(config_lib.plain(config), name, jax.devices(), "session0/here")
    found = []
    for point in points_of(config):
        record = bench.prepare(point.to_json())
        bad = [check.reason for check in record.checks if not check.ok]
        assert record.checks and not bad, (point.point, bad)
        assert not contradiction(record), point.point
        assert schema.from_json(schema.to_json(record)).levers == point.levers
        measured = bench.round(point.point, 0)
        assert min(measured.block_s) > 0 and measured.compilations == 0
        bad = [check.reason for check in measured.checks if not check.ok]
        assert measured.checks and not bad, (point.point, bad)
        found.append(record)
    return found
