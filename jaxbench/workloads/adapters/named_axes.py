# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ignores the sharding that a Flax model names for its own arrays: each strategy decides where arrays lie."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any


@contextlib.contextmanager
def removed() -> Iterator[None]:
    """A context in which Flax ignores the mesh axes of a model's variables and its constraints on activations.

    They name axes of the model's own mesh, which the mesh of a strategy does not have.
    """
    from flax import nnx
    from flax.core import meta

    original = meta.get_global_mesh
    meta.get_global_mesh = lambda: None  # Linen asks it before each constraint, and has no switch
    try:
        with nnx.use_eager_sharding(False):
            yield
    finally:
        meta.get_global_mesh = original


def kept(init: Callable[..., Any], names: Mapping[str, Any]) -> Callable[..., Any]:
    """`init` with the removed axes attached: path of a parameter -> its axis names."""

    def initial(key: Any) -> Any:
        return init(key)

    initial.axes = {path: ", ".join(map(str, axes)) for path, axes in names.items()}  # type: ignore[attr-defined]
    return initial


def sentence(init: Callable[..., Any]) -> str:
    """A sentence about the axes that were removed from the model of `init`; "" if none were."""
    axes: dict[str, str] = getattr(init, "axes", {})
    if not axes:
        return ""
    more = f"; and {len(axes) - 4} more" if len(axes) > 4 else ""
    named = "; ".join(f"{path}: {names}" for path, names in list(axes.items())[:4])
    return (
        f"The model names mesh axes for {len(axes)} of its parameters ({named}{more}). They are ignored, because each "
        "strategy decides where arrays lie."
    )
