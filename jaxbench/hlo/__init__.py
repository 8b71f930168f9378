# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Optimized HLO text, parsed once into a Module: its collectives, FLOPs and operation categories. Needs no jax."""
