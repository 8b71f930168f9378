# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What is known before measuring: hardware peaks and published results, each with its source. No jax."""
