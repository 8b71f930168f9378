# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The named sets of compiler options: each legal, of one platform, with a source, and known to XLA where it can say."""

from __future__ import annotations

import jax
import pytest

from jaxbench.catalog import compiler_options
from jaxbench.levers.compiler import COMPILER

SETS = compiler_options.sets()


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_legal_and_its_options_are_of_its_platform(name):
    options, platform = COMPILER.read(name), SETS[name].platform
    assert options and SETS[name].source and name in compiler_options.names(platform)
    of = {compiler_options.platform_of(option) for option in options}
    assert platform in of and of <= {platform, None}


def test_every_platform_has_sets():
    assert {each.platform for each in SETS.values()} == {"cpu", "gpu", "tpu"}


@pytest.mark.parametrize("name", [*compiler_options.names("cpu"), *compiler_options.names("gpu")])
def test_this_xla_knows_the_options(name):
    """XLA's CPU compiler reads the options of its GPU compiler too, and ignores them; those of a TPU are not in it."""
    jax.jit(lambda: 0).lower().compile(COMPILER.read(name))
