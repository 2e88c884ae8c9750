// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/verbs/memory/region_refusals.hpp"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "provider/soft/memory/mappings.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/refusals/refusal.hpp"

namespace dapple::soft::verbs {

int refuse_access(uint32_t access, const char* reason, const char* remedy, int error) {
  return refuse(error, "access has %s, and %s.\n%s", access_names(access).c_str(), reason, remedy);
}

int refuse_range(const void* address, size_t length, bool write, int error) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (error != EFAULT) {
    return refuse(error,
                  "no memory has %zu bytes at %p: the range is longer than the address space.\n"
                  "Compare length and address with those of the allocation.",
                  length, address);
  }
  const uintptr_t page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t end = begin + length;
  uintptr_t next = begin / page_size * page_size;  // every page before it is there
  const char right = write ? 'w' : 'r';
  Mappings mappings;
  for (Mapping mapping; next < end && mappings.next(mapping);) {
    if (mapping.end <= next) continue;
    if (mapping.begin > next) break;
    if (strchr(mapping.rights, right) == nullptr) {
      return refuse(error, "the page at 0x%llx of the range (%zu bytes at %p) is not %s: its mapping is \"%s %s\".\n%s",
                    static_cast<unsigned long long>(next), length, address, write ? "writable" : "readable",
                    mapping.rights, mapping.file[0] == '\0' ? "anonymous" : mapping.file,
                    write ? "Register memory that only peers read without IBV_ACCESS_LOCAL_WRITE, or make it writable."
                          : "Make the memory readable before the registration.");
    }
    next = mapping.end;
  }
  if (next < end) {
    return refuse(error,
                  "the page at 0x%llx of the range (%zu bytes at %p) is not mapped.\n"
                  "Register memory while it is allocated; compare length with the size of the allocation.",
                  static_cast<unsigned long long>(next), length, address);
  }
  return refuse(error,
                "a page of the range (%zu bytes at %p) cannot be reached, such as device memory or a file that has "
                "been truncated.\nRegister ordinary memory.",
                length, address);
}

int refuse_gpu(const void* address, size_t length, const FoundGpuMemory& found) {
  switch (found.error) {
    case EFAULT:
      return refuse(found.error,
                    "the range (%zu bytes at %p) does not end within its allocation of a GPU (%llu bytes at 0x%llx).\n"
                    "Register bytes of one allocation.",
                    length, address, static_cast<unsigned long long>(found.length),
                    static_cast<unsigned long long>(found.begin));
    case ENOMEM:
      return refuse_memory("the region of a GPU's memory");
    default:
      return refuse(found.error,
                    "the memory (%zu bytes at %p) is a GPU's, and CUDA fails: %s.\n"
                    "Look for an earlier error of CUDA in this program.",
                    length, address, found.problem);
  }
}

int refuse_other_device(const char* object) {
  return refuse(EINVAL,
                "the %s is null, or another device's.\n"
                "Use objects of one ibv_context together.",
                object);
}

int refuse_dmabuf(int descriptor, uint64_t offset, size_t length, int error) {
  switch (error) {
    case EBADF:
      return refuse(error, "fd is %d, which is not open.\nPass the descriptor of a dma-buf.", descriptor);
    case EINVAL:
      return refuse(error,
                    "fd %d is no dma-buf, or a range of it (%zu bytes at the offset %llu) does not exist.\n"
                    "Pass a dma-buf, and a range within its size (lseek() to its end).",
                    descriptor, length, static_cast<unsigned long long>(offset));
    case EOPNOTSUPP:
      return refuse(
          error,
          "the process cannot map the dma-buf %d, and CUDA does not know its memory by the IOVA.\n"
          "For memory of CUDA pass its device address as the IOVA. Other exporters need mmap(), as udmabuf "
          "and dma-heaps have it, and a descriptor for writing if the region has IBV_ACCESS_LOCAL_WRITE (DRM_RDWR).",
          descriptor);
    case ENOMEM:
      return refuse_memory("a dma-buf's mapping");
    default:
      return refuse(error, "the process cannot have another descriptor of the dma-buf %d.\nRaise ulimit -n.",
                    descriptor);
  }
}

int refuse_region(uint32_t key, const void* address, size_t length, int error) {
  if (error == EBUSY) {
    return refuse(error,
                  "memory windows are bound to the region with the key 0x%x (%zu bytes at %p).\n"
                  "Unbind or deallocate the memory windows first.",
                  key, length, address);
  }
  if (error == ENOMEM) return refuse_memory("memory regions");
  return refuse(error,
                "no region of the device has the key 0x%x, or its rights do not go together.\n"
                "Change no member of struct ibv_mr, and deregister a region once.",
                key);
}

}  // namespace dapple::soft::verbs
