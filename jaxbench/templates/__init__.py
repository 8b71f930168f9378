# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Examples to start from, which `jaxbench new` writes: one for each library or style of writing models."""
