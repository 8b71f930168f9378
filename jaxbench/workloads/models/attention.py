# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Causal attention over a whole sequence, or over one that is split over the axis `context` (`ring`).

Axes: B examples, N heads of queries, K heads of keys and values, T query positions, S key positions, H head width.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from jaxbench.hlo.operations import ATTENTIONS
from jaxbench.levers import ATTENTION
from jaxbench.workloads import sharding_context
from jaxbench.workloads.models.flash import flash_kernels, flash_takes
from jaxbench.workloads.models.ring import for_each_query_head, ring, ulysses

KERNELS = ("auto", "plain", "flash")


def causal(q_BNTH: jax.Array, k_BKSH: jax.Array, v_BKSH: jax.Array, kernel: str = "auto") -> jax.Array:
    """softmax(q k^T / sqrt(H)) v over this and earlier positions, (B, N, T, H). The softmax is float32.

    Each head of keys and values serves N / K heads of queries in turn.
    kernel: "plain" writes the scores to memory. "flash" does not, on a TPU or an NVIDIA GPU; on a CPU it is the same as
    plain. "auto" is flash for numbers of 16 bits if its kernels take the heads. If a sequence is split over devices,
    the parts of a ring are computed by these kernels or by blocks. Raises Unsupported for sizes that the kernels do not
    take.
    """
    q_BNTH = q_BNTH * q_BNTH.shape[-1] ** -0.5  # before the product: T H multiplications, and not T S
    context = sharding_context.current()
    fast = kernel == "flash" or (kernel == "auto" and flash_takes(q_BNTH))
    if context.context is not None and not context.ulysses:
        with jax.named_scope(ATTENTIONS["ring"]):
            return ring(context.context, kernels=fast)(q_BNTH, k_BKSH, v_BKSH)

    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        k, v = for_each_query_head(k, q.shape[1]), for_each_query_head(v, q.shape[1])
        if not fast:
            return _plain(q, k, v)
        # Chosen when it is compiled and not by the devices here: forecasts compile for absent hardware.
        return jax.lax.platform_dependent(q, k, v, **flash_kernels(q.shape, ATTENTION), cpu=_plain)

    if context.context is not None:
        return ulysses(context.context, attend, q_BNTH, k_BKSH, v_BKSH)
    return attend(q_BNTH, k_BKSH, v_BKSH)


@jax.named_scope(ATTENTIONS["plain"])
def _plain(q_BNTH: jax.Array, k_BNTH: jax.Array, v_BNTH: jax.Array) -> jax.Array:
    """Causal attention as two products and a softmax."""
    t = q_BNTH.shape[2]
    scores_BNTS = jnp.einsum("bnth,bnsh->bnts", q_BNTH, k_BNTH)
    causal_TS = jnp.tril(jnp.ones((t, t), bool))
    # -inf gives later positions a weight of exactly 0, and float32 keeps small weights in the sum of many.
    scores_BNTS = jnp.where(causal_TS, scores_BNTS.astype(jnp.float32), -jnp.inf)
    weights_BNTS = jax.nn.softmax(scores_BNTS).astype(q_BNTH.dtype)
    return checkpoint_name(jnp.einsum("bnts,bnsh->bnth", weights_BNTS, v_BNTH), ATTENTION)
