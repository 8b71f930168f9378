# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""FLOPs of convolutions and matrix products, by formula and from a jaxpr; a multiply-add is two FLOPs.

Elementwise work is not counted: it is small compared with the products, and not part of an accelerator's quoted peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.extend import core
from jax.interpreters import partial_eval

from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import KEY, TrainWorkload
from jaxbench.workloads.jaxprs import aval_of, equations, evaluate, inner

T = TypeVar("T")
_REMATS = ("remat", "remat2", "checkpoint")
A_PART = 0.1  # of the FLOPs: fewer in a coarse format are the exception, not how a model computes
_ALGORITHMS = {"BF16_": "bfloat16", "F16_": "float16", "ANY_F8": "float8_e4m3fn"}
# Primitives of programs that JAX cannot look into.
_OPAQUE = frozenset(
    "ffi_call pure_callback io_callback triton_kernel_call call_exported custom_partitioning scaled_matmul "
    "dot_product_attention_fwd dot_product_attention_bwd".split()
)


def dense(inputs: int, outputs: int) -> float:
    """Forward FLOPs of a matrix product, one example: 2 x inputs x outputs."""
    return 2.0 * inputs * outputs


def conv2d(height: int, width: int, *, kernel: int, inputs: int, outputs: int) -> float:
    """Forward FLOPs of a k x k convolution with height x width outputs, one example (padding counted as work)."""
    return 2.0 * height * width * kernel * kernel * inputs * outputs


def training(layers: list[float]) -> float:
    """FLOPs of forward and backward, from the forward FLOPs of the layers, input side first.

    Backward does two products of the forward's size for each layer: one for the weights, one for the layer's input.
    The first layer needs no gradient of its input.
    """
    return 3.0 * sum(layers) - layers[0]  # a model with trained inputs, such as an embedding, lists 0.0 first


@dataclass(frozen=True)
class Products:
    """The products of a program: FLOPs by the number format in which they multiply.

    opaque: there is a kernel without a known count. endless: there is a product in a loop of unknown length. vectors:
    the part of the FLOPs in products with a vector, which a compiler may write as element-wise operations and sums.
    """

    flops: dict[str, float]
    opaque: bool = False
    endless: bool = False
    vectors: float = 0.0

    @property
    def all_counted(self) -> bool:
        return not (self.opaque or self.endless)

    @property
    def total(self) -> float:
        return sum(self.flops.values())

    @property
    def shares(self) -> dict[str, float]:
        """The share of the FLOPs by number format; {} without products."""
        return {dtype: flops / self.total for dtype, flops in self.flops.items() if self.total}


def products(jaxpr: core.Jaxpr, *, devices: int = 1) -> Products:
    """The products that a jaxpr needs for its results, on all devices together.

    A conditional counts as its most expensive branch, and a loop of unknown length as one iteration. devices: that
    share an array at most, because the part of a matrix on one device may be a vector.
    """
    needed, _ = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    found = [*_products(needed, max)]
    flops: dict[str, float] = {}
    for each in found:
        flops[each.dtype] = flops.get(each.dtype, 0.0) + each.flops
    vectors = sum(each.flops for each in found if each.least_side <= devices)
    return Products(flops, any(each.opaque for each in found), any(each.endless for each in found), vectors)


def used_inputs(jaxpr: core.Jaxpr) -> list[bool]:
    """Whether each input of a jaxpr is used for one of its results."""
    return list(partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[1])


def recomputes(jaxpr: core.Jaxpr) -> bool:
    """Whether a jaxpr computes activations again, as `jax.checkpoint` asks for."""
    return any(each.primitive.name in _REMATS and each.params["differentiated"] for each in equations(jaxpr))


def of_function(function: Callable[..., object], *avals: object, devices: int = 1) -> Products:
    """The products of a function, given the shapes of its arguments."""
    return products(jax.make_jaxpr(function)(*avals).jaxpr, devices=devices)


def of_workload(
    workload: TrainWorkload, batch: int, part: str = "step", *, unused: Collection[int] = (), devices: int = 1
) -> Products:
    """The products of a model for a batch of `batch` examples, without recomputation and without the optimizer.

    part: a value of the lever `part`: only the loss, only the predictions, or else the loss and its gradient. unused:
    the leaf indices of parameters for which nobody uses the gradient. devices: as for `products`.
    """
    params, model_state = jax.eval_shape(workload.init, KEY)
    examples = workload.batch_avals(batch)
    if part == "inference" and workload.predict is not None:
        return of_function(workload.predict, params, model_state, examples, devices=devices)
    avals = params, model_state, examples, KEY
    if part == "forward":
        return of_function(workload.mean_loss, *avals, devices=devices)
    gradient = jax.value_and_grad(without_remat(workload.mean_loss, *avals), has_aux=True)

    def used(*given: ArrayTree) -> tuple[ArrayTree, list[jax.Array]]:
        loss, grads = gradient(*given)
        return loss, [leaf for i, leaf in enumerate(jax.tree.leaves(grads)) if i not in unused]

    return of_function(used, *avals, devices=devices)


def count(function: Callable[..., object], *avals: object) -> float:
    """FLOPs of the products and convolutions that `function` needs, by the shapes of their operands."""
    # Not the compiler's own count (``cost_analysis``), which misses library calls on GPUs and is only a cross-check.
    return of_function(function, *avals).total


def least_share(function: Callable[..., object], *avals: object) -> float:
    """The share of the FLOPs that every call does; 1 if there is nothing to count.

    A conditional counts as its cheapest branch, a loop of unknown length as nothing.
    """
    jaxpr = jax.make_jaxpr(function)(*avals).jaxpr
    most, least = (sum(each.flops for each in _products(jaxpr, pick)) for pick in (max, min))
    return least / most if most else 1.0


def dot_flop_shares(function: Callable[..., object], *avals: object) -> dict[str, float]:
    """The share of the FLOPs that `count` counts, by number format of the operands: {"float16": 1.0}."""
    return of_function(function, *avals).shares


def rounding(jaxpr: core.Jaxpr, platform: str) -> float:
    """A relative change of float32 numbers that changes how some of a jaxpr's products round; 0 if all keep float32.

    A product in bfloat16 does not see the last bit of its float32 parameters. A change by a whole rounding would move
    every gradient, more than another order of sums does, so this change makes one parameter in 64 round otherwise.
    """
    # By default a TPU multiplies float32 numbers in bfloat16, and a GPU in TF32, which has float16's mantissa.
    formats = {"float32": {"tpu": "bfloat16", "gpu": "float16"}.get(platform, "float32")}
    used = {formats.get(dtype, dtype) for dtype, share in products(jaxpr).shares.items() if share >= A_PART}
    coarse = [jnp.finfo(dtype).eps for dtype in used if dtype in ("bfloat16", "float16")]
    return float(max(coarse, default=0.0)) / 2 / 64


def without_remat(function: Callable[..., T], *avals: object) -> Callable[..., T]:
    """`function`, so that its gradient stores all activations: `jax.checkpoint` in it has no effect.

    avals: the shapes of its arguments.
    """
    traced, results = jax.make_jaxpr(function, return_shape=True)(*avals)
    if not any(equation.primitive.name in _REMATS for equation in equations(traced.jaxpr)):
        return function
    rules = {name: _as_it_is for name in ("custom_jvp_call", "custom_vjp_call")}  # each has a derivative of its own
    rules |= {"sharding_constraint": lambda equation, given: given}

    def run(*given: object) -> T:
        leaves = evaluate(traced.jaxpr, traced.consts, jax.tree.leaves(given), rules)
        return jax.tree.unflatten(jax.tree.structure(results), leaves)

    return run


def _as_it_is(equation: core.JaxprEqn, given: Sequence[jax.Array]) -> Sequence[jax.Array]:
    results = equation.primitive.bind(*given, **equation.primitive.get_bind_params(equation.params))
    return results if equation.primitive.multiple_results else [results]


class Product(NamedTuple):
    """One product. dtype: of its operands, the wider if they differ, or of the algorithm that it asks for.

    least_side: the smallest of its rows, columns and contracted numbers. opaque, endless: as in `Products`.
    """

    dtype: str
    flops: float
    least_side: float = math.inf
    opaque: bool = False
    endless: bool = False


def _products(jaxpr: core.Jaxpr, pick: Callable[..., list[Product]]) -> Iterator[Product]:
    """Every product and convolution of a jaxpr.

    pick: the branch of a conditional that counts, `max` or `min` by FLOPs. With `min`, a loop of unknown length counts
    as nothing.
    """
    counts = {
        "dot_general": _count_product,
        "ragged_dot_general": _count_ragged,
        "conv_general_dilated": _count_convolution,
    }
    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        if name in counts:
            yield Product(_format(equation), *counts[name](equation))
        elif name in _OPAQUE:
            yield Product("float32", 0.0, opaque=True)
        if name == "while" and pick is min:
            continue  # it may end before its first iteration
        bodies = [[*_products(each, pick)] for each, _ in inner(equation)]
        if name == "cond":
            bodies = [pick(bodies, key=lambda body: sum(each.flops for each in body))]
        if name == "pallas_call":  # a kernel chooses the format of its sums; the model chooses that of its operands
            given = [aval_of(x).dtype for x in equation.invars if jnp.issubdtype(aval_of(x).dtype, jnp.inexact)]
            narrowest = min((dtype.name for dtype in given), key=lambda each: jnp.dtype(each).itemsize, default="")
            bodies = [[each._replace(dtype=narrowest or each.dtype) for each in body] for body in bodies]
        times = _repeats(name, params)
        # How often a kernel runs, on which part of its operands, is up to its grid.
        opaque, endless = name == "pallas_call", name == "while"
        for each in (each for body in bodies for each in body):
            yield each._replace(flops=times * each.flops, opaque=each.opaque or opaque, endless=each.endless or endless)


def _format(equation: core.JaxprEqn) -> str:
    """The number format in which a product multiplies."""
    asked = str(getattr(equation.params.get("precision"), "name", ""))  # of a jax.lax.DotAlgorithmPreset
    for start, dtype in _ALGORITHMS.items():
        if asked.startswith(start):
            return dtype
    lhs, rhs = (aval_of(operand).dtype for operand in equation.invars[:2])
    return str(jnp.promote_types(lhs, rhs).name)


def _repeats(name: str, params: dict[str, Any]) -> int:
    """How often a primitive runs its function: in each iteration of a scan, and on each device."""
    if name == "scan":
        return int(params["length"])
    if name == "shard_map":
        axes = params.get("manual_axes") or params["mesh"].axis_names
        return math.prod(params["mesh"].shape[axis] for axis in axes)
    return int(params["global_axis_size"]) if name == "xla_pmap" else 1


def _count_product(equation: core.JaxprEqn) -> tuple[float, float]:
    """(FLOPs, the smallest side)."""
    (contract, _), (batch, _) = equation.params["dimension_numbers"]
    lhs, out = aval_of(equation.invars[0]).shape, aval_of(equation.outvars[0]).shape
    inside, each = math.prod(lhs[i] for i in contract), math.prod(lhs[i] for i in batch)
    rows = math.prod(lhs) // max(1, inside * each)
    columns = math.prod(out) // max(1, rows * each)
    return 2.0 * math.prod(out) * inside, min(rows, columns, inside)


def _count_ragged(equation: core.JaxprEqn) -> tuple[float, float]:
    """Of a product in which each row meets the matrix of its group: as if there were one group."""
    dims = equation.params["ragged_dot_dimension_numbers"]
    (lhs_contract, rhs_contract), (_, rhs_batch) = dims.dot_dimension_numbers
    lhs, rhs = (aval_of(operand).shape for operand in equation.invars[:2])
    skipped = {*rhs_contract, *rhs_batch, *dims.rhs_group_dimensions}
    columns = math.prod(side for i, side in enumerate(rhs) if i not in skipped)
    return 2.0 * math.prod(lhs) * columns, min(columns, math.prod(lhs[i] for i in lhs_contract))


def _count_convolution(equation: core.JaxprEqn) -> tuple[float, float]:
    """2 x outputs x kernel size. Padding counts as work, the zeros of a dilated input do not."""
    params = equation.params
    rhs, out = aval_of(equation.invars[1]).shape, aval_of(equation.outvars[0]).shape
    spec = params["dimension_numbers"].rhs_spec
    # rhs_spec is (output features, input features, spatial dimensions ...); the outputs are part of `out`.
    kernel = math.prod(rhs[i] for i in spec[2:]) * rhs[spec[1]]
    # The input gradient of a strided convolution is a convolution of a gradient that is dilated with zeros. If these
    # counted, the same product would be more work backward than forward.
    return 2.0 * math.prod(out) * kernel / math.prod(params["lhs_dilation"]), min(kernel, rhs[spec[0]])
