// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/memory/mr.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "ibverbs-glue/no_cancel.hpp"
#include "rpma/common/destroy_once.hpp"
#include "rpma/common/export.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/refusal.hpp"
#include "rpma/memory/peer.hpp"

namespace {

constexpr int kFlushUsage = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
constexpr int kAllUsage = 0xff;

// The bytes of one piece of advice: verbs counts a segment in 32 bits, and every piece begins at a huge page if the
// first does.
constexpr size_t kAdvisedTogether = size_t{1} << 31;

int advise_failed(int error) {
  const int other = FAILED("ibv_advise_mr", error);
  switch (error) {
    case EOPNOTSUPP:
      return RPMA_E_NOSUPP;  // no refusal: ibv_advise_mr() has its report
    case EFAULT:
    case EINVAL:
      return RPMA_E_INVAL;  // no refusal: ibv_advise_mr() has its report
    default:
      return other;
  }
}

}  // namespace

using namespace dapple::rpma;

RPMA_EXPORT int rpma_mr_reg(rpma_peer* peer, void* ptr, size_t size, int usage, rpma_mr_local** mr_ptr) {
  if (!peer || !ptr || !mr_ptr) return refuse_null(__func__, {NAMED(peer), NAMED(ptr), NAMED(mr_ptr)});
  if (size == 0) return refuse(__func__, RPMA_E_INVAL, "size is 0.\nRegister at least one byte.");
  const dapple::NoCancel whole;
  if (usage == 0 || usage & ~kAllUsage) {
    return refuse(__func__, RPMA_E_INVAL,
                  "usage is 0x%x, and must have bits of 0x%x alone.\nPass RPMA_MR_USAGE_* for each use of the region.",
                  static_cast<unsigned>(usage), static_cast<unsigned>(kAllUsage));
  }
  std::unique_ptr<rpma_mr_local> made(new (std::nothrow) rpma_mr_local);
  if (!made) return refuse_memory();
  Descriptor& region = made->descriptor;
  made->mr = register_memory(*peer, ptr, size, usage, region.native);
  if (!made->mr) return RPMA_E_PROVIDER;  // no refusal: ibv_reg_mr() has its report
  region.address = reinterpret_cast<uintptr_t>(ptr);
  region.size = size;
  region.rkey = made->mr->rkey;
  region.usage = static_cast<uint8_t>(usage);
  *mr_ptr = made.release();
  return 0;
}

RPMA_EXPORT int rpma_mr_dereg(rpma_mr_local** mr_ptr) {
  if (!mr_ptr) return refuse_null(__func__, {NAMED(mr_ptr)});
  const dapple::NoCancel whole;
  const std::unique_ptr<rpma_mr_local> mr(std::exchange(*mr_ptr, nullptr));
  if (!mr) return 0;
  const int error = destroy_once(mr->mr);
  return error ? FAILED("ibv_dereg_mr", error) : 0;
}

RPMA_EXPORT int rpma_mr_get_descriptor(const rpma_mr_local* mr, void* desc) {
  if (!mr || !desc) return refuse_null(__func__, {NAMED(mr), NAMED(desc)});
  encode(mr->descriptor, static_cast<uint8_t*>(desc));
  return 0;
}

RPMA_EXPORT int rpma_mr_get_descriptor_size(const rpma_mr_local* mr, size_t* desc_size) {
  if (!mr || !desc_size) return refuse_null(__func__, {NAMED(mr), NAMED(desc_size)});
  *desc_size = kDescriptorSize;
  return 0;
}

RPMA_EXPORT int rpma_mr_remote_from_descriptor(const void* desc, size_t desc_size, rpma_mr_remote** mr_ptr) {
  if (!desc || !mr_ptr) return refuse_null(__func__, {NAMED(desc), NAMED(mr_ptr)});
  const std::optional<Descriptor> region = decode(desc, desc_size);
  if (!region) {
    LOG(ERROR, "the descriptor of a region has %zu bytes, which is less than %zu", desc_size, kOldDescriptorSize);
    return refuse(__func__, RPMA_E_INVAL,
                  "desc_size is %zu, and the descriptor of a region has at least %zu bytes.\nPass all bytes that "
                  "rpma_mr_get_descriptor() of the peer has stored.",
                  desc_size, kOldDescriptorSize);
  }
  if (region->usage == 0) {
    LOG(ERROR, "the descriptor of a region has no usage");
    return refuse(
        __func__, RPMA_E_INVAL,
        "the descriptor has no usage, so these are not the bytes of rpma_mr_get_descriptor().\nPass them as the "
        "peer has sent them, from their first byte on.");
  }
  if (!in_address_space(*region)) {
    LOG(ERROR, "the descriptor of a region goes beyond the last address");
    return refuse(in_a_line(__func__), RPMA_E_NOSUPP,
                  "the descriptor has %llu bytes at 0x%llx, which goes beyond the last address.\nPass the bytes "
                  "of rpma_mr_get_descriptor() as the peer has sent them, from their first byte on.",
                  static_cast<unsigned long long>(region->size), static_cast<unsigned long long>(region->address));
  }
  auto* made = new (std::nothrow) rpma_mr_remote{*region};
  if (!made) return refuse_memory();
  *mr_ptr = made;
  return 0;
}

RPMA_EXPORT int rpma_mr_remote_delete(rpma_mr_remote** mr_ptr) {
  if (!mr_ptr) return refuse_null(__func__, {NAMED(mr_ptr)});
  delete std::exchange(*mr_ptr, nullptr);
  return 0;
}

RPMA_EXPORT int rpma_mr_get_ptr(const rpma_mr_local* mr, void** ptr) {
  if (!mr || !ptr) return refuse_null(__func__, {NAMED(mr), NAMED(ptr)});
  *ptr = mr->mr->addr;
  return 0;
}

RPMA_EXPORT int rpma_mr_get_size(const rpma_mr_local* mr, size_t* size) {
  if (!mr || !size) return refuse_null(__func__, {NAMED(mr), NAMED(size)});
  *size = mr->mr->length;
  return 0;
}

RPMA_EXPORT int rpma_mr_remote_get_size(const rpma_mr_remote* mr, size_t* size) {
  if (!mr || !size) return refuse_null(__func__, {NAMED(mr), NAMED(size)});
  *size = mr->descriptor.size;
  return 0;
}

RPMA_EXPORT int rpma_mr_remote_get_flush_type(const rpma_mr_remote* mr, int* flush_type) {
  if (!mr || !flush_type) return refuse_null(__func__, {NAMED(mr), NAMED(flush_type)});
  *flush_type = mr->descriptor.usage & kFlushUsage;
  return 0;
}

RPMA_EXPORT int rpma_mr_advise(rpma_mr_local* mr, size_t offset, size_t len, int advice, uint32_t flags) {
  if (!mr) return refuse_null(__func__, {NAMED(mr)});
  if (offset > mr->mr->length || len > mr->mr->length - offset) {
    return refuse(__func__, RPMA_E_INVAL,
                  "offset is %zu and len is %zu, and the region has %zu bytes.\nPass a part of the region.", offset,
                  len, mr->mr->length);
  }
  do {
    const size_t piece = std::min(len, kAdvisedTogether);
    ibv_sge segment = mr->segment(offset, piece);
    const int error = ibv_advise_mr(mr->mr->pd, static_cast<ibv_advise_mr_advice>(advice), flags, &segment, 1);
    if (error) return advise_failed(error);
    offset += piece;
    len -= piece;
  } while (len != 0);
  return 0;
}
