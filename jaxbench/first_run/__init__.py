# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench first-run`: a first half hour of checks on a machine, and one page of expected and unexpected results."""
