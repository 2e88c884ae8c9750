// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The data path. The device checks offsets and lengths.
#include <algorithm>
#include <cerrno>

#include "ibverbs-glue/no_segments.hpp"
#include "rpma/common/export.hpp"
#include "rpma/common/log.hpp"
#include "rpma/conn.hpp"
#include "rpma/memory/mr.hpp"
#include "rpma/post_refusals.hpp"
#include "rpma/srq.hpp"

using namespace dapple::rpma;

namespace {

constexpr int kCompletionOnSuccess = RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR;
constexpr size_t kAtomicSize = 8;

unsigned send_flags(int flags) {
  return flags & kCompletionOnSuccess ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U;
}

// Requests go to the queue pair directly, or through a slot if the device needs it. The second way is a separate
// function, so that the usual path saves no registers for it. `function` posts with a wr_id and returns an errno value,
// as these functions do.
template <class Function>
[[gnu::noinline]] int post_by_slot(SendSlots& slots, const void* op_context, const Buffer& buffer, Function function) {
  return slots.post(reinterpret_cast<uintptr_t>(op_context), buffer, function);
}

// Returns an RPMA_E_* or 0.
template <class Function>
[[gnu::always_inline]] inline int post(const rpma_conn& conn, const void* op_context, const Buffer& buffer,
                                       Function function) {
  SendSlots* const slots = conn.link.send_slots.get();
  const int error =
      slots ? post_by_slot(*slots, op_context, buffer, function) : function(reinterpret_cast<uintptr_t>(op_context));
  if (error) [[unlikely]]
    return FAILED("ibv_post_send", error);
  return 0;
}

// A request of one segment, or of none if it is null. Fields that an opcode does not use stay unchanged.
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
  // region: the segment's, null if nothing needs maintenance.
  int post_on(const rpma_conn& conn, const void* op_context, const rpma_mr_local* region, Use use) {
    return post(conn, op_context, Buffer{wr.sg_list, region ? region->mr.get() : nullptr, use},
                [qp = conn.qp, &request = wr](uint64_t wr_id) {
                  ibv_send_wr* bad;
                  request.wr_id = wr_id;
                  return ibv_post_send(qp, &request, &bad);
                });
  }
};

// A request between a local and a remote region; both are null for a request that moves nothing.
[[gnu::always_inline]] inline int move(ibv_wr_opcode opcode, rpma_conn* conn, const rpma_mr_local* local,
                                       size_t local_offset, const rpma_mr_remote* remote, size_t remote_offset,
                                       size_t len, int flags, Use use, uint32_t imm, const void* op_context) {
  if (!conn || flags == 0 || len > UINT32_MAX) [[unlikely]]
    return refuse_move(opcode, conn, local, local_offset, remote, remote_offset, len, flags);
  if (opcode != IBV_WR_RDMA_WRITE) conn->unflushed.settle();
  if (!local || !remote) {
    if (local || remote || local_offset != 0 || remote_offset != 0 || len != 0) [[unlikely]]
      return refuse_move(opcode, conn, local, local_offset, remote, remote_offset, len, flags);
    Request request(opcode, nullptr, send_flags(flags));
    request.wr.imm_data = htobe32(imm);
    request.to(0, 0);
    if (opcode == IBV_WR_RDMA_READ && dapple::verbs::is_iwarp(*conn->qp->context)) {
      dapple::verbs::name_a_segment(request.wr);
    }
    return request.post_on(*conn, op_context, nullptr, use);
  }
  ibv_sge segment = local->segment(local_offset, len);
  Request request(opcode, &segment, send_flags(flags));
  if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM) request.wr.imm_data = htobe32(imm);
  request.to(remote->descriptor.address + remote_offset, remote->descriptor.rkey);
  return request.post_on(*conn, op_context, local, use);
}

[[gnu::always_inline]] inline int send(ibv_wr_opcode opcode, rpma_conn* conn, const rpma_mr_local* src, size_t offset,
                                       size_t len, int flags, uint32_t imm, const void* op_context) {
  if (!conn || flags == 0 || (!src && (offset != 0 || len != 0)) || len > UINT32_MAX) [[unlikely]]
    return refuse_send(opcode, conn, src, offset, len, flags);
  conn->unflushed.settle();
  ibv_sge segment;
  if (src) segment = src->segment(offset, len);
  Request request(opcode, src ? &segment : nullptr, send_flags(flags));
  if (opcode == IBV_WR_SEND_WITH_IMM) request.wr.imm_data = htobe32(imm);
  return request.post_on(*conn, op_context, src, Use::kReads);
}

// The Read begins at the start of the flushed range and never leaves the region. The answer comes after all Writes that
// were posted before it, at any address.
int flush_by_read(const rpma_conn& conn, const Descriptor& region, size_t offset, int flags, const void* op_context) {
  const uint64_t at = region.size == 0 ? 0 : std::min<uint64_t>(offset, region.size - 1);
  const size_t size = std::min<uint64_t>(kFlushReadSize, region.size - at);
  ibv_sge segment = conn.flush_sink.segment(size);
  Request request(IBV_WR_RDMA_READ, &segment, send_flags(flags));
  request.to(region.address + at, region.rkey);
  // The program does not use the data read, so nothing is maintained.
  return request.post_on(conn, op_context, nullptr, Use::kNothing);
}

// The requirements of a type of flush on a region and a device.
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
  return move(IBV_WR_RDMA_READ, conn, dst, dst_offset, src, src_offset, len, flags, Use::kWrites, 0, op_context);
}

// Apart, so that the usual path keeps nothing over the post.
[[gnu::cold, gnu::noinline]] static int write_and_note(rpma_conn* conn, rpma_mr_remote* dst, size_t dst_offset,
                                                       const rpma_mr_local* src, size_t src_offset, size_t len,
                                                       int flags, const void* op_context) {
  const int error =
      move(IBV_WR_RDMA_WRITE, conn, src, src_offset, dst, dst_offset, len, flags, Use::kReads, 0, op_context);
  if (!error && dst) conn->unflushed.add(dst->descriptor, len);
  return error;
}

RPMA_EXPORT int rpma_write(rpma_conn* conn, rpma_mr_remote* dst, size_t dst_offset, const rpma_mr_local* src,
                           size_t src_offset, size_t len, int flags, const void* op_context) {
  if (conn && conn->unflushed.watches()) [[unlikely]]
    return write_and_note(conn, dst, dst_offset, src, src_offset, len, flags, op_context);
  return move(IBV_WR_RDMA_WRITE, conn, src, src_offset, dst, dst_offset, len, flags, Use::kReads, 0, op_context);
}

RPMA_EXPORT int rpma_write_with_imm(rpma_conn* conn, rpma_mr_remote* dst, size_t dst_offset, const rpma_mr_local* src,
                                    size_t src_offset, size_t len, int flags, uint32_t imm, const void* op_context) {
  return move(IBV_WR_RDMA_WRITE_WITH_IMM, conn, src, src_offset, dst, dst_offset, len, flags, Use::kReads, imm,
              op_context);
}

// Both forms wait for earlier reads and flushes: a Read that replaces a flush may precede either.
RPMA_EXPORT int rpma_atomic_write(rpma_conn* conn, rpma_mr_remote* dst, size_t dst_offset, const char src[8], int flags,
                                  const void* op_context) {
  if (!conn || !dst || !src || flags == 0 || dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0) [[unlikely]]
    return refuse_atomic_write(conn, dst, dst_offset, src, flags);
  const Descriptor& region = dst->descriptor;
  conn->unflushed.add(region, kAtomicSize);
  const uint64_t address = region.address + dst_offset;
  const unsigned fenced = send_flags(flags) | IBV_SEND_FENCE;
  const native::Operations& native = conn->link.native;
  if (native.atomic_write && region.native & native::kAtomicWrite && address % kAtomicSize == 0) {
    return post(*conn, op_context, Buffer{}, [&](uint64_t wr_id) {
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
  return request.post_on(*conn, op_context, nullptr, Use::kNothing);
}

RPMA_EXPORT int rpma_flush(rpma_conn* conn, rpma_mr_remote* dst, size_t dst_offset, size_t len, rpma_flush_type type,
                           int flags, const void* op_context) {
  const bool persistent = static_cast<int>(type) == RPMA_FLUSH_TYPE_PERSISTENT;
  if (!conn || !dst || flags == 0 || (!persistent && static_cast<int>(type) != RPMA_FLUSH_TYPE_VISIBILITY)) [[unlikely]]
    return refuse_flush(conn, dst, static_cast<int>(type), flags);
  const Descriptor& region = dst->descriptor;
  const FlushType& wanted = persistent ? kPersistent : kVisibility;
  const native::Operations& native = conn->link.native;
  const bool can_be_native = native.flush && region.native & wanted.native;
  // A Read has its own length, so its start must be in the region. A native flush beyond the region would break the
  // connection.
  const size_t within = can_be_native ? len : std::min<size_t>(len, 1);
  if (dst_offset > region.size || within > region.size - dst_offset) {
    LOG(ERROR, "the range to flush is not in the region");
    return refuse_flushed_range(region.size, dst_offset, len);
  }
  if (persistent && !conn->direct_write_to_pmem) {
    LOG(ERROR, "the peer has not declared direct writes to persistent memory");
    return refuse_undeclared_persistence();
  }
  if (!(region.usage & wanted.usage)) {
    LOG(ERROR, "the region was not registered for a flush to %s", persistent ? "persistence" : "visibility");
    return refuse_flush_of_region(persistent);
  }
  conn->unflushed.settle();
  // RDMA Flush has 32 bits for the length, and a driver may drop the others.
  if (!can_be_native || len > UINT32_MAX) return flush_by_read(*conn, region, dst_offset, flags, op_context);
  return post(*conn, op_context, Buffer{}, [&](uint64_t wr_id) {
    ibv_wr_start(native.qp);
    native.qp->wr_id = wr_id;
    native.qp->wr_flags = send_flags(flags);
    native.flush(native.qp, region.rkey, region.address + dst_offset, len, wanted.placement, native::kRange);
    return ibv_wr_complete(native.qp);
  });
}

RPMA_EXPORT int rpma_send(rpma_conn* conn, const rpma_mr_local* src, size_t offset, size_t len, int flags,
                          const void* op_context) {
  return send(IBV_WR_SEND, conn, src, offset, len, flags, 0, op_context);
}

RPMA_EXPORT int rpma_send_with_imm(rpma_conn* conn, const rpma_mr_local* src, size_t offset, size_t len, int flags,
                                   uint32_t imm, const void* op_context) {
  return send(IBV_WR_SEND_WITH_IMM, conn, src, offset, len, flags, imm, op_context);
}

RPMA_EXPORT int rpma_recv(rpma_conn* conn, rpma_mr_local* dst, size_t offset, size_t len, const void* op_context) {
  if (!conn || (!dst && (offset != 0 || len != 0)) || len > UINT32_MAX) [[unlikely]]
    return refuse_recv(conn, dst, offset, len);
  // A lambda, because a compiler inlines it where it would call the inline function through a pointer.
  const auto post = [](ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) { return ibv_post_recv(qp, wr, bad); };
  const int error = post_recv(conn->qp, post, conn->link.recv_slots, dst, offset, len, op_context);
  if (error) [[unlikely]]
    return FAILED("ibv_post_recv", error);
  return 0;
}
