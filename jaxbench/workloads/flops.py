# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""FLOPs of convolutions and matrix products, by formula and from a jaxpr; a multiply-add is two FLOPs.

Elementwise work is not counted: it is small compared with the products, and not part of an accelerator's quoted peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from jaxbench.core.workload import PyTree
from jaxbench.workloads.jaxprs import inner


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


def count(function: Callable[..., PyTree], *avals: Any) -> float:
    """FLOPs of the products and convolutions in `function`'s jaxpr, by the shapes of their operands."""
    # Not the compiler's own count (``cost_analysis``), which misses library calls on GPUs and is only a cross-check.
    return sum(flops for _, flops in _products(jax.make_jaxpr(function)(*avals).jaxpr))


def least_share(function: Callable[..., PyTree], *avals: Any) -> float:
    """The share of the FLOPs that every call does; 1 if there is nothing to count.

    A conditional counts as its cheapest branch, a loop of unknown length as nothing.
    """
    jaxpr = jax.make_jaxpr(function)(*avals).jaxpr
    most, least = (sum(flops for _, flops in _products(jaxpr, pick)) for pick in (max, min))
    return least / most if most else 1.0


def dot_flop_shares(function: Callable[..., PyTree], *avals: Any) -> dict[str, float]:
    """The share of the FLOPs that `count` counts, by number format of the operands: {"float16": 1.0}."""
    return _shares(jax.make_jaxpr(function)(*avals).jaxpr)


def rounding(jaxpr: Any, platform: str) -> float:
    """A relative change of float32 numbers that changes how some of a jaxpr's products round; 0 if all keep float32.

    A product in bfloat16 does not see the last bit of its float32 parameters. A change by a whole rounding would move
    every gradient, more than another order of sums does, so this change makes one parameter in 64 round otherwise.
    """
    # By default a TPU multiplies float32 numbers in bfloat16, and a GPU in TF32, which has float16's mantissa.
    products = {"float32": {"tpu": "bfloat16", "gpu": "float16"}.get(platform, "float32")}
    used = {products.get(dtype, dtype) for dtype, share in _shares(jaxpr).items() if share >= A_PART}
    coarse = [jnp.finfo(dtype).eps for dtype in used if dtype in ("bfloat16", "float16")]
    return float(max(coarse, default=0.0)) / 2 / 64


def _shares(jaxpr: Any) -> dict[str, float]:
    found: dict[str, float] = {}
    for dtype, flops in _products(jaxpr):
        found[dtype] = found.get(dtype, 0.0) + flops
    return {dtype: flops / sum(found.values()) for dtype, flops in found.items()}


A_PART = 0.1  # of the FLOPs: fewer in a coarse format are the exception, not how a model computes
Product = tuple[str, float]  # the number format of the operands, the wider if they differ; FLOPs


def _products(jaxpr: Any, pick: Callable[..., list[Product]] | None = None) -> Iterator[Product]:
    """Every product and convolution of a jaxpr.

    pick: the branch of a conditional that counts, `max` or `min` by FLOPs; None: all of them. With `min`, a loop of
    unknown length counts as nothing.
    """
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name in _COUNTS:
            lhs, rhs = (operand.aval.dtype for operand in equation.invars[:2])
            yield jnp.promote_types(lhs, rhs).name, _COUNTS[name](equation)
        if name == "while" and pick is min:
            continue  # it may end before its first iteration
        bodies = [[*_products(each, pick)] for each, _ in inner(equation)]
        if name == "cond" and pick is not None:
            bodies = [pick(bodies, key=lambda products: sum(flops for _, flops in products))]
        if name == "pallas_call":  # a kernel chooses the format of its sums; the model chooses that of its operands
            given = [x.aval.dtype for x in equation.invars if jnp.issubdtype(x.aval.dtype, jnp.inexact)]
            narrowest = min((dtype.name for dtype in given), key=lambda each: jnp.dtype(each).itemsize, default="")
            bodies = [[(narrowest or dtype, flops) for dtype, flops in products] for products in bodies]
        repeats = equation.params["length"] if name == "scan" else 1  # a `while` counts once: its length is unknown
        yield from ((dtype, repeats * flops) for products in bodies for dtype, flops in products)


def _count_product(equation: Any) -> float:
    (contract, _), _ = equation.params["dimension_numbers"]
    lhs = equation.invars[0].aval.shape
    return 2.0 * math.prod(equation.outvars[0].aval.shape) * math.prod(lhs[i] for i in contract)


def _count_convolution(equation: Any) -> float:
    """2 x outputs x kernel size. Padding counts as work, the zeros of a dilated input do not."""
    params = equation.params
    rhs, out = equation.invars[1].aval.shape, equation.outvars[0].aval.shape
    spec = params["dimension_numbers"].rhs_spec
    # rhs_spec is (output features, input features, spatial dimensions ...); the outputs are part of `out`.
    kernel = math.prod(rhs[i] for i in spec[2:]) * rhs[spec[1]]
    # The input gradient of a strided convolution is a convolution of a gradient that is dilated with zeros. If these
    # counted, the same product would be more work backward than forward.
    return 2.0 * math.prod(out) * kernel / math.prod(params["lhs_dilation"])


_COUNTS = {"dot_general": _count_product, "conv_general_dilated": _count_convolution}
