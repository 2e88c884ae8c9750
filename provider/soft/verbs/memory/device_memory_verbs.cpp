// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Device memory: here it is this process' own, at addresses that the program does not know.
#include <errno.h>
#include <string.h>

#include <atomic>
#include <cassert>
#include <memory>
#include <new>

#include "provider/soft/memory/ordered_copy.hpp"
#include "provider/soft/memory/tsan_ignore.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/sanitizers/sanitizer.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/memory/imported.hpp"

namespace dapple::soft::verbs {
namespace {

// As on Mellanox' devices, whose memory is reached by words.
constexpr uint64_t kWord = 4;
constexpr uint32_t kMaxLogAlign = 12;  // a page

// 0 or EFAULT.
int check_copy(const Dm& dm, uint64_t offset, size_t length) {
  if (offset % kWord == 0 && length % kWord == 0 && within(offset, length, 0, dm.length)) return 0;
  return refuse(EFAULT,
                "the copy has %zu bytes at the offset %llu of %llu bytes of device memory.\n"
                "Copy whole words of %llu bytes that are within the memory.",
                length, static_cast<unsigned long long>(offset), static_cast<unsigned long long>(dm.length),
                static_cast<unsigned long long>(kWord));
}

int memcpy_to_dm(ibv_dm* ibv, uint64_t offset, const void* from, size_t length) {
  Dm* dm = original_of<Dm>(ibv);
  if (const int error = check_copy(*dm, offset, length); error != 0) return error;
  const TsanIgnore ignore;
  copy_last_word_last(dm->memory.bytes() + offset, static_cast<const std::byte*>(from), length);
  return 0;
}

int memcpy_from_dm(void* to, ibv_dm* ibv, uint64_t offset, size_t length) {
  Dm* dm = original_of<Dm>(ibv);
  if (const int error = check_copy(*dm, offset, length); error != 0) return error;
  const TsanIgnore ignore;
  memcpy(to, dm->memory.bytes() + offset, length);
  if (Sanitizer* sanitizer = Sanitizer::of_program(); sanitizer != nullptr) sanitizer->stored(to, length);
  return 0;
}

// Takes `length` bytes of the context's device memory. False if fewer are left.
bool take_room(Context& context, size_t length) {
  uint64_t now = context.device_memory.load(std::memory_order_relaxed);
  do {
    assert(now <= kMaxDeviceMemory);
    if (length > kMaxDeviceMemory - now) return false;
  } while (!context.device_memory.compare_exchange_weak(now, now + length, std::memory_order_relaxed));
  return true;
}

// Numbers for all devices of the process.
constinit std::atomic<uint32_t> next_handle{1};

}  // namespace

ibv_dm* alloc_dm(ibv_context* ibv, ibv_alloc_dm_attr* attr) {
  if (!usable(ibv)) return failed(refuse_child());
  Context& context = *context_of(ibv);
  if ((context.attributes().features & kFeatureDeviceMemory) == 0) {
    return failed(refuse(EOPNOTSUPP,
                         "the device's identity (--as) has no device memory.\n"
                         "Look at max_dm_size of ibv_query_device_ex() first."));
  }
  if (attr->comp_mask != 0 || attr->length == 0 || attr->log_align_req > kMaxLogAlign) {
    return failed(refuse(EINVAL,
                         "comp_mask is 0x%x, length %zu and log_align_req %u.\n"
                         "Set comp_mask to 0, a length, and an alignment of at most 2^%u bytes.",
                         attr->comp_mask, attr->length, attr->log_align_req, kMaxLogAlign));
  }
  if (attr->length > kMaxDeviceMemory || !take_room(context, attr->length)) {
    return failed(refuse(ENOMEM,
                         "%llu of the %llu bytes of device memory (max_dm_size) are in use, and %zu more are wanted.\n"
                         "Free device memory with ibv_free_dm(), or ask for less.",
                         static_cast<unsigned long long>(context.device_memory.load()),
                         static_cast<unsigned long long>(kMaxDeviceMemory), attr->length));
  }
  std::unique_ptr<Dm> dm(new (std::nothrow) Dm);
  if (dm == nullptr || !dm->memory.take(attr->length)) {
    context.device_memory.fetch_sub(attr->length);
    return failed(refuse_memory("device memory"));
  }
  dm->length = attr->length;
  dm->context = &context;
  dm->ibv.context = ibv;
  set_copies(dm->ibv);
  dm->ibv.handle = next_handle.fetch_add(1);
  context.live_objects.fetch_add(1);
  context.file.add(*dm);
  return &dm.release()->ibv;
}

void set_copies(ibv_dm& dm) {
  dm.memcpy_to_dm = memcpy_to_dm;
  dm.memcpy_from_dm = memcpy_from_dm;
}

int free_dm(ibv_dm* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  Dm* dm = original_of<Dm>(ibv);
  if (has_ended(*dm)) return refuse_ended("device memory", "ibv_free_dm()");
  if (const uint32_t users = dm->users.load(); users != 0)
    return refuse(EBUSY, "%u memory regions use the device memory.\nDeregister them first.", users);
  assert(dm->importing.original == nullptr && dm->context->device_memory.load() >= dm->length);
  dm->context->device_memory.fetch_sub(dm->length);
  leave(dm->context->live_objects);
  end_object(*context_of(ibv->context), *ours<Dm>(ibv));
  return 0;
}

int dm_export_dmabuf_fd(ibv_dm* ibv) {
  if (!usable(ibv->context)) return -refuse_child();
  const Dm& dm = *original_of<Dm>(ibv);
  if (has_ended(dm)) return -refuse_ended("device memory", "ibv_dm_export_dmabuf_fd()");
  const int dmabuf = dm.memory.export_dmabuf();
  if (const int error = -dmabuf; error == EOPNOTSUPP) {
    return -refuse(
        EOPNOTSUPP,
        "the kernel makes a dma-buf by /dev/udmabuf. The program cannot open it now, or could not when it allocated "
        "the memory, or had no descriptor for the memory's file.\n"
        "Use a kernel with CONFIG_UDMABUF, let the program read and write /dev/udmabuf, and raise ulimit -n.");
  }
  if (dmabuf < 0) {
    return -refuse(-dmabuf,
                   "the kernel's udmabuf makes no dma-buf of the memory.\n"
                   "Look at the limits in /sys/module/udmabuf/parameters, and at the number of open files.");
  }
  return dmabuf;
}

}  // namespace dapple::soft::verbs
