// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

// The headers declare the functions without visibility, the build hides what does not ask.
#define DAPPLE_EXPORT extern "C" __attribute__((visibility("default")))
