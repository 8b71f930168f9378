# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts: the time of a step on absent hardware, estimated from the program compiled for it."""
