# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Why an efficiency is not 100 %: the programs of ablation points, and the figure of the waterfall made from them.

programs, recipe    what ablation points run, and how they are checked; `sweep/ablations.py` lists the points
figures             the waterfall; its factors are in `analysis/waterfall.py`
"""
