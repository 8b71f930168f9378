# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The types of trees: nested containers with one kind of leaf, such as arrays, as `jax.tree` walks through them.

A function that keeps the structure of its argument, whatever it is, says so by a type variable instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import jax
import numpy as np

Leaf = TypeVar("Leaf")
# A named tuple, such as the state of an optimizer, is a sequence. None is a tree without leaves.
Tree: TypeAlias = "Leaf | Mapping[str, Tree[Leaf]] | Sequence[Tree[Leaf]] | None"
# Arrays on devices or on the host. While a function is traced they have only shapes and dtypes.
ArrayTree: TypeAlias = "Tree[jax.Array | np.ndarray | jax.ShapeDtypeStruct]"
PyTree = Any  # an ArrayTree that a model, an optimizer or a user's own code also looks into


def entries(tree: ArrayTree) -> Mapping[str, ArrayTree]:
    """A tree that is a dictionary, such as the parameters of a model that names its blocks."""
    return cast(Mapping[str, ArrayTree], tree)
