# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Measures a train step that somebody else wrote (`workloads.own_step`).

settle                what `build(config)` of an experiment returned, and the settings that a step refuses
program               the step as a Program; what makes it unfit
reference, references how parameters move, compared with one device; which process makes the reference
bench                 one point in one process
collectives, shares   the step's collectives alone; the step of one device, elsewhere
trial                 `jaxbench try`
"""
