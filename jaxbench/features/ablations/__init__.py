# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Why an efficiency is not 100 %: ablation points, their programs, and the figure of the waterfall made from them.

points, programs, bench     which points, what they run, how they are checked
figures                     the waterfall; its factors are in `analysis/waterfall.py`
"""
