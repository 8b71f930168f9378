# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Measures a train step that somebody else wrote (`workloads.own_step`).

settle                what `build(config)` of an experiment returned, and the settings that a step refuses
program               the step as a Program; what makes it unfit
one_device            the exported step of one device
reference, references how each array moves on one device, and by rounding; which process makes the reference
distances             how far an array may move otherwise
compare, state        the verdicts on parameters, and on the other arrays
bench                 one point in one process
collectives, shares   the step's collectives alone; the step of one device, elsewhere
trial                 `jaxbench try`
"""
