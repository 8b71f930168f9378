# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench paper ID`: do the claims of a paper hold on this machine? Each paper is a table in `library/`."""
