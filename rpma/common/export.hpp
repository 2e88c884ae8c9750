// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

// Marks each exported function; librpma.map lists them all.
#define RPMA_EXPORT extern "C" __attribute__((visibility("default")))
