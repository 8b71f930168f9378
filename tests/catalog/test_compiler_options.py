# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The named sets of compiler options: legal, for one platform, with a source, and known to XLA if XLA can tell."""

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


def known(name: str) -> bool:
    """XLA's CPU compiler accepts and ignores the options of its GPU compiler; it does not know those of a TPU."""
    try:
        jax.jit(lambda: 0).lower().compile(COMPILER.read(name))
    except jax.errors.JaxRuntimeError as error:
        assert "No such compile option" in str(error)
        return False
    return True


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_this_xla_knows_the_options(platform):
    """All but one set; its options were renamed between the oldest and the newest supported release."""
    unknown = {name for name in compiler_options.names(platform) if not known(name)}
    assert unknown in ([{"pipelined"}, {"pipelined_legacy"}] if platform == "gpu" else [set()])
