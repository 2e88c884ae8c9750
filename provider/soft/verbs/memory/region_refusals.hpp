// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "provider/soft/gpu/gpu_search.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::verbs {

// The verbs of memory regions refuse for these reasons. Each returns its errno.
int refuse_access(uint32_t access, const char* reason, const char* remedy, int error);
// `error` is that of probe_mapped_range(). Names the first page that is not there, or lacks the right.
int refuse_range(const void* address, size_t length, bool write, int error);
// The error of find_gpu_memory().
int refuse_gpu(const void* address, size_t length, const FoundGpuMemory& found);
// EINVAL: an object that the call is given belongs to another device's context.
int refuse_other_device(const char* object);
// `error` is MappedDmabuf::map()'s.
int refuse_dmabuf(int descriptor, uint64_t offset, size_t length, int error);
// `error` is MemoryTable's, for the region with this key.
int refuse_region(uint32_t key, const void* address, size_t length, int error);

}  // namespace dapple::soft::verbs
