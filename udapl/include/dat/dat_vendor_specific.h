/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_DAT_DAT_VENDOR_SPECIFIC_H
#define DAPPLE_DAT_DAT_VENDOR_SPECIFIC_H

/* The specification reserves this file for vendors' attributes. There are none: ours are named attributes, told apart
 * by their names at run time. */

#endif
