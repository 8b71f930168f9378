# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench first-run`: the first half hour on a machine, and one page of what was and was not as expected."""
