# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The default batch: one for CPUs, a larger one for accelerators; an explicit batch applies everywhere."""

import types

import pytest

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.commandline import changed
from jaxbench.discovery import load_experiment, load_preset

MODELS = {**{name: load_experiment(name) for name in config_lib.training_experiments()}}


def batch(config, platform):
    config_lib.choose_batch(config, platform)
    assert config.accelerator_batch == 0  # config.json has one batch, and a repetition uses it on any machine
    return config.batch


def composed(name, preset="auto"):
    return config_lib.compose(name, load_experiment(name), load_preset(preset))


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_batch_for_accelerators(name):
    here, there = batch(composed(name), "cpu"), batch(composed(name), "gpu")
    assert there > here and there % 8 == 0


def test_a_chosen_batch_holds_everywhere():
    preset = types.ModuleType("preset")
    preset.get_config = lambda config: config.update({"batch": 24}) or config
    chosen = [
        changed(composed("cnn"), ["--config.batch=24"]),
        config_lib.compose("cnn", load_experiment("cnn"), preset),
    ]
    assert [batch(config, "gpu") for config in chosen] == [24, 24]
    assert batch(composed("cnn", "smoke"), "gpu") == 16
    both = changed(composed("cnn"), ["--config.batch=24", "--config.accelerator_batch=48"])
    assert batch(both, "tpu") == 48
    base = discovery.changed(load_experiment("cnn").get_config, batch=32)()
    assert (base.batch, base.accelerator_batch) == (32, 0)
