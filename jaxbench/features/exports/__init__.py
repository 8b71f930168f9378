# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Results in the formats of other programs: CI pages, dashboards, MLPerf's log, and experiment trackers."""
