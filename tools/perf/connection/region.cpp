// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/connection/region.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "tools/perf/common/failure.hpp"

namespace dapple::perf {
namespace {

constexpr size_t kPage = 65536;  // a page size that suits every architecture

}  // namespace

void Region::Free::operator()(unsigned char* memory) const {
  std::free(memory);
}

Region::Region(Session& session, size_t length, DAT_MEM_PRIV_FLAGS privileges) : session_(session) {
  const size_t whole = (length + kPage - 1) / kPage * kPage;
  memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(kPage, whole)));
  if (!memory_) throw Failure(fmt::format("no memory for a buffer of {} bytes; choose a smaller size", whole));
  std::memset(memory_.get(), 0, whole);
  DAT_REGION_DESCRIPTION where{};
  where.for_va = memory_.get();
  DAT_VLEN registered_length = 0;
  DAT_VADDR registered_address = 0;
  check(dat_lmr_create(session.ia(), DAT_MEM_TYPE_VIRTUAL, where, whole, session.pz(), privileges, DAT_VA_TYPE_VA,
                       &lmr_, &lmr_context_, &rmr_context_, &registered_length, &registered_address),
        "dat_lmr_create", "allow more locked memory (ulimit -l) or choose a smaller size");
}

Region::~Region() {
  // If the device does not release the memory, it may still write to it.
  if (dat_lmr_free(lmr_) != DAT_SUCCESS) (void)memory_.release();
}

RemoteMemory Region::for_peer() const {
  return {reinterpret_cast<uintptr_t>(memory_.get()), rmr_context_};
}

DAT_LMR_TRIPLET Region::segment(size_t offset, size_t length) const {
  DAT_LMR_TRIPLET segment{};
  segment.virtual_address = reinterpret_cast<uintptr_t>(memory_.get()) + offset;
  segment.segment_length = static_cast<DAT_SEG_LENGTH>(length);
  segment.lmr_context = lmr_context_;
  return segment;
}

void Region::before_peer_reads(size_t offset, size_t length) {
  DAT_LMR_TRIPLET range = segment(offset, length);
  check(dat_lmr_sync_rdma_read(session_.ia(), &range, 1), "dat_lmr_sync_rdma_read", "the range is in the LMR");
}

void Region::around_peer_writes(size_t offset, size_t length) {
  DAT_LMR_TRIPLET range = segment(offset, length);
  check(dat_lmr_sync_rdma_write(session_.ia(), &range, 1), "dat_lmr_sync_rdma_write", "the range is in the LMR");
}

}  // namespace dapple::perf
