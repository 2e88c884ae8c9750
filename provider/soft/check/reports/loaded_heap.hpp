// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/member/heap.hpp"

namespace dapple::soft::check {

// libdapple-heap.so of this process, or null if it is not loaded.
const Heap* loaded_heap();

// While true, this thread's use of the heap is not reported, and needs no lock of the marks. Returns the value of
// before.
bool pause_heap(bool paused);
// For a heap of another library: the value of the last call of this thread.
bool heap_is_paused();

}  // namespace dapple::soft::check
