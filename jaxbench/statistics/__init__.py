# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Resampling, confidence intervals, paired ratios, sequential looks and run-to-run variance. No jax."""
