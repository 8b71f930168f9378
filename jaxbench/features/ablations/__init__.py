# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Why an efficiency is not 100 %: ablation points, their programs, and the waterfall made from them.

points, programs, bench     which points, what they run, how they are checked
waterfall, loss_sentences   the factors of an efficiency, and sentences on them
figures                     the waterfall
"""
