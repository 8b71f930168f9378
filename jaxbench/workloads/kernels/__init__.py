# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Single kernels as cases: what each computes, who does it, how much work it is, and what the right result is."""
