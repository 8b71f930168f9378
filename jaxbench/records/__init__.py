# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The record schema, and the run folder that stores records on disk. No jax."""
