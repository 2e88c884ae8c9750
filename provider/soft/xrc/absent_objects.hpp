// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Stand-ins for the objects that a queue pair of XRC lacks, so that no other queue pair's path asks whether they are
// there. They live as long as the process.
#pragma once

#include "provider/soft/objects/objects.hpp"

namespace dapple::soft {

// Nothing completes into it. The sending end has no completion queue for receives, and the receiving end has none at
// all: each shared receive queue has its own.
Cq& absent_cq();
// The protection domain of the receiving end. No memory belongs to it: each shared receive queue has its own.
Pd& absent_pd();

}  // namespace dapple::soft
