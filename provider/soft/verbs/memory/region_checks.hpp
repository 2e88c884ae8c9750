// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Whether the device can have a memory region as the program wants it. Each function that returns an errno, 0 if it
// can, has given the reason (provider/soft/refusals).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "provider/protocol/device_attributes.hpp"
#include "provider/soft/memory/gpu_memory.hpp"

namespace dapple::soft::verbs {

// The rights that the table of memory keeps.
uint32_t kept_access(uint32_t access);
// The whole address space of the program, under on-demand paging.
bool is_implicit(const void* address, size_t length, uint32_t access);

// A right to change memory needs the device's own.
int check_remote_changes(uint32_t access);
// As the kernel: pages are mapped as a whole, so the region's first byte is at the same place of a page in both.
// `name`: of `begin`, that byte's address or offset.
int check_place_in_page(const char* name, uint64_t begin, uint64_t iova);
// The rights of a region with that many bytes.
int check_rights(const DeviceAttributes& limits, size_t length, uint32_t access);
// The rights, and the memory. `gpu`: set if the memory is a GPU's.
int check_region(const DeviceAttributes& limits, const void* address, size_t length, uint32_t access,
                 std::unique_ptr<GpuMemory>& gpu);

}  // namespace dapple::soft::verbs
