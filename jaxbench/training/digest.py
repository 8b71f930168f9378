# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The names, shapes and sha256 of a tree of arrays. Two bitwise equal trainings have the same hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxbench.workloads.base import PyTree


def params_sha256(params: PyTree) -> str:
    """Hex sha256 over the leaves in the order of their names: name, dtype, shape and bytes (little-endian, C order)."""
    return sha256(named_leaves(params))


def to_host(tree: PyTree) -> PyTree:
    """A copy in host memory: a view would change when the next step reuses a donated buffer."""
    return jax.tree.map(lambda leaf: np.array(leaf), tree)


def named_leaves(tree: PyTree) -> dict[str, np.ndarray]:
    """{"params.hidden.kernel": array}, in the tree's own order."""
    pairs, _ = jax.tree_util.tree_flatten_with_path(tree)
    named = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in pairs}
    if len(named) < len(pairs):
        raise ValueError("two leaves of the tree have the same name")
    return named


def sha256(leaves: Mapping[str, Any]) -> str:
    """`params_sha256` of named leaves."""
    digest = hashlib.sha256()
    for name in sorted(leaves):
        leaf = np.ascontiguousarray(leaves[name]).reshape(np.shape(leaves[name]))  # shape () had become (1,)
        digest.update(f"{name}\0{leaf.dtype.name}\0{leaf.shape}\0".encode())
        digest.update(leaf.tobytes())
    return digest.hexdigest()


def shapes(leaves: Mapping[str, Any]) -> dict[str, str]:
    """{"params.hidden.kernel": "float32[784, 128]"}"""
    return {name: f"{np.dtype(leaf.dtype).name}{list(leaf.shape)}" for name, leaf in leaves.items()}
