# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The groups of devices over which a collective of a compiled program runs, and the mesh axes that they span."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping

import numpy as np

# {{0,1},{2,3}} | [2,4]<=[8] | [4,2]<=[2,4]T(1,0) | mesh['a'=2,'b'=4] {'b'}
_LISTED = re.compile(r"replica_groups=\{(\{[\d,{} ]*\})?\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_NAMED = re.compile(r"replica_groups=(?:@?\w*)?\[([^\]]*)\]\s*\{([^}]*)\}")
_AXIS = re.compile(r"'([^']+)'(?:=(\d+))?")
_PAIRS = re.compile(r"source_target_pairs=\{(\{[\d,{} ]*\})\}")

Groups = tuple[tuple[int, ...], ...]  # places of devices in the mesh, row by row


def read(rest: str, devices: int) -> Groups | None:
    """The groups of a collective, from the text after its operands; None if the text does not tell.

    devices: the number of the program's devices; an empty list of groups means all of them. A permutation gives its
    (source, target) pairs.
    """
    if match := _PAIRS.search(rest) or _LISTED.search(rest):
        inner = match[1] or ""
        listed = tuple(tuple(map(int, group.split(","))) for group in re.findall(r"\{([\d,]+)\}", inner))
        return listed or (tuple(range(devices)),)
    if match := _IOTA.search(rest):
        shape, source = (tuple(map(int, match[i].split(","))) for i in (1, 2))
        places = np.arange(math.prod(source)).reshape(source)
        places = places.transpose(tuple(map(int, match[3].split(",")))) if match[3] else places
        return _rows(places.reshape(shape))
    if match := _NAMED.search(rest):
        sizes = {name: int(size) for name, size in _AXIS.findall(match[1]) if size}
        over = [name for name, _ in _AXIS.findall(match[2])]
        if set(over) <= set(sizes) and ":" not in match[2]:
            return _along(sizes, tuple(over))
    return None


def axes(groups: Groups | None, mesh: Mapping[str, int], *, pairs: bool) -> str:
    """The mesh axes that groups span, such as "data" or "data+tensor"; "" if they match no axes.

    mesh: devices by axis. pairs: the groups are the (source, target) pairs of a permutation.
    """
    names = [name for name, size in mesh.items() if size > 1]
    if groups is None:
        return ""
    for count in range(1, len(names) + 1):
        for over in itertools.combinations(names, count):
            along = [frozenset(group) for group in _along(mesh, over)]
            if pairs and all(any({*pair} <= group for group in along) for pair in groups):
                return "+".join(over)
            if not pairs and {frozenset(group) for group in groups} == {*along}:
                return "+".join(over)
    return ""


def _along(mesh: Mapping[str, int], over: tuple[str, ...]) -> Groups:
    """The device positions of a mesh that differ only in the axes `over`, group by group."""
    places = np.arange(math.prod(mesh.values())).reshape(tuple(mesh.values()))
    last = [list(mesh).index(name) for name in over]
    return _rows(np.moveaxis(places, last, range(-len(last), 0)).reshape(-1, math.prod(mesh[name] for name in over)))


def _rows(places: np.ndarray) -> Groups:
    return tuple(tuple(row) for row in places.tolist())
