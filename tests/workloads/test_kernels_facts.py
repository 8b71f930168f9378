# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Facts that experiments state about kernels: names, sizes, FLOPs, bytes; and messages for a wrong config."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jax
import numpy as np
import pytest
from house.tree import ROOT
from kernel_cases import composed, experiments_with_kernels, kernels

from jaxbench.errors import UserError
from jaxbench.runner.case_bench import build_cases
from jaxbench.runner.placement import CPU_FLOPS
from jaxbench.workloads.cases import VIEWS
from jaxbench.workloads.kernels import fusion, matmul

EXPERIMENTS = experiments_with_kernels()


def one(name: str, **changes: Any):
    (case,) = kernels(name, **changes)
    return case


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_case_has_a_name_of_its_own_and_a_right_answer(name: str) -> None:
    cases = kernels(name)
    assert len({case.key for case in cases}) == len(cases)
    assert build_cases(composed(name), name).view in VIEWS
    for case in cases:
        assert (case.function is None) != (case.prepare is None), case.key
        assert (case.answer is None) != (case.wrong is None), case.key


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("field", ["ops", "impls", "dtypes"])
def test_an_unknown_name_is_answered_with_a_near_one(name: str, field: str) -> None:
    first = str(composed(name)[field]).split(",")[0]
    known = {"ops": kernels(name)[0].op, "impls": kernels(name)[0].impl}.get(field, first)
    with pytest.raises(UserError, match=f"--config.{field}={known}x is unknown: did you mean '{known}'"):
        kernels(name, **{field: f"{known}x"})


@pytest.mark.parametrize("name", [n for n in EXPERIMENTS if n != "dispatch"])
def test_sizes_that_were_typed_are_marked_so(name: str) -> None:
    assert not build_cases(composed(name), name).typed
    assert build_cases(composed(name, sizes="64"), name).typed
    with pytest.raises(UserError, match="is not a size"):
        kernels(name, sizes="many")


def test_dispatch_has_no_sizes() -> None:
    with pytest.raises(UserError, match="sizes=64.* use auto"):
        kernels("dispatch", sizes="64")


def test_building_cases_touches_no_device() -> None:
    """The parent of a run builds them and must not start a backend: no backend has this name."""
    code = (
        "import jax; jax.config.update('jax_platforms', 'nowhere')\n"
        f"from kernel_cases import kernels\nassert all(kernels(name) for name in {EXPERIMENTS})"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = ['.', 'tests']\n{code}"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_work_of_each_kernel_by_hand() -> None:
    relu = one("activation", ops="relu", sizes="1000", impls="jit")
    assert (relu.flops, relu.bytes_moved) == (1000, 8000)
    assert one("activation", ops="tanh", sizes="1000", impls="jit").flops is None
    assert one("activation", ops="tanh", sizes="1000", impls="python").bytes_moved is None
    stream = {op: one("stream", ops=op, sizes="1Ki", impls="jit") for op in ("copy", "scale", "add", "triad")}
    assert [case.bytes_moved for case in stream.values()] == [8192, 8192, 12288, 12288]
    assert [case.flops for case in stream.values()] == [None, 1024, 1024, 2048]
    assert one("linalg", ops="cholesky", sizes="30", impls="jit").flops == 9000
    assert one("linalg", ops="lu", sizes="30", impls="scipy").flops == 18000
    assert one("linalg", ops="qr", sizes="30", impls="numpy").flops == 72000
    assert one("linalg", ops="svd", sizes="30", impls="jit").flops is None
    rows = {op: one("versus", ops=op, sizes="10", impls="jit").flops for op in ("product", "mlp", "cnn", "lstm")}
    first, last = 2 * 784 * 128, 2 * 128 * 10
    assert (rows["product"], rows["mlp"]) == (10 * first, 10 * (2 * first + 3 * last))
    assert rows["cnn"] == 10 * (2 * 2 * 12 * 12 * 25 * 8 + 3 * 2 * 12 * 12 * 8 * 10)
    assert rows["lstm"] == 10 * 3 * (16 * 2 * (16 + 32) * 128 + 2 * 32 * 5)


@pytest.mark.parametrize(
    "shape, label, operands",
    [
        ("square", "1024x1024x1024", 2 * 1024**2),
        ("tall", "16384x256x256", 16384 * 256 + 256**2),
        ("batched", "64x256x256x256", 2 * 64 * 256**2),
    ],
)
def test_products_of_one_size_have_the_same_work_in_every_shape(shape: str, label: str, operands: int) -> None:
    case = one("matmul", shapes=shape, sizes="1024", dtypes="bfloat16", impls="jit")
    assert (case.shape, case.elements, case.flops) == (label, 1024, 2 * 1024**3)
    results = operands // 2 if shape != "tall" else 16384 * 256
    assert case.bytes_moved == 2 * (operands + results)


def test_short_formats_return_longer_ones() -> None:
    case = one("matmul", shapes="square", sizes="1024", dtypes="int8", impls="jit")
    assert case.bytes_moved == (1 + 1 + 4) * 1024**2


def test_only_what_can_be_tiled_is() -> None:
    tiled = [c for c in kernels("matmul", dtypes="float32,bfloat16") if c.impl.endswith("tiled")]
    assert {c.shape for c in tiled} == {f"{s}x{s}x{s}" for s in (256, 512, 1024)}
    assert {c.dtype for c in tiled} == {"float32"}
    assert {c.dtype for c in kernels("matmul", dtypes="float32,bfloat16") if c.impl == "numpy"} == {"float32"}


def test_the_search_has_27_shapes_for_a_cpu_and_the_published_winners_for_others() -> None:
    found = kernels("matmul", search=True, dtypes="bfloat16")
    assert {c.impl for c in found} == {"jit"}
    assert len([c for c in found if c.flops <= CPU_FLOPS]) == 27
    assert {"16384x16384x16384", "1024x10240x5120", "2048x2048x13312", "1792x16128x3072"} < {c.shape for c in found}
    assert len(kernels("matmul", search=True, sizes="64,128", dtypes="bfloat16")) == 8


def test_a_product_with_a_term_left_out_is_wrong_and_one_of_rounded_factors_is_not() -> None:
    case = one("matmul", shapes="square", sizes="512", dtypes="float32", impls="jit")
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 512, 512))
    assert case.wrong(a[:, 1:] @ b[1:], (a, b)) > 10_000
    short = (x.astype(jax.numpy.bfloat16).astype(float) for x in (a, b))
    assert case.wrong(next(short) @ next(short), (a, b)) == 0
    assert matmul.wrong_rows(a @ b * (1 + 1e-3), (a, b), 1e-5) > 100_000


@pytest.mark.parametrize("op", fusion.OPS)
@pytest.mark.parametrize("elements", [500, 20_000])
def test_passes_over_memory_are_what_the_operations_read_and_write(op: str, elements: int) -> None:
    """Counted by running the kernel with an `op` that adds up the bytes of operands and result."""
    moved = 0

    def count(function, *operands):
        nonlocal moved
        result = jax.eval_shape(lambda *arrays: function(*_filled(operands, arrays)), *_arrays(operands))
        moved += sum(x.size * 4 for x in {id(x): x for x in _arrays(operands)}.values()) + result.size * 4
        return result

    given = fusion.arguments(op, "float32", elements)
    fusion.KERNELS[op].function(count, *(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in given))
    stored, fused = (one("fusion", ops=op, sizes=str(elements), impls=impl) for impl in ("op_by_op", "fused"))
    assert stored.bytes_moved == moved
    assert fused.bytes_moved == sum(a.nbytes for a in given) + given[0].nbytes


def _arrays(operands):
    return [x for x in operands if isinstance(x, jax.ShapeDtypeStruct)]


def _filled(operands, arrays):
    left = iter(arrays)
    return [next(left) if isinstance(x, jax.ShapeDtypeStruct) else x for x in operands]
