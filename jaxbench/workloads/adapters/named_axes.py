# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sharding that a Flax model names for its own arrays. It is set aside: each strategy decides where arrays lie."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any


@contextlib.contextmanager
def removed() -> Iterator[None]:
    """Inside, Flax applies neither the mesh axes that a model names for its variables nor its logical constraints on
    activations. They name axes of the model's own mesh, which the mesh of a strategy does not have."""
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
    """`init`, which carries the axes that were removed: path of a parameter -> its names."""

    def initial(key: Any) -> Any:
        return init(key)

    initial.axes = {path: ", ".join(map(str, axes)) for path, axes in names.items()}  # type: ignore[attr-defined]
    return initial


def sentence(init: Callable[..., Any]) -> str:
    """What was removed from the model that `init` initializes; "": nothing."""
    axes: dict[str, str] = getattr(init, "axes", {})
    if not axes:
        return ""
    more = f"; and {len(axes) - 4} more" if len(axes) > 4 else ""
    named = "; ".join(f"{path}: {names}" for path, names in list(axes.items())[:4])
    return (
        f"The model names mesh axes for {len(axes)} of its parameters ({named}{more}). They are ignored, because each "
        "strategy decides where arrays lie."
    )
