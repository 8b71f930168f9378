# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench bisect`: the first slow version between two releases or two commits.

versions    the releases or commits between two arms, oldest first
search      which version to compare next, and what follows
program     pairs of runs of a program that prints a number
run         compares versions by the rule of `ab`, and keeps what is known in the folder
page        the versions with their intervals: terminal, page, figure and bisect.json
"""
