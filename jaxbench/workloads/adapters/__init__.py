# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Turns a model of Flax NNX, Flax Linen, Equinox or Haiku, or plain functions, into one set of pure functions.

Each library is imported only when one of its models is given.
"""

from jaxbench.workloads.adapters.flax_models import from_linen, from_nnx
from jaxbench.workloads.adapters.pure import PureModel, from_equinox, from_functions, from_haiku

__all__ = ["PureModel", "from_equinox", "from_functions", "from_haiku", "from_linen", "from_nnx"]
