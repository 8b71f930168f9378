# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Classes of a notebook that are registered as pytree nodes are registered in the worker processes, too.

A class of `__main__` is pickled by its code. The call that registered it, `jax.tree_util.register_dataclass` or a
decorator of Flax, is not a part of this code, so JAX would take its instances for leaves.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

FLAX = "_flax_dataclass"  # an attribute of the classes that Flax has registered, which it registers once only


@dataclass(frozen=True)
class Registered:
    """How a class is registered. data, meta: its fields that are children of the node, and that are not; None: it
    flattens itself. functions: (flatten, unflatten) of a class without fields and methods for that. flax: Flax has
    registered it.
    """

    data: tuple[str, ...] | None = None
    meta: tuple[str, ...] = ()
    functions: tuple[Callable[..., Any], Callable[..., Any]] | None = None
    flax: bool = False


def registered(kind: type) -> Registered | None:
    """How JAX knows a class; None if it does not."""
    if "jax" not in sys.modules or _bare(kind) is None or not _is_node(kind):
        return None
    if dataclasses.is_dataclass(kind) and (fields := _fields(kind)) is not None:
        return fields
    if callable(getattr(kind, "tree_flatten", None)) and callable(getattr(kind, "tree_unflatten", None)):
        return Registered()
    return _by_functions(kind)


def reduced(how_to_make: tuple[Any, ...], how: Registered) -> tuple[Any, ...]:
    """What cloudpickle makes of a class, with its registration at the end."""
    make, given, state, items, pairs, fill = how_to_make
    if how.flax:  # while it is still empty, Flax's base class would register it without fields
        constructor, name, bases, namespace, *rest = given
        given = constructor, name, bases, {**namespace, FLAX: True}, *rest
    return make, given, (fill, state, how), items, pairs, _filled


def _filled(kind: type, about: tuple[Callable[..., None], Any, Registered]) -> None:
    """Fills a class and registers it, unless this process knows it already."""
    import jax

    fill, state, how = about
    fill(kind, state)
    if _is_node(kind):  # it was read before, or is the class that was written
        return
    if how.functions is not None:
        jax.tree_util.register_pytree_node(kind, *how.functions)
    elif how.data is not None:
        jax.tree_util.register_dataclass(kind, data_fields=how.data, meta_fields=how.meta)
    elif hasattr(kind, "tree_flatten_with_keys"):
        jax.tree_util.register_pytree_with_keys_class(kind)
    else:
        jax.tree_util.register_pytree_node_class(kind)


def _bare(kind: type) -> Any:
    """An instance that was never initialized; None for a class that has none, such as one of tuples."""
    try:
        return object.__new__(kind)
    except TypeError:
        return None


def _is_node(kind: type) -> bool:
    import jax

    bare = _bare(kind)
    return bare is not None and not jax.tree_util.all_leaves([bare])


def _fields(kind: type) -> Registered | None:
    """The fields of a dataclass, as JAX divides an instance with a mark in each; None if it keeps no such fields."""
    import jax

    bare, names = _bare(kind), [field.name for field in dataclasses.fields(kind)]
    marks = {name: _Mark() for name in names}
    for name, mark in marks.items():
        object.__setattr__(bare, name, mark)  # also if it is frozen
    children = jax.tree.leaves(bare, is_leaf=lambda x: isinstance(x, _Mark))
    data = tuple(name for name in names if any(child is marks[name] for child in children))
    if len(data) != len(children):
        return None  # it flattens to something else than its fields
    return Registered(data, tuple(name for name in names if name not in data), flax=FLAX in vars(kind))


class _Mark:
    """What a field holds while the fields are looked at."""


def _by_functions(kind: type) -> Registered | None:
    """The functions that a class was registered with, for which JAX has no public name."""
    from jax._src.tree_util import _registry

    entry = _registry.get(kind)
    return None if entry is None else Registered(functions=(entry.to_iter, entry.from_iter))
