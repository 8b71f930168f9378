# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How a program is compiled, timed, weighed and checked."""
