# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The number of collectives of a compiled program that can wait for other devices at the same time."""

from __future__ import annotations

import functools
import re

import numpy as np

from jaxbench.measure.census import KINDS
from jaxbench.measure.hlo import Instruction, parse

_REFERENCE = re.compile(r"%([\w.\-]+)")


def concurrent_collectives(text: str) -> int:
    """The size of the largest set of independent collectives. `text`: optimized HLO.

    By Dilworth's theorem this equals the smallest number of dependency chains that cover all collectives: the number of
    collectives minus the size of the largest matching between a collective and a collective that depends on it. A loop
    or a call counts as its contents.
    """
    module = parse(text)

    @functools.cache
    def inside(computation: str) -> int:
        needed: dict[str, frozenset[int]] = {}  # by instruction: the collectives that must finish first
        needs: list[frozenset[int]] = []  # the same, by collective
        for name in module.computations[computation]:
            instruction = module.instructions[name]
            used = _REFERENCE.findall(instruction.rest)
            before = frozenset().union(*(needed.get(operand, frozenset()) for operand in used))
            here = range(len(needs), len(needs) + waiting(instruction, used))
            needs += [before] * len(here)
            needed[name] = before.union(here)
        return len(needs) - _largest_matching(needs)

    def waiting(instruction: Instruction, used: list[str]) -> int:
        if instruction.opcode.removesuffix("-start") in KINDS:
            return 1
        # Of the branches of a conditional only one runs.
        return max((inside(name) for name in used if name in module.computations), default=0)

    return inside(module.entry) if module.entry else 0


def _largest_matching(needs: list[frozenset[int]]) -> int:
    """The size of the largest matching: pairs (a collective, another that it needs), each at most once on each side."""
    if not any(needs):
        return 0
    # Here: scipy.sparse takes as long to load as a small step takes to compile, and most steps do without.
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    related = np.zeros((len(needs), len(needs)), bool)
    for row, before in enumerate(needs):
        related[row, list(before)] = True
    return int(np.sum(maximum_bipartite_matching(csr_matrix(related), perm_type="column") >= 0))
