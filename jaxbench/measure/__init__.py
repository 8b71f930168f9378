# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compiling, timing and checking a program, and reading its memory, FLOPs and communication."""
