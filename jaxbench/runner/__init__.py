# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From a config to a run folder: the plan of points, one process for each place, and the sweep over them."""
