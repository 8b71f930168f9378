# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""JSON documents, what makes two runs the same, and launched jobs. Records are in `core.schema`. No jax."""
