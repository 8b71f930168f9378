# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Meshes with their axis types always said."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import AxisType, Mesh


def data_mesh(devices: list[jax.Device], axis_type: AxisType) -> Mesh:
    """A one-axis mesh named "data", in the order the devices are given."""
    return Mesh(np.array(devices), ("data",), axis_types=(axis_type,))
