# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Turns a model of Flax NNX, Flax Linen, Equinox or Haiku, or plain functions, into one set of pure functions.

Each library is imported only when one of its models is given.
"""

from jaxbench.workloads.adapters.equinox import from_equinox
from jaxbench.workloads.adapters.functions import from_functions
from jaxbench.workloads.adapters.haiku import from_haiku
from jaxbench.workloads.adapters.linen import from_linen
from jaxbench.workloads.adapters.nnx import from_nnx
from jaxbench.workloads.adapters.pure import PureModel

__all__ = ["PureModel", "from_equinox", "from_functions", "from_haiku", "from_linen", "from_nnx"]
