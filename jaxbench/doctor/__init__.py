# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Is this machine fit to measure on? Each file checks one aspect and returns findings; `examine.py` runs them all."""
