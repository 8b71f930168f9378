# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From conclusions to pages: terminal table, figures, one HTML file. No jax."""
