# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The kit that figures are drawn with: a sheet of panels, axes, marks and footnotes, and what rows are called."""
