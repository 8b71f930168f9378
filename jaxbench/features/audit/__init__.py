# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Audit: do the numbers of a printed table of training results agree with each other and with the hardware?"""
