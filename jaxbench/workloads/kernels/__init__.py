# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Single kernels as cases: operation, implementation, FLOPs, bytes and the correct result."""
