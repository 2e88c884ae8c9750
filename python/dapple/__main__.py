# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""python -m dapple [OPTION]... PROGRAM: the same as dapple-run."""

import sys

import dapple

dapple.execute("dapple-run", sys.argv[1:])
