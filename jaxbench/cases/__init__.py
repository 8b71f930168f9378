# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Cases (kernels, transfers, collectives): where each runs, and how one process measures it."""
