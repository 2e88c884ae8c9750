/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* A library whose static memory gone.cpp registers. */
char statics[1 << 18];
