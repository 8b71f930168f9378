# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A training uses the given levers, or says in one sentence which of them it cannot use."""

from __future__ import annotations

import dataclasses
import io
import os
import signal
import types
from pathlib import Path

import jax
import pytest
from rich.console import Console
from train_cases import before_step, toy_workload, train_toy
from workload_cases import TINY

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.errors import Unsupported, UserError
from jaxbench.features.training import run

HYBRID = {"train.strategy": "hybrid", "lever.mesh": "data=2,tensor=2"}
MACHINE = {"platform": "cpu", "devices": 1, "device_kinds": ["cpu"], "device_kind": "cpu", "cores": 4}


@pytest.fixture
def built(monkeypatch):
    """The input of `train`: a function from an experiment and changes of its config to (workload, Program)."""
    seen = []

    def take(workload, builder, **about):
        seen[:] = [workload, builder(workload)]
        return types.SimpleNamespace(params_sha256="", stopped_by=None, reached=True)

    monkeypatch.setattr(run.manifest_lib, "probe", lambda platform: MACHINE)
    monkeypatch.setattr(run.start, "start", lambda platform, devices, **about: jax.devices()[:devices])
    monkeypatch.setattr("jaxbench.features.training.train.train", take)

    def build(experiment, **changes):
        config = config_lib.compose(experiment, discovery.load_experiment(experiment), TINY)
        with config.unlocked():
            config.update_from_flattened_dict({"mesh.devices": "4", **changes})
        assert run.train(experiment, config, Path("nowhere"), Console(file=io.StringIO())) == 0
        return seen

    return build


def test_the_mesh_is_the_one_that_was_asked_for(built):
    _, program = built("mlp", **HYBRID)
    assert dict(program.mesh.shape) == {"data": 2, "tensor": 2}


def test_an_option_that_xla_does_not_know_is_refused_before_training(built):
    with pytest.raises(UserError, match="has xla_nonsense, which this XLA does not know"):
        built("mlp", **{"lever.compiler": "xla_nonsense=1"})


@pytest.mark.full
def test_a_pipeline_has_its_schedule_and_its_micro_batches(built):
    place = {"train.strategy": "pipeline", "lever.schedule": "interleaved", "model.layers": 4, "mesh.devices": "2"}
    place |= {"model.width": 16, "model.heads": 2, "model.context": 16}
    with pytest.raises(UserError, match="accumulate=3"):  # only this schedule refuses it
        built("gpt", **place, **{"lever.accumulate": "3"})
    workload, program = built("gpt", **place, **{"lever.accumulate": "4"})
    assert dict(program.mesh.shape) == {"stage": 2} and workload.micro_batches == 4


BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}


@pytest.mark.parametrize(
    ("levers", "options"),
    [
        ({}, None),
        ({"accumulate": "2"}, BARRIERS),
        ({"remat": "block"}, BARRIERS),
        ({"remat": "block", "compiler": "wide_vectors"}, {**BARRIERS, "xla_cpu_prefer_vector_width": "512"}),
    ],
    ids=str,
)
def test_the_compiler_has_the_options_of_the_levers(tmp_path, levers, options):
    told = []

    def recorded(program):
        def compiled(options=None):
            told.append(options)
            return step

        step = program.step.lower().compile()
        lowered = types.SimpleNamespace(compile=compiled)
        return dataclasses.replace(program, step=types.SimpleNamespace(lower=lambda *arguments: lowered))

    train_toy(tmp_path / "compiled", epochs=1)
    train_toy(tmp_path / "told", epochs=1, session={"levers": levers}, wrap=recorded)
    assert told == [options]


def test_a_loss_that_cannot_take_the_batch_in_pieces_is_refused_as_by_run(built):
    model = {"lever.remat": "none", "train.strategy": "shard_map"}
    built("contrastive", **model)  # its loss gathers the other devices' examples
    with pytest.raises(Unsupported, match="compares all examples of a batch with each other"):
        built("contrastive", **model, **{"lever.accumulate": "2"})


def test_micro_batches_that_do_not_divide_are_refused(tmp_path):
    with pytest.raises(UserError, match="lever.accumulate=3 does not divide the 2 examples that each of 8 devices"):
        train_toy(tmp_path, workload=dataclasses.replace(toy_workload(), micro_batches=3))


def test_a_training_may_continue_on_another_mesh_and_says_so(tmp_path):
    def said(mesh):
        text = io.StringIO()
        where = {"elsewhere": {"lever": {"mesh": mesh}}, "session": {"levers": {"mesh": mesh}}}
        stop = lambda program: before_step(program, 2, lambda: os.kill(os.getpid(), signal.SIGTERM))  # noqa: E731
        train_toy(tmp_path, console=Console(file=text, width=200), wrap=stop, **where)
        return text.getvalue()

    assert "strategy jit_auto, mesh=data=8:" in said("data=8")
    assert "It was trained on 8 devices, strategy jit_auto, mesh=data=8: the final bits may differ" in said("fsdp=8")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({**HYBRID, "lever.schedule": "1f1b"}, "lever.schedule=1f1b"),
        ({"lever.mesh": "data=2,tensor=2"}, "lever.mesh=data=2,tensor=2"),
        ({"lever.sequence_parallel": "on"}, "lever.sequence_parallel=on"),
        ({"lever.part": "forward"}, "lever.part=forward is not for training"),
        ({"lever.execution": "jit"}, "lever.execution=jit is not for training"),
        ({"lever.input": "host"}, "lever.input=host is not for training"),
        ({"lever.batch": "8"}, "lever.batch=8 is not for training"),
        ({"lever.reduction": "ring"}, "lever.reduction=ring is not for training"),
        ({"train.strategy": "hybrid", "lever.mesh": "all"}, "lever.mesh has several values"),
        ({"train.strategy": "hybrid"}, "use --config.lever.mesh=data=4"),
        ({"lever.precision": "default,bfloat16"}, "lever.precision has several values"),
        ({"data.path": "/no/such"}, "data.path=/no/such does not exist"),
        ({"mesh.devices": "8,16"}, "mesh.devices=8,16: training uses one device count, such as 16"),
    ],
)
def test_levers_that_training_cannot_use_are_refused_by_name(built, changes, said):
    with pytest.raises(UserError, match=said):
        built("mlp", **{"train.batch": 16, **changes})
