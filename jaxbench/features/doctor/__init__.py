# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether this machine is fit to measure on. Each file checks one aspect; `examine.py` runs all checks."""
