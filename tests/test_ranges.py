# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Numbers that no setting can have are refused, and what a refusal suggests is legal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from absl import flags

from jaxbench import commandline, config, discovery, verbs
from jaxbench.errors import UserError
from jaxbench.records.documents import flatten

verbs.verbs()  # defines all flags
NUMERIC = {name for verb in verbs.verbs().values() for name in verb.flags}
NUMERIC = sorted(name for name in NUMERIC if flags.FLAGS[name].flag_type() in ("int", "float", "bool"))


def composed(experiment: str) -> config.ConfigDict:
    return config.compose(experiment, discovery.load_experiment(experiment), discovery.load_preset("smoke"))


def refused(experiment: str, *words: str) -> str:
    with pytest.raises(UserError) as caught:
        commandline.changed(composed(experiment), list(words))
    return str(caught.value)


@pytest.mark.parametrize("experiment", discovery.experiments())
def test_no_count_of_a_model_is_negative_and_no_number_is_beyond_float32(experiment: str) -> None:
    made = composed(experiment)
    fields = flatten(made.to_dict())
    numbers = {name: value for name, value in fields.items() if type(value) in (int, float)}
    own = {name: value for name, value in numbers.items() if name.startswith("model.") and value >= 0}
    for name, value in own.items():
        assert re.search("is negative.*use .*, for example", refused(experiment, f"--config.{name}=-1")), name
        commandline.changed(made, [f"--config.{name}={value}"])
    for name in (name for name, value in numbers.items() if type(value) is float and name.startswith("model.")):
        for bad in ("nan", "inf", "9e39", "1e-60"):
            assert "for example" in refused(experiment, f"--config.{name}={bad}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--config.model.depth=-1", "negative, which no depth can be: use 1"), ("--config.model.width=0", "no width"),
        ("--config.train.batch=-3", "negative"), ("--config.train.keep=-1", "negative"),
        ("--config.train.warmup=-1", "negative"), ("--config.model.width=99999999999999999999", "beyond"),
    ],
)  # fmt: skip
def test_impossible_numbers_of_a_model_and_its_training_are_refused(words: str, said: str) -> None:
    assert said in refused("mlp", words)


def test_a_zero_leaves_a_number_to_the_named_size_of_a_model() -> None:
    words = ["--config.model.preset=small", "--config.model.width=0", "--config.model.heads=0"]
    assert commandline.changed(composed("remat"), words).model.width == 0
    assert "negative" in refused("remat", "--config.model.width=-1")


@pytest.mark.parametrize("rate", [9e39, 1e-60, float("nan"), float("inf"), -0.1, 0.0])
def test_a_learning_rate_that_float32_cannot_hold_is_refused(rate: float) -> None:
    with pytest.raises(UserError, match=r"learning_rate=.*(use 0.1|such as 0.05)"):
        config.rate("optimizer.learning_rate", rate)
    assert config.rate("optimizer.learning_rate", 1e-30) == 1e-30


def test_a_field_of_somebody_elses_model_may_be_negative(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def get_config():\n    return {'model': {'shift': 0, 'bias': 0.5, 'depth': 2}}\ndef build(config): pass\n"
    )
    module = discovery.load_experiment(str(tmp_path / "mine.py"))
    made = config.compose("mine", module, discovery.load_preset("smoke"))
    commandline.changed(made, ["--config.model.shift=-3", "--config.model.bias=-0.5"])
    with pytest.raises(UserError, match="model.depth=-2 is negative"):
        commandline.changed(made, ["--config.model.depth=-2"])


@pytest.mark.parametrize("name", NUMERIC)
def test_what_a_refused_flag_suggests_is_a_legal_value_of_it(name: str) -> None:
    flag = flags.FLAGS[name]
    example = commandline.example_of(name)
    value = flag.parser.parse(example)  # raises ValueError for what the flag itself refuses
    assert flag.default is None or flag.flag_type() == "bool" or value == flag.default
    error = flags.IllegalFlagValueError(f"flag --{name}=abc: invalid literal")
    assert commandline._sentence(error) == (
        f"--{name}=abc is not {commandline._KINDS[flag.flag_type()]}: use {example}, for example."
    )


LEGAL = {"fault_timeout": 1.0, "budget_s": 1.0, "minutes": 1, "price_per_hour": 0.01, "margin": 1e-6}


@pytest.mark.parametrize("name", LEGAL)
def test_a_suggestion_is_within_the_range_of_the_flag(name: str) -> None:
    most = 1.0 if name == "margin" else float("inf")
    assert LEGAL[name] <= float(commandline.example_of(name)) < most
