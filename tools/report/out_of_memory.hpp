// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple {

// From now on, the program ends with one line on standard error and this exit code where new finds no memory. Without
// it, even the exception may find none, and the program aborts.
void end_when_out_of_memory(int code);

}  // namespace dapple
