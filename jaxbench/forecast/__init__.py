# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts: how long a step would take on hardware that is not here, from the program compiled for it."""
