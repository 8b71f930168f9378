# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From a plan of points to a run folder: worker processes, sets, the order of rounds, the stop, and progress."""
