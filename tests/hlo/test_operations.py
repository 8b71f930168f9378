# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Categories of operations: from the program's text as XLA prints it, and from names alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from jaxbench.hlo import operations
from jaxbench.hlo.module import Module, parse
from jaxbench.hlo.operations import OperationClassifier, stem

HLO = """HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

%dense (p.0: f32[8,8], p.1: f32[8,8]) -> f32[8,8] {
  %p.0 = f32[8,8]{1,0} parameter(0)
  %p.1 = f32[8,8]{1,0} parameter(1)
  %dot.5 = f32[8,8]{1,0} dot(%p.0, %p.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %tanh.1 = f32[8,8]{1,0} tanh(%dot.5)
}

%moved (p.2: f32[8,8]) -> f32[64] {
  %p.2 = f32[8,8]{1,0:T(8,128)} parameter(0)
  %transpose.1 = f32[8,8]{0,1:T(8,128)(2,1)} transpose(%p.2), dimensions={1,0}
  ROOT %bitcast.1 = f32[64]{0} bitcast(%transpose.1)
}

%branch (arg: (s32[], f32[8,8])) -> (s32[], f32[8,8]) {
  %arg = (s32[], f32[8,8]{1,0}) parameter(0)
  %fusion.1 = f32[8,8]{1,0} fusion(%a, %b), kind=kOutput, calls=%dense
  ROOT %t = (s32[], f32[8,8]{1,0}) tuple(%c, %fusion.1)
}

ENTRY %main (x: f32[8,8]) -> f32[8,8] {
  %x = f32[8,8]{1,0} parameter(0)
  %ynn_fusion = f32[8,8]{1,0} fusion(%x, %x), kind=kCustom, calls=%dense, backend_config={"kind":"__ynn_fusion"}
  %copy_bitcast_fusion = f32[64]{0} fusion(%x), kind=kLoop, calls=%moved
  %convolution.1 = f32[1,8,8,4]{3,2,1,0} convolution(%x, %x), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  %convolution.2 = f32[8,8]{1,0} convolution(%x, %x), dim_labels=bf_io->bf
  %while.1 = (s32[], /*index=1*/f32[8,8]{1,0}) while(%t.1), condition=%cond, body=%branch
  %call.1 = (s32[], f32[8,8]{1,0}) call(%t.1), to_apply=%branch
  %cublas-gemm.1.0 = (f32[8,8]{1,0}, s8[4]{0}) custom-call(%x, %x), custom_call_target="__cublas$lt$matmul"
  %cudnn-conv.1 = f32[8]{0} custom-call(%x), custom_call_target="__cudnn$convForward"
  %lu.1 = f32[8,8]{1,0} custom-call(%x), custom_call_target="lapack_sgetrf_ffi", api_version=API_VERSION_TYPED_FFI
  %all-reduce-start.1 = f32[8]{0} all-reduce-start(%x), replica_groups={{0,1}}, to_apply=%add
  %all-reduce-done.1 = f32[8]{0} all-reduce-done(%all-reduce-start.1)
  %sort.1 = f32[8]{0} sort(%x), dimensions={0}, is_stable=true, to_apply=%compare
  %reduce.1 = f32[8]{0} reduce(%x, %zero), dimensions={0}, to_apply=%add
  ROOT %misnamed_dot = f32[8,8]{1,0} add(%x, %x)
}
"""


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        *((name, "matmul") for name in ("ynn_fusion", "fusion.1", "convolution.2", "call.1", "cublas-gemm.1.0")),
        *((name, "other") for name in ("while.1", "lu.1", "sort.1")),
        *((name, "convolution") for name in ("convolution.1", "cudnn-conv.1")),
        *((name, "collective") for name in ("all-reduce-start.1", "all-reduce-done.1")),
        *((name, "element-wise") for name in ("reduce.1", "misnamed_dot")),
        ("copy_bitcast_fusion", "copy"),
    ],
)
def test_by_the_text_of_the_program(operation: str, kind: str) -> None:
    assert OperationClassifier(parse(HLO)).kind(operation, "jit_step") == kind
    another = OperationClassifier(parse(HLO)).kind(operation, "jit_other")
    assert operation != "misnamed_dot" or another == "matmul", "another program is not looked up"


@pytest.mark.parametrize(
    ("module", "kind"),
    [("jit_dot_general", "matmul"), ("jit_reduce_sum", "element-wise"), ("jit_step", "element-wise")],
)
def test_a_program_of_one_operation_is_named_after_it(module: str, kind: str) -> None:
    assert OperationClassifier(parse(HLO)).kind("ynn_fusion.7", module) == kind


@pytest.mark.parametrize(("operation", "contains"), [("while.1", True), ("call.1", True), ("fusion.1", False)])
def test_operations_that_contain_others(operation: str, contains: bool) -> None:
    assert OperationClassifier(parse(HLO)).contains_others(operation) is contains
    assert OperationClassifier(Module()).contains_others(operation) is contains


def test_instructions_stand_in_their_computations() -> None:
    module = parse(HLO)
    assert module.name == "jit_step"
    assert module.computations["dense"] == ["p.0", "p.1", "dot.5", "tanh.1"]
    assert module.instructions["while.1"].opcode == "while" and module.instructions["t"].opcode == "tuple"


@pytest.mark.parametrize(
    ("operation", "kernel", "kind"),
    [
        ("dot.3", "", "matmul"),
        ("wrapped_convolution.2", "", "convolution"),
        ("convert.2", "", "element-wise"),
        ("wrapped_add", "", "element-wise"),
        ("reduce_scatter.1", "", "collective"),
        ("all-gather-start", "", "collective"),
        ("copy.10", "", "copy"),
        ("broadcast_in_dim.1", "", "copy"),
        ("transpose_copy_fusion.2", "", "copy"),
        ("bitcast_log_fusion", "", "element-wise"),
        ("loop_multiply_fusion.3.clone", "", "element-wise"),
        ("custom-call.7", "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32", "matmul"),
        ("custom-call.7", "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32", "convolution"),
        ("", "nvjet_hsh_128x256_64x4", "matmul"),
        ("", "MemcpyH2D", "copy"),
        ("custom-call.9", "void cub::DeviceRadixSortKernel<float>", "other"),
        ("something", "else", "other"),
    ],
)
def test_by_names_alone(operation: str, kernel: str, kind: str) -> None:
    assert OperationClassifier(Module()).kind(operation, "", "", kernel) == kind


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        ("convolution fusion", "convolution"),
        ("loop fusion", "element-wise"),
        ("non-fusion elementwise", "element-wise"),
        ("all-reduce", "collective"),
        ("data formatting", "copy"),
        ("copy-done", "copy"),
    ],
)
def test_by_the_category_of_a_tpu(category: str, kind: str) -> None:
    assert OperationClassifier(Module()).kind("fusion.1", "", category) == kind
    # The text is more precise than the category.
    assert OperationClassifier(parse(HLO)).kind("ynn_fusion", "jit_step", category) == "matmul"


def test_stems() -> None:
    assert [stem(name) for name in ("wrapped_add.3", "all-reduce-start.1", "%dot.2.clone.1", "reduce_window.4")] == [
        "add", "all-reduce", "dot", "reduce-window",
    ]  # fmt: skip


# Products counted in a compiled program, as often as they run, and nothing else.


N = 24
X, W = jnp.ones((8, N)), jnp.ones((N, N))
EACH = 2.0 * 8 * N * N


def compiled(function, *arguments):
    return parse(jax.jit(function).lower(*arguments).compile().as_text())


def test_a_product_inside_a_fusion_is_two_flops_per_multiply_add_and_a_removed_one_not_counted():
    assert operations.count(compiled(lambda x, w: jnp.tanh(x @ w + 1), X, W)) == EACH
    assert operations.count(compiled(lambda x, w: (x @ w, x)[1] + 1, X, W)) == 0
    gradient = jax.grad(lambda w, x: jnp.sum(jnp.tanh(jax.lax.stop_gradient(x @ w) @ w)))
    # Two products forward, one back: the first is frozen.
    assert operations.count(compiled(gradient, W, X)) == 3 * EACH


def test_a_loop_counts_as_often_as_it_runs_unless_its_length_is_unknown_and_the_dearer_branch():
    seven = compiled(lambda x, w: jax.lax.fori_loop(0, 7, lambda i, x: jnp.sin(x @ w), x), X, W)
    assert operations.count(seven) == 7 * EACH
    unknown = compiled(lambda x, w: jax.lax.while_loop(lambda x: x[0, 0] < 9, lambda x: jnp.sin(x @ w) + x, x), X, W)
    assert operations.count(unknown) is None
    branches = compiled(lambda go, x, w: jax.lax.cond(go, lambda: x @ w @ w, lambda: x @ w), True, X, W)
    assert operations.count(branches) == pytest.approx(2 * EACH)


@pytest.mark.parametrize(("stride", "groups"), [(1, 1), (2, 1), (1, 2)])
def test_a_convolution(stride, groups):
    image, kernel = jnp.ones((2, 8, 8, 4)), jnp.ones((3, 3, 4 // groups, 6))
    about = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "feature_group_count": groups}
    convolve = lambda image, kernel: jax.lax.conv_general_dilated(image, kernel, (stride,) * 2, "SAME", **about)  # noqa: E731
    side = 8 // stride
    assert operations.count(compiled(convolve, image, kernel)) == 2.0 * 2 * side * side * 6 * 9 * 4 / groups


def test_the_library_calls_of_a_gpu_count_by_what_they_contract_and_slide():
    """XLA's own count leaves them out, so a GPU's program seemed to have a hundredth of its FLOPs."""
    dims = '"lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["2"],"lhs_batch_dimensions":["0"]'
    slides = "window={size=5x5 pad=2_2x2_2}, dim_labels=b01f_o01i->b01f"
    text = f"""ENTRY %m (image: f32[8,28,28,1], kernel: f32[16,5,5,1], a: f32[4,8,32], b: f32[4,16,32]) -> f32[] {{
  %image = f32[8,28,28,1]{{3,2,1,0}} parameter(0)
  %kernel = f32[16,5,5,1]{{3,2,1,0}} parameter(1)
  %a = f32[4,8,32]{{2,1,0}} parameter(2)
  %b = f32[4,16,32]{{2,1,0}} parameter(3)
  %c = (f32[8,28,28,16], u8[0]) custom-call(%image, %kernel), {slides}, custom_call_target="__cudnn$convForward"
  ROOT %p = (f32[4,8,16]) custom-call(%a, %b), custom_call_target="__cublas$lt$matmul", backend_config={{{dims}}}
}}
"""
    assert operations.count(parse(text)) == 2.0 * 8 * 28 * 28 * 16 * 25 + 2.0 * 4 * 8 * 16 * 32


@pytest.mark.parametrize(
    "text",
    ['ENTRY %m () -> f32[] {\n  ROOT %g = f32[8]{0} custom-call(%a), custom_call_target="__cublas$gemm"\n}\n', ""],
)
def test_information_missing_in_the_text_is_unknown(text):
    assert operations.count(parse(text)) is None
