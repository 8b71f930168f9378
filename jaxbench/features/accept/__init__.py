# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Acceptance of a machine or a fleet: is each device, link and host as fast, and as right, as it should be?"""
