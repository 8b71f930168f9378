# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `compiler`: its arms, the options that XLA gets, and the messages for options that XLA refuses."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import jax
import pytest
from experiment_cases import MACHINE, composed, measure, points_of

from jaxbench import config as config_lib
from jaxbench import levers
from jaxbench.errors import Unsupported, UserError
from jaxbench.measure import model_steps
from jaxbench.measure.arm import Arms, build_program, require_options
from jaxbench.measure.arm import compiler_options as options_of
from jaxbench.processes.server import StageError
from jaxbench.report import sentences
from jaxbench.sweep import plan

ONE = {"mesh.devices": "1", "scaling": "strong"}
CPU = levers.set_names("cpu")


def arms(text: str, **more: str) -> list[levers.Arm]:
    config = levers.defaults()
    config.update(compiler=text, **more)
    return levers.arms(config)


def test_every_set_of_the_platform_is_an_arm_once():
    made = plan.possible(arms("default; fast_math; all"), MACHINE)
    assert [arm.levers["compiler"] for arm in made] == ["default", "fast_math", *(n for n in CPU if n != "fast_math")]
    assert [arm.name for arm in made] == [f"compiler={arm.levers['compiler']}" for arm in made]
    assert [a.levers["compiler"] for a in plan.possible(arms("all"), {**MACHINE, "platform": "gpu"})] == (
        levers.set_names("gpu")
    )


@pytest.mark.parametrize("joined", ["+", " ", " --"])
def test_a_set_is_written_as_in_xla_flags(joined):
    (arm,) = arms(f"xla_a=1,B{joined}xla_b=TRUE{joined}xla_c=+WHILE{joined}xla_d=")
    value = levers.LEVERS["compiler"].of(arm.levers)
    assert value == {"xla_a": "1,B", "xla_b": True, "xla_c": "+WHILE", "xla_d": ""}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("wide_vector", "has 'wide_vector', which is no set.*did you mean 'wide_vectors'"),
        ("cpu_ftz=true", "has 'cpu_ftz=true', which is no set, and no option such as xla_option=value"),
        ("default,wide_vectors", "has 'default,wide_vectors': separate sets by ';'"),
        ("xla_cpu_ftz", "xla_cpu_ftz without a value: write xla_cpu_ftz=true"),
        ("wide_vectors+xla_cpu_prefer_vector_width=128", "sets xla_cpu_prefer_vector_width twice"),
        ("xla_force_host_platform_device_count=2", "belongs to the process.*use --config.mesh.devices"),
    ],
)
def test_text_that_is_no_set_is_named(text, said):
    with pytest.raises(UserError, match=said):
        arms(text)


@pytest.mark.parametrize("text", ["latency_hiding", "xla_tpu_scoped_vmem_limit_kib=1"])
def test_options_of_another_platform_are_refused_with_the_sets_of_this_one(text):
    with pytest.raises(UserError, match=f"is for a [gt]pu, but this is a cpu: use {', '.join(CPU)}"):
        plan.possible(arms(f"default; {text}"), MACHINE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("xla_cpu_prefer_vector_widht=512", "does not know.*did you mean 'xla_cpu_prefer_vector_width'"),
        ("xla_nonsense=1", "has xla_nonsense, which this XLA does not know.*the whole process with XLA_FLAGS"),
        ("xla_cpu_prefer_vector_width=wide", "=wide is refused by this XLA .*'wide'.*: use default"),
    ],
)
def test_options_that_xla_refuses_are_one_sentence_before_any_point(text, said):
    with pytest.raises(UserError, match=said):
        require_options({"compiler": text}, jax.devices()[0])
    config = config_lib.plain(composed("mlp", **ONE, **{"lever.compiler": f"default; {text}"}))
    with pytest.raises(StageError) as caught:
        model_steps.bench(config, "mlp", jax.devices(), "session0/here")
    assert caught.value.stage == "model" and isinstance(caught.value.__cause__, UserError)
    assert "\n" not in str(caught.value.__cause__)


def test_a_step_that_is_not_compiled_as_a_whole_has_no_options():
    with pytest.raises(UserError, match="execution=eager runs it operation by operation"):
        require_options({"compiler": "fast_math", "execution": "eager"}, jax.devices()[0])
    require_options({"compiler": "default", "execution": "eager"}, jax.devices()[0])


def test_the_options_reach_the_compiler_and_only_its_arm():
    sets = "default; xla_disable_hlo_passes=fusion,priority-fusion; xla_disable_hlo_passes=no-such-pass"
    config = composed("mlp", **ONE, strategy="jit_auto", **{"lever.compiler": sets})
    programs = [record.program_sha256 for record in measure("mlp", config)]
    assert programs[0] == programs[2] != programs[1]


def test_passes_that_another_lever_disables_stay_disabled():
    setting = {**levers.DEFAULTS, "accumulate": "2", "compiler": "wide_vectors+xla_disable_hlo_passes=dce"}
    workload = Arms(composed("mlp"), "mlp", jax.devices()[0]).workload(setting)
    program = build_program(workload, "jit_auto", jax.devices()[:1], setting)
    assert options_of(setting, program) == {
        "xla_cpu_prefer_vector_width": "512", "xla_disable_hlo_passes": "cse_barrier_expander,dce",
    }  # fmt: skip
    assert options_of({**levers.DEFAULTS}, program) == {}


def test_a_set_of_another_release_is_not_supported_and_fails_nothing_where_all_were_asked_for():
    asked = {**ONE, "strategy": "jit_auto", "lever.compiler": "default; all"}
    bench = model_steps.bench(config_lib.plain(composed("mlp", **asked)), "mlp", jax.devices(), "session0/here")
    point = dataclasses.replace(points_of(composed("mlp", **asked))[1], levers={"compiler": "xla_cpu_of_tomorrow=1"})
    with pytest.raises(StageError) as caught:
        bench.prepare(point.to_json())
    assert caught.value.stage == "build" and isinstance(caught.value.__cause__, Unsupported)
    why = str(caught.value.__cause__)
    rows = [
        SimpleNamespace(
            point=SimpleNamespace(point=name, strategy="jit_auto", status=status, reason=why), point_id=name
        )
        for name, status in (("a", "ok"), ("b", "unsupported"))
    ]
    assert sentences.excused(rows, bench.config.to_dict()) == [f"b: {why}"]
    assert sentences.excused(rows, composed("mlp", **{**asked, "lever.compiler": "fast_math"}).to_dict()) == []
    assert sentences.excused(rows[1:], bench.config.to_dict()) == []


@pytest.mark.full
def test_flags_measures_every_set_and_each_has_the_plain_result():
    found = measure("flags", composed("flags", **ONE))
    assert [record.levers["compiler"] for record in found] == ["default", *CPU]
    assert len({record.program_sha256 for record in found}) > 2
    assert points_of(composed("flags"))[-1].devices == 2
