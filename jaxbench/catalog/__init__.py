# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Hardware peaks and published results, each with its source. No jax."""
