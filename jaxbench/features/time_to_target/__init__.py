# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Trainings to a target over batch sizes: how they run, what they show, and their page."""
