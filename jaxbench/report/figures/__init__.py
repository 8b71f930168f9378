# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figures, one file each. `report.build` says what a figure's file defines; `report.drawing` holds shared parts."""
