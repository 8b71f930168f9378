# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Levers on the command line: their arms, and the messages for illegal values."""

import pytest
from ml_collections import ConfigDict

from jaxbench import levers
from jaxbench.errors import UserError
from jaxbench.report import build


def lever(**changes: str) -> ConfigDict:
    config = levers.defaults()
    config.update(changes)
    return config


def test_every_declared_lever_is_listed_and_its_default_is_legal():
    declared = [value for value in vars(levers).values() if isinstance(value, levers.Lever)]
    assert {lever.name for lever in declared} == {*levers.LEVERS, *levers.OF_GENERATION}
    for lever in (*levers.LEVERS.values(), *levers.OF_GENERATION.values()):
        assert lever.of({}) == lever.read(lever.default) and not lever.swept(lever.words(lever.default))
        assert lever.view in build.views_of("levers") or lever.view == "decode"


def test_values_are_typed_once():
    setting = {"accumulate": "4", "input": "pipeline:2", "reduction": "ring:bfloat16", "sequence_parallel": "on"}
    read = {name: levers.LEVERS[name].of(setting) for name in (*setting, "batch")}
    assert read == {
        "accumulate": 4, "input": ("pipeline", 2), "reduction": ("ring", "bfloat16"), "sequence_parallel": True,
        "batch": 0,
    }  # fmt: skip


def test_a_new_lever_comes_after_these():
    """Users' scripts read the names of arms, so a new lever comes last."""
    assert list(levers.LEVERS)[:16] == [
        "precision", "remat", "accumulate", "freeze", "batch", "part", "execution", "input", "reduction", "mesh",
        "schedule", "sequence_parallel", "compiler", "trainings", "context_attention", "gather",
    ]  # fmt: skip


def test_no_lever_is_one_arm_without_a_name():
    (arm,) = levers.arms(lever())
    assert arm.name == "" and arm.levers == levers.DEFAULTS
    assert levers.swept(lever()) == ()


def test_several_values_are_swept_and_every_combination_is_an_arm():
    config = lever(precision="default, bfloat16", accumulate="1,4", remat="block")
    names = [arm.name for arm in levers.arms(config)]
    assert names == [
        "precision=default, accumulate=1",
        "precision=default, accumulate=4",
        "precision=bfloat16, accumulate=1",
        "precision=bfloat16, accumulate=4",
    ]
    assert {arm.levers["remat"] for arm in levers.arms(config)} == {"block"}
    assert levers.swept(config) == ("precision", "accumulate")


def test_each_rung_of_a_ladder_keeps_those_below():
    config = lever(input="host", ladder="execution=eager; execution=jit; precision=bfloat16")
    rungs = levers.arms(config)
    assert [rung.name for rung in rungs] == ["execution=eager", "execution=jit", "precision=bfloat16"]
    assert [(r.levers["execution"], r.levers["precision"]) for r in rungs] == [
        ("eager", "default"), ("jit", "default"), ("jit", "bfloat16"),
    ]  # fmt: skip
    assert {rung.levers["input"] for rung in rungs} == {"host"} and levers.swept(config) == ("ladder",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"precision": "bfloat"}, "lever.precision=bfloat is unknown: did you mean 'bfloat16'"),
        ({"remat": "blocks"}, "did you mean 'block'"),
        ({"accumulate": "0"}, "accumulate=0 is not a whole number of at least 1"),
        ({"accumulate": "two"}, "accumulate=two is not a whole number"),
        ({"batch": "-1"}, "batch=-1 is not a whole number of at least 0"),
        ({"input": "pipeline"}, "use device, host or pipeline:2"),
        ({"input": "grain:2"}, "use device, host or pipeline:2"),
        ({"trainings": "0"}, "trainings=0 is no number of trainings: use 2, or 2:mps"),
        ({"trainings": "2:mpi"}, "trainings=2:mpi is no number of trainings"),
        ({"part": " , "}, "lever.part is empty: use step"),
        ({"ladder": "execution=jit"}, "has one rung"),
        ({"ladder": ";"}, "ladder=; has an empty rung: use 'execution=jit; remat=block'"),
        ({"ladder": "execution=jit; ; remat=block"}, "ladder=execution=jit; ; remat=block has an empty rung"),
        ({"ladder": "execution=jit; precison=bfloat16"}, "did you mean 'precision'"),
        ({"ladder": "execution=jit; precision=bf16"}, "precision=bf16 is unknown"),
        ({"ladder": "execution=jit; execution=donated", "remat": "none,block"}, "use only one"),
    ],
)
def test_a_value_that_is_none_is_named(changes, said):
    with pytest.raises(UserError, match=said):
        levers.arms(lever(**changes))
