# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models after public bug reports (tests/brought_cases): the answers of `try` and `train`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from doorway import ROOT, jaxbench
from flax import nnx
from thin import thin

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.core.point import Point
from jaxbench.features.try_model import trial
from jaxbench.levers import DEFAULTS
from jaxbench.measure import first_step, model_steps
from jaxbench.processes.client import WorkerError
from jaxbench.processes.messages import Failed, Tried, Try
from jaxbench.processes.server import _attempt
from jaxbench.workloads import from_nnx
from jaxbench.workloads.adapters import flax_models

CASES = ROOT / "tests" / "brought_cases"
KEY = jax.random.PRNGKey(0)


class Here:
    """Answers requests like a worker, in this process."""

    def __init__(self, name: str, **model: Any):
        path = str(CASES / f"{name}.py")
        preset = discovery.load_preset("smoke")
        config = config_lib.compose(name, discovery.load_experiment(path), preset, tiny=True)
        for field, value in model.items():
            config.model[field] = value
        self.bench = model_steps.bench(config_lib.plain(config), path, jax.devices(), "try")

    def ask(self, request: Try) -> Tried:
        answer = _attempt(lambda: trial.attempt(self.bench, request.point))
        if isinstance(answer, Failed):
            facts = dataclasses.asdict(answer)
            del facts["follows"]  # it is for the supervisor
            raise WorkerError(**facts)
        return answer

    def tried(self, strategy: str, devices: int = 2) -> tuple[str, str]:
        outcome = trial._try(self, strategy, devices)  # type: ignore[arg-type]
        return outcome.word, outcome.note


@pytest.mark.parametrize(
    ("name", "model", "strategies"),
    [
        ("r_fft", {}, ("fsdp", "zero2")),
        ("c20_partitioned", {"logical": False}, ("fsdp", "jit_auto", "jit_explicit", "pmap")),
        ("c20_partitioned", {"logical": True}, ("jit_explicit",)),
        ("c20b_nnx_sharded", {}, ("fsdp", "jit_explicit", "shard_map")),
        ("c11_multisteps", {"every": 8}, ("fsdp", "jit_auto")),
    ],
    ids=str,
)
def test_right(name: str, model: dict[str, Any], strategies: tuple[str, ...]) -> None:
    here = Here(name, **model)
    for strategy in strategies:
        word, note = here.tried(strategy)
        assert word == "right", (strategy, note)


def test_the_check_makes_as_many_updates_as_change_a_parameter() -> None:
    here = Here("c11_multisteps", every=8)
    point = {"levers": dict(DEFAULTS), "point": "p", "strategy": "jit_auto", "scaling": "strong", "devices": 2}
    point |= {"global_batch": 16, "oversubscribed": True, "platform": "cpu"}
    checks = trial.attempt(here.bench, vars(Point(**point))).checks
    assert "after 12 updates" in checks[0].reason and checks[0].ok, checks[0]


def test_an_inconclusive_comparison_is_not_wrong() -> None:
    word, note = Here("c11_multisteps", every=100).tried("jit_auto")
    assert word == "cannot" and "unchecked" in note and "no parameter changed in 48 updates" in note, note


@pytest.mark.parametrize("strategy", ["jit_auto", "fsdp"])
def test_an_optimizer_of_single_gradients_is_refused_alike_under_every_strategy(strategy: str) -> None:
    word, note = Here("c16_dpsgd", how="optax").tried(strategy)
    assert word == "cannot" and "needs a gradient for each example" in note, note


def test_a_backward_pass_that_clips_is_named() -> None:
    here = Here("c17_custom_vjp")
    word, note = here.tried("shard_map")
    assert word == "wrong" and "the backward pass is not linear" in note and "--config.strategy=jit_auto" in note, note
    assert here.tried("jit_auto")[0] == "right"


def test_a_backward_pass_that_clips_each_example_is_linear_in_the_loss() -> None:
    bench = Here("c16_dpsgd", how="custom_vjp").bench
    plain = bench.steps.plain
    batch = plain.synthetic(KEY, 16)
    assert first_step.diagnosis(plain, KEY, batch, device=jax.devices()[0]) == []


def test_a_loss_that_is_no_number_names_the_line_and_no_distance() -> None:
    word, note = Here("c_nan").tried("jit_auto")
    assert word == "wrong" and "c_nan.py', line 13" in note and "distance" not in note, note


def test_an_exception_is_an_error_and_not_wrong() -> None:
    word, note = Here("c_raises").tried("shard_map")
    assert word == "error" and note.endswith("c_raises.py', line 13: RuntimeError: too few examples"), note


def test_try_says_which_axes_it_ignored() -> None:
    (note,) = trial.describe(Here("c20_partitioned", logical=False).bench).notes
    assert "for 2 of its parameters (Dense_0/kernel: embed, mlp; Dense_1/kernel: mlp, None)" in note


def test_try_says_each_reason_once() -> None:
    done = jaxbench("try", str(CASES / "c16_dpsgd.py"), "--config.model.how=optax")
    assert done.returncode == 1 and done.stdout.count("needs a gradient for each example") == 1, done.stdout
    assert "every strategy: the optimizer" in done.stdout and "can be measured" not in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    thin(
        [
            (("r_fft.py", "--config.train.strategy=fsdp", "--config.train.epochs=1"), 1, "not reached"),
            (("c06_train.py", "--config.train.strategy=shard_map"), 2, "use --config.train.strategy=jit_auto."),
            (("c20_partitioned.py", "--config.model.logical=false", "--config.train.epochs=1"), 0, "reached"),
            (("c_raises.py", "--config.train.strategy=shard_map"), 2, "line 13: RuntimeError: too few examples"),
            (("c_nan.py",), 2, "the loss became nan at step 1: the model or its data are at fault"),
        ],
        2,
    ),
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_train_ends_with_a_result_or_a_sentence(tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    settings = (*words[1:], "--config.mesh.devices=2", f"--workdir={tmp_path / 'w'}")
    done = jaxbench("train", str(CASES / words[0]), *settings)
    assert done.returncode == code and said in done.stdout + done.stderr, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("kind=a", "--config.model.kind=a cannot be set, as its default, None, has no type"),
        ("names=a,b", "--config.model.names=a,b cannot be set, as its default is a list: write a tuple"),
        ("dropout=x", "--config.model.dropout=x is not a number: use 0.5, for example."),
    ],
)
def test_a_setting_that_has_no_type_is_one_sentence(setting: str, said: str) -> None:
    done = jaxbench("try", str(CASES / "c38_config_kinds.py"), f"--config.model.{setting}")
    assert done.returncode == 2 and said in done.stderr and "ml_collections" not in done.stderr, done.stderr


def test_arrays_of_an_nnx_model_may_have_keys_that_are_tuples() -> None:
    class Net(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.scales = nnx.data({("kernel",): jnp.full(4, 2.0)})
            self.w = nnx.Param(jnp.ones((3, 4)))

        def __call__(self, x: jax.Array) -> jax.Array:
            return x @ self.w * self.scales["kernel",]

    model = from_nnx(Net)
    params, state = model.init(KEY)
    assert model.predict(params, state, jnp.ones((2, 3))).tolist() == [[6.0] * 4] * 2


def test_an_init_of_a_model_that_names_no_axes_has_nothing_to_say() -> None:
    assert flax_models.named_axes_sentence(from_nnx(lambda rngs: nnx.Linear(2, 3, rngs=rngs)).init) == ""
    assert flax_models.named_axes_sentence(optax.sgd(0.1).init) == ""
