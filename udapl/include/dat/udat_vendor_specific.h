/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_DAT_UDAT_VENDOR_SPECIFIC_H
#define DAPPLE_DAT_UDAT_VENDOR_SPECIFIC_H

#include <dat/dat_vendor_specific.h>

#endif
