// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::soft::explain {

// From now on rdma_cm's refused calls and failed connections are reported, if the program runs under dapple-run
// --explain or --check.
void explain_cm();

}  // namespace dapple::soft::explain
