// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The data path. Offsets and lengths are the device's to check.
#include <algorithm>
#include <cerrno>

#include "rpma/conn.hpp"
#include "rpma/export.hpp"
#include "rpma/log.hpp"
#include "rpma/mr.hpp"
#include "rpma/srq.hpp"

using namespace dapple::rpma;

namespace {

constexpr int kCompletionOnSuccess = RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR;
constexpr size_t kAtomicSize = 8;

unsigned send_flags(int flags) {
  return flags & kCompletionOnSuccess ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U;
}

// Hands wr_id on to a function that posts, by way of a slot where the device needs that. An RPMA_E_* or 0.
template <class Function>
int with_slot(const rpma_conn& conn, const void* op_context, const ibv_sge* segment, Use use, Function post) {
  const auto wr_id = reinterpret_cast<uintptr_t>(op_context);
  SendSlots* const slots = conn.link.send_slots.get();
  const int error = slots ? slots->post(wr_id, segment, use, post) : post(wr_id);
  if (error) [[unlikely]]
    return FAILED("ibv_post_send", error);
  return 0;
}

// A request of one segment, or none where it is null. What an opcode does not use is left as it is.
struct Request {
  ibv_send_wr wr;

  Request(ibv_wr_opcode opcode, ibv_sge* segment, unsigned flags) {
    wr.next = nullptr;
    wr.sg_list = segment;
    wr.num_sge = segment ? 1 : 0;
    wr.opcode = opcode;
    wr.send_flags = flags;
  }
  void to(uint64_t address, uint32_t rkey) {
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
  }
  int post(const rpma_conn& conn, const void* op_context, Use use) {
    return with_slot(conn, op_context, wr.sg_list, use, [&](uint64_t wr_id) {
      ibv_send_wr* bad;
      wr.wr_id = wr_id;
      return ibv_post_send(conn.qp, &wr, &bad);
    });
  }
};

// Between a local and a remote region, which are both null for a request that moves nothing.
bool valid_pair(const rpma_conn* conn, const void* local, const void* remote, size_t local_offset, size_t remote_offset,
                size_t len, int flags) {
  if (!conn || flags == 0 || len > UINT32_MAX) return false;
  if (local && remote) return true;
  return !local && !remote && local_offset == 0 && remote_offset == 0 && len == 0;
}

int write(rpma_conn* conn, const rpma_mr_remote* dst, size_t dst_offset, const rpma_mr_local* src, size_t src_offset,
          size_t len, int flags, ibv_wr_opcode opcode, uint32_t imm, const void* op_context) {
  if (!valid_pair(conn, src, dst, src_offset, dst_offset, len, flags)) return RPMA_E_INVAL;
  ibv_sge segment;
  if (src) segment = src->segment(src_offset, len);
  Request request(opcode, src ? &segment : nullptr, send_flags(flags));
  request.wr.imm_data = htobe32(imm);
  if (dst) {
    request.to(dst->descriptor.address + dst_offset, dst->descriptor.rkey);
  } else {
    request.to(0, 0);
  }
  return request.post(*conn, op_context, Use::kReads);
}

int send(rpma_conn* conn, const rpma_mr_local* src, size_t offset, size_t len, int flags, ibv_wr_opcode opcode,
         uint32_t imm, const void* op_context) {
  if (!conn || flags == 0 || (!src && (offset != 0 || len != 0)) || len > UINT32_MAX) return RPMA_E_INVAL;
  ibv_sge segment;
  if (src) segment = src->segment(offset, len);
  Request request(opcode, src ? &segment : nullptr, send_flags(flags));
  request.wr.imm_data = htobe32(imm);
  return request.post(*conn, op_context, Use::kReads);
}

// The Read begins where the flushed range does and never leaves the region. Writes posted before it are done before it
// is answered, wherever they went.
int flush_by_read(const rpma_conn& conn, const Descriptor& region, size_t offset, int flags, const void* op_context) {
  const uint64_t at = region.size == 0 ? 0 : std::min<uint64_t>(offset, region.size - 1);
  const size_t size = std::min<uint64_t>(kFlushReadSize, region.size - at);
  ibv_sge segment = conn.flush_sink.segment(size);
  Request request(IBV_WR_RDMA_READ, &segment, send_flags(flags));
  request.to(region.address + at, region.rkey);
  // What is read is of no interest, so nothing is maintained.
  return request.post(conn, op_context, Use::kNothing);
}

// What a type of flush asks of a region and a device.
struct FlushType {
  int usage;
  uint8_t native;
  uint8_t placement;
};
constexpr FlushType kPersistent = {RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, native::kFlushPersistent,
                                   native::kPlacementPersistent};
constexpr FlushType kVisibility = {RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, native::kFlushVisibility,
                                   native::kPlacementGlobal};

}  // namespace

RPMA_EXPORT int rpma_read(rpma_conn* conn, rpma_mr_local* dst, size_t dst_offset, const rpma_mr_remote* src,
                          size_t src_offset, size_t len, int flags, const void* op_context) {
  if (!valid_pair(conn, dst, src, dst_offset, src_offset, len, flags)) return RPMA_E_INVAL;
  ibv_sge segment;
  if (dst) segment = dst->segment(dst_offset, len);
  Request request(IBV_WR_RDMA_READ, dst ? &segment : nullptr, send_flags(flags));
  if (src) {
    request.to(src->descriptor.address + src_offset, src->descriptor.rkey);
  } else {
    request.to(0, 0);
  }
  return request.post(*conn, op_context, Use::kWrites);
}

RPMA_EXPORT int rpma_write(rpma_conn* conn, rpma_mr_remote* dst, size_t dst_offset, const rpma_mr_local* src,
                           size_t src_offset, size_t len, int flags, const void* op_context) {
  return write(conn, dst, dst_offset, src, src_offset, len, flags, IBV_WR_RDMA_WRITE, 0, op_context);
}

RPMA_EXPORT int rpma_write_with_imm(rpma_conn* conn, rpma_mr_remote* dst, size_t dst_offset, const rpma_mr_local* src,
                                    size_t src_offset, size_t len, int flags, uint32_t imm, const void* op_context) {
  return write(conn, dst, dst_offset, src, src_offset, len, flags, IBV_WR_RDMA_WRITE_WITH_IMM, imm, op_context);
}

// Both ways wait for what was read or flushed before: a Read that stands for a flush may be in either's past.
RPMA_EXPORT int rpma_atomic_write(rpma_conn* conn, rpma_mr_remote* dst, size_t dst_offset, const char src[8], int flags,
                                  const void* op_context) {
  if (!conn || !dst || !src || flags == 0 || dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0) return RPMA_E_INVAL;
  const Descriptor& region = dst->descriptor;
  const uint64_t address = region.address + dst_offset;
  const unsigned fenced = send_flags(flags) | IBV_SEND_FENCE;
  const native::Operations& native = conn->link.native;
  if (native.atomic_write && region.native & native::kAtomicWrite && address % kAtomicSize == 0) {
    return with_slot(*conn, op_context, nullptr, Use::kNothing, [&](uint64_t wr_id) {
      ibv_wr_start(native.qp);
      native.qp->wr_id = wr_id;
      native.qp->wr_flags = fenced;
      native.atomic_write(native.qp, region.rkey, address, src);
      return ibv_wr_complete(native.qp);
    });
  }
  ibv_sge segment = {reinterpret_cast<uintptr_t>(src), kAtomicSize, 0};
  Request request(IBV_WR_RDMA_WRITE, &segment, fenced | IBV_SEND_INLINE);
  request.to(address, region.rkey);
  return request.post(*conn, op_context, Use::kNothing);
}

RPMA_EXPORT int rpma_flush(rpma_conn* conn, rpma_mr_remote* dst, size_t dst_offset, size_t len, rpma_flush_type type,
                           int flags, const void* op_context) {
  const bool persistent = static_cast<int>(type) == RPMA_FLUSH_TYPE_PERSISTENT;
  if (!conn || !dst || flags == 0) return RPMA_E_INVAL;
  if (!persistent && static_cast<int>(type) != RPMA_FLUSH_TYPE_VISIBILITY) return RPMA_E_INVAL;
  const Descriptor& region = dst->descriptor;
  const FlushType& wanted = persistent ? kPersistent : kVisibility;
  if (dst_offset > region.size || len > region.size - dst_offset) {
    LOG(ERROR, "what is to be flushed is not in the region");
    return RPMA_E_INVAL;
  }
  if (persistent && !conn->direct_write_to_pmem) {
    LOG(ERROR, "the peer has not said that it writes to persistent memory directly");
    return RPMA_E_NOSUPP;
  }
  if (!(region.usage & wanted.usage)) {
    LOG(ERROR, "the region was not registered for a flush to %s", persistent ? "persistence" : "visibility");
    return RPMA_E_NOSUPP;
  }
  const native::Operations& native = conn->link.native;
  if (!native.flush || !(region.native & wanted.native)) {
    return flush_by_read(*conn, region, dst_offset, flags, op_context);
  }
  return with_slot(*conn, op_context, nullptr, Use::kNothing, [&](uint64_t wr_id) {
    ibv_wr_start(native.qp);
    native.qp->wr_id = wr_id;
    native.qp->wr_flags = send_flags(flags);
    native.flush(native.qp, region.rkey, region.address + dst_offset, len, wanted.placement, native::kRange);
    return ibv_wr_complete(native.qp);
  });
}

RPMA_EXPORT int rpma_send(rpma_conn* conn, const rpma_mr_local* src, size_t offset, size_t len, int flags,
                          const void* op_context) {
  return send(conn, src, offset, len, flags, IBV_WR_SEND, 0, op_context);
}

RPMA_EXPORT int rpma_send_with_imm(rpma_conn* conn, const rpma_mr_local* src, size_t offset, size_t len, int flags,
                                   uint32_t imm, const void* op_context) {
  return send(conn, src, offset, len, flags, IBV_WR_SEND_WITH_IMM, imm, op_context);
}

RPMA_EXPORT int rpma_recv(rpma_conn* conn, rpma_mr_local* dst, size_t offset, size_t len, const void* op_context) {
  if (!conn || (!dst && (offset != 0 || len != 0)) || len > UINT32_MAX) return RPMA_E_INVAL;
  ibv_sge segment;
  if (dst) segment = dst->segment(offset, len);
  const int error = post_recv(conn->qp, ibv_post_recv, conn->link.recv_slots, dst ? &segment : nullptr, op_context);
  return error ? FAILED("ibv_post_recv", error) : 0;
}
