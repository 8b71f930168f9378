# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From a config to a run folder: the plan of points, the worker processes, and the sweep over the points."""
