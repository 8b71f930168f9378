# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Requested devices and working devices; calls to the host in a program's text."""

from __future__ import annotations

import ctypes
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from strategy_cases import BATCH
from thin import thin
from workload_cases import experiment_workload, linear_workload

from jaxbench import parallel
from jaxbench.core.schema import Collective
from jaxbench.hlo.module import parse
from jaxbench.hlo.operations import host_calls
from jaxbench.measure import check
from jaxbench.measure.compile_report import callback_names, compile_step
from jaxbench.parallel import axes

SENT = Collective(kind="all-reduce", count=1, bytes=32, elements=8)
SCALAR = Collective(kind="all-reduce", count=1, bytes=4, elements=0, scalars=1)


def inputs(strategy, workload):
    program = parallel.build(strategy, workload, jax.devices()[:2])
    return compile_step(workload, program, BATCH).inputs


def judge(strategy, inputs, *, collectives=(SENT,), asked=2):
    parts = axes.batch_parts(parallel.mesh_sizes(strategy, 2))
    return check.judge_devices(jax.devices()[:asked], parts, *inputs, collectives)


@pytest.mark.parametrize("strategy", thin(parallel.of_any_model(), ["jit_auto", "pmap", "fsdp"]))
def test_strategies_that_split_the_batch_split_it(strategy):
    verdict = judge(strategy, inputs(strategy, linear_workload()))
    assert verdict.ok and verdict.value == 0
    assert verdict.reason == "the compiled step uses the 2 devices asked for, each with 1/2 of the batch"


@pytest.mark.parametrize("strategy", thin(["context", "tensor", "pipeline", "expert"], 1))
def test_strategies_that_split_the_model_or_its_positions(strategy):
    workload = experiment_workload("moe" if strategy == "expert" else "gpt")
    compiled = inputs(strategy, workload)
    assert judge(strategy, compiled).ok
    alone = judge(strategy, compiled, collectives=(SCALAR,))
    assert alone.ok is (strategy != "context")  # it has neither its own examples nor its own parameters
    assert alone.ok or "so they do NOT share the work" in alone.reason


@pytest.mark.parametrize("asked", [1, 3])
def test_other_devices_than_were_asked_for(asked):
    verdict = judge("shard_map", inputs("shard_map", linear_workload()), asked=asked)
    assert not verdict.ok and verdict.value > verdict.limit
    assert f"uses 2 devices, NOT the {asked} that were asked for" in verdict.reason


def test_the_host_calls_of_a_program():
    def told(x):
        pass

    def step(x):
        jax.debug.callback(told, x[0])
        y = io_callback(np.asarray, jax.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True)
        return jax.lax.top_k(y @ jnp.eye(3), 2)

    traced = jax.jit(step).trace(jnp.ones(3))
    found = host_calls(parse(traced.lower().compile().as_text()), callback_names(traced.jaxpr))
    assert sorted(found) == ["debug_callback", "io_callback of 'asarray'"]
    verdict = check.judge_host_calls(found)
    assert not verdict.ok and verdict.name == "host" and "io_callback of 'asarray'" in verdict.reason


GPU = '%c = f32[3] custom-call(%x), custom_call_target="xla_ffi_python_gpu_callback"'
TEXTS = {
    f'{GPU}, metadata={{op_name="jit(step)/pure_callback"}}': "pure_callback",
    GPU: "custom-call",
    '%c = f32[3] custom-call(%x), custom_call_target="xla_ffi_partitioned_python_cpu_callback"': "custom-call",
    "%i = (f32[3], token[]) infeed(%t)": "infeed",
    "%o = token[] outfeed(%x, %t)": "outfeed",
    "%s = (f32[3], u32[], token[]) send(%x, %t), channel_id=1, is_host_transfer=true": "send",
    "%s = (f32[3], u32[], token[]) send(%x, %t), channel_id=1": None,
    '%c = f32[3,3] custom-call(%x, %y), custom_call_target="__cublas$lt$matmul"': None,
    '%c = f32[3] custom-call(%x), custom_call_target="TopK"': None,
    '%c = f32[3] custom-call(%x), custom_call_target="annotate_device_placement"': None,
}


@pytest.mark.parametrize("line", TEXTS)
def test_calls_of_the_host_among_other_custom_calls(line):
    module = parse(f"HloModule m\n\nENTRY %main (x: f32[3]) -> f32[3] {{\n  {line}\n}}\n")
    assert host_calls(module) == ((TEXTS[line],) if TEXTS[line] else ())


def test_a_call_that_the_host_answers_under_a_name_of_its_own():
    """Compiled and run: a sleeping foreign function, registered unlike any callback of jax."""
    slept = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def sleeps(out, inputs):
        slept.append(time.sleep(0.001))
        ctypes.memmove(out, inputs[0], 12)

    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new(ctypes.cast(sleeps, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None)
    jax.ffi.register_ffi_target("fast_math_kernel", capsule, platform="cpu", api_version=0)
    result = jax.ShapeDtypeStruct((3,), jnp.float32)
    call = jax.ffi.ffi_call("fast_math_kernel", result, custom_call_api_version=1, has_side_effect=True)
    compiled = jax.jit(lambda x: jnp.linalg.cholesky(jnp.eye(3)) @ call(x)).trace(jnp.ones(3)).lower().compile()
    assert float(jnp.sum(compiled(jnp.ones(3)))) == 3 and slept
    (found,) = host_calls(parse(compiled.as_text()), platform="cpu")
    verdict = check.judge_host_calls((found,))
    assert not verdict.ok
    assert "waits for the host: a custom call 'fast_math_kernel', which is none of XLA's or jaxlib's" in verdict.reason


def test_compilers_calls_on_a_cpu_are_not_the_hosts():
    def step(x):
        return jax.lax.top_k(jnp.linalg.eigh(x @ x.T)[0] + jnp.linalg.qr(x)[1][0] + jax.scipy.linalg.svd(x)[1], 2)

    text = jax.jit(step).lower(jnp.eye(4)).compile().as_text()
    assert text.count("custom_call_target") >= 3 and host_calls(parse(text), platform="cpu") == ()
