# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figures, one file each. `canvas` is what they share: the style, the legend, and the three formats."""
