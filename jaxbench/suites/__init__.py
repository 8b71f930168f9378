# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Suites: a list of `jaxbench` commands, a JSON file with their state, and a page of what they show."""
