# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What everyone reads to know how a number came about, in the order of docs/TOUR.md. It imports no feature."""
