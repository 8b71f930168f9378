# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `remat`: what the backward pass of a block recomputes, and what the forward pass keeps for it.

Some values select by kind of operation or by block. The others select by name: a preset, or a list such as
``names:out_proj+query_proj=offload``. What is not listed is recomputed. A block states its names with
`jax.ad_checkpoint.checkpoint_name`. Presets and names are those of MaxText (`remat_policy` in its `configs/base.yml`),
which calls the output of attention "context".
"""

from __future__ import annotations

from typing import NamedTuple

from jaxbench.errors import did_you_mean
from jaxbench.levers.lever import Lever

ATTENTION = "attention_output"
_QKV = ("query_proj", "key_proj", "value_proj")
_PRODUCTS = (*_QKV, "out_proj", "mlpwi", "mlpwo")  # results of products with weights; attention is not among them
NAMES = ("decoder_layer_input", *_QKV, ATTENTION, "out_proj", "mlpwi", "mlpwo")
_BY_NAME = "names:"
_PLACES = ("keep", "offload", "recompute")


class Named(NamedTuple):
    """The names of activations that are kept in a device's memory, and of those that are moved to the host's."""

    keep: tuple[str, ...] = ()
    offload: tuple[str, ...] = ()


PRESETS = {
    "full": Named(),
    "minimal": Named(keep=_PRODUCTS),
    "minimal_flash": Named(keep=(*_PRODUCTS, ATTENTION)),
    "save_qkv_proj": Named(keep=_QKV),
    "qkv_proj_offloaded": Named(offload=_QKV),
}
KINDS = ("none", "sqrt", "block", "dots_saveable", "offload")


def named(text: str) -> Named | None:
    """The names of a value of the lever; None if it does not select by name. Raises ValueError for an unknown name."""
    if not text.startswith(_BY_NAME):
        return PRESETS.get(text)
    places: dict[str, str] = {}
    for word in text.removeprefix(_BY_NAME).split("+"):
        name, _, place = word.strip().partition("=")
        if name not in NAMES:
            raise ValueError(f"names '{name}', which no block has: {did_you_mean(name, NAMES)}")
        if (place or "keep") not in _PLACES or name in places:
            raise ValueError(f"does not say where '{name}' goes: write {name}=keep, =offload or =recompute, once.")
        places[name] = place or "keep"
    # What is recomputed needs no list: that is all the rest.
    return Named(*(tuple(name for name, place in places.items() if place == where) for where in _PLACES[:2]))


def offloads(text: str) -> bool:
    """Whether a value of the lever moves activations to the host's memory."""
    return text == "offload" or bool((named(text) or Named()).offload)


def recomputes_products(text: str) -> bool:
    """Whether the backward pass computes matrix products of the forward pass again, not only what is between them."""
    if (found := named(text)) is not None:
        return not {*_PRODUCTS} <= {*found.keep, *found.offload}
    return text in ("sqrt", "block")


def _parse(text: str) -> str:
    if text not in KINDS and named(text) is None:
        legal = did_you_mean(text, [*KINDS, *PRESETS])
        raise ValueError(f"is unknown: {legal} Or name activations: names:out_proj+query_proj=offload.")
    return text


# Rematerialization: the activations that the backward pass recomputes instead of storing them.
REMAT = Lever("remat", default="none", parse=_parse, changes="workload", view="remat")
