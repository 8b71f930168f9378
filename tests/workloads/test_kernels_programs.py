# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Kernels as compiled by XLA: no wrong copies, hoisting, duplication or fusion."""

from __future__ import annotations

import re
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from doorway import UNOPTIMISED
from kernel_cases import kernels

from jaxbench.cases import runnable
from jaxbench.workloads.cases import Array, KernelWorkload
from jaxbench.workloads.fusion_fence import fenced

ELEMENTS = 2**17
SCRATCH = 1024  # bytes: loop counters and scalars
ELEMENTWISE = [
    case
    for name in ("activation", "stream", "fusion")
    for case in kernels(name, sizes=str(ELEMENTS), impls="fused" if name == "fusion" else "jit")
    if case.elementwise
]


@pytest.fixture(autouse=True)
def fused_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fusion depends on XLA's emitters, so these tests use a user's emitters."""
    options = {"xla_cpu_use_fusion_emitters": True} if "fusion_emitters" in UNOPTIMISED else {}
    jit = partial(jax.jit, donate_argnums=0, keep_unused=True, compiler_options=options)
    monkeypatch.setattr(runnable, "_jit_donating", jit)


def compiled(case: KernelWorkload) -> runnable.Runnable:
    return runnable.compile_kernel(case, jax.devices()[0])


def full_results(program: object, elements: int = ELEMENTS) -> list[str]:
    """The instructions of a compiled program that write an array of this size, by opcode."""
    text = program.as_text()  # type: ignore[attr-defined]
    fused = re.compile(r"^%?\S*(fused_|wrapped_)\S*computation.*?^}", re.MULTILINE | re.DOTALL)
    return re.findall(rf"= f32\[{elements}\]\S* (fusion|copy|multiply|add)\(", fused.sub("", text))


@pytest.mark.parametrize("case", ELEMENTWISE, ids=lambda case: case.key)
def test_a_step_writes_the_result_and_one_value_of_the_argument(case: KernelWorkload) -> None:
    ready = compiled(case)
    for program in (ready.step, ready.loop):
        assert program.memory_analysis().temp_size_in_bytes < SCRATCH  # type: ignore[union-attr]
        assert full_results(program) == ["fusion", "fusion"]


def test_without_it_the_compiler_copies_the_argument_and_computes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason for `fenced`: if this fails, XLA has improved and `fenced` can go."""
    monkeypatch.setattr(runnable, "fenced", lambda function: function)
    (case,) = kernels("fusion", ops="chain", sizes=str(ELEMENTS), impls="fused")
    bare = KernelWorkload(
        op="bare", dtype="float32", elements=ELEMENTS, flops=None, bytes_moved=None, arguments=case.arguments,
        function=_eight, answer=case.answer, elementwise=True,
    )  # fmt: skip
    assert len(full_results(compiled(bare).step)) > 2


def _eight(x: jax.Array) -> jax.Array:
    y = jnp.square(jnp.maximum(x * 1.5 + 0.5, -1.0)) - 2.0
    return jnp.minimum(jnp.abs(y), 3.0) * 0.25


def test_barriers_store_every_operation_and_fusing_none() -> None:
    stored, fused = (
        full_results(compiled(case).step)
        for impl in ("barriers", "fused")
        for case in kernels("fusion", ops="chain", sizes=str(ELEMENTS), impls=impl)
    )
    assert len(fused) == 1 + 1  # and the feedback value
    assert len(stored) == 8 + 1


def test_a_fenced_function_may_contain_calls() -> None:
    """Functions of jax.numpy are calls themselves; inside a piece they are inlined as usual."""
    array = Array((ELEMENTS,))
    function = lambda x: jnp.where(jnp.isnan(x), 0.0, jax.nn.silu(jax.nn.relu(x)))  # noqa: E731
    case = KernelWorkload(
        op="calls", dtype="float32", elements=ELEMENTS, flops=None, bytes_moved=None, arguments=(array,),
        function=function, why_unchecked="only compiled",
    )  # fmt: skip
    text = compiled(case).step.as_text()  # type: ignore[attr-defined]
    assert len(re.findall(r" call\(", text)) == 1


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_on_accelerators_a_piece_stands_between_barriers(platform: str) -> None:
    piece = jax.jit(fenced(jnp.tanh))
    text = piece.trace(jnp.ones(8)).lower(lowering_platforms=(platform,)).as_text()
    assert re.findall(r"optimization_barrier|stablehlo.tanh", text) == [
        "optimization_barrier",
        "stablehlo.tanh",
        "optimization_barrier",
    ]
    assert "inlineable" not in text
