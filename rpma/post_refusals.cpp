// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/post_refusals.hpp"

namespace dapple::rpma {
namespace {

const char* function_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_READ:
      return "rpma_read";
    case IBV_WR_RDMA_WRITE:
      return "rpma_write";
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return "rpma_write_with_imm";
    case IBV_WR_SEND_WITH_IMM:
      return "rpma_send_with_imm";
    default:
      return "rpma_send";
  }
}

int refuse_flags(const char* function) {
  return refuse(function, RPMA_E_INVAL,
                "flags is 0.\nPass RPMA_F_COMPLETION_ALWAYS, or RPMA_F_COMPLETION_ON_ERROR for a completion after a "
                "failure alone.");
}

int refuse_length(const char* function, size_t len) {
  return refuse(function, RPMA_E_INVAL,
                "len is %zu, and a request has at most 4294967295 bytes.\nUse several requests, or correct len.", len);
}

int refuse_bytes_without_region(const char* function, const char* name, const char* what, size_t value) {
  return refuse(function, RPMA_E_INVAL,
                "%s is NULL, but %s is %zu.\nPass a region of rpma_mr_reg(), or 0 for a message without bytes.", name,
                what, value);
}

int refuse_receive(const char* function, Pointer queue, const rpma_mr_local* dst, size_t offset, size_t len) {
  if (!queue.value) return refuse_null(function, {queue});
  if (dst || (offset == 0 && len == 0)) return refuse_length(function, len);
  return refuse_bytes_without_region(function, "dst", len ? "len" : "offset", len ? len : offset);
}

}  // namespace

int refuse_move(ibv_wr_opcode opcode, const rpma_conn* conn, const rpma_mr_local* local, size_t local_offset,
                const rpma_mr_remote* remote, size_t remote_offset, size_t len, int flags) noexcept {
  const char* function = function_of(opcode);
  const bool reads = opcode == IBV_WR_RDMA_READ;
  const char* const local_name = reads ? "dst" : "src";
  const char* const remote_name = reads ? "src" : "dst";
  if (!conn) return refuse_null(function, {NAMED(conn)});
  if (flags == 0) return refuse_flags(function);
  if (len > UINT32_MAX) return refuse_length(function, len);
  if (local) return refuse_null(function, {named(remote_name, remote)});
  if (remote) return refuse_null(function, {named(local_name, local)});
  return refuse(function, RPMA_E_INVAL,
                "dst and src are NULL, but %s_offset is %zu, %s_offset is %zu and len is %zu.\nPass both regions, or 0 "
                "for a request that moves no data.",
                local_name, local_offset, remote_name, remote_offset, len);
}

int refuse_send(ibv_wr_opcode opcode, const rpma_conn* conn, const rpma_mr_local* src, size_t offset, size_t len,
                int flags) noexcept {
  const char* function = function_of(opcode);
  if (!conn) return refuse_null(function, {NAMED(conn)});
  if (flags == 0) return refuse_flags(function);
  if (src || (offset == 0 && len == 0)) return refuse_length(function, len);
  return refuse_bytes_without_region(function, "src", len ? "len" : "offset", len ? len : offset);
}

int refuse_recv(const rpma_conn* conn, const rpma_mr_local* dst, size_t offset, size_t len) noexcept {
  return refuse_receive("rpma_recv", NAMED(conn), dst, offset, len);
}

int refuse_recv(const rpma_srq* srq, const rpma_mr_local* dst, size_t offset, size_t len) noexcept {
  return refuse_receive("rpma_srq_recv", NAMED(srq), dst, offset, len);
}

// This one needs a region.
int refuse_recv(const rpma_conn_req* req, const rpma_mr_local* dst, size_t len) noexcept {
  constexpr const char* kFunction = "rpma_conn_req_recv";
  if (!req || !dst) return refuse_null(kFunction, {NAMED(req), NAMED(dst)});
  return refuse_length(kFunction, len);
}

int refuse_atomic_write(const rpma_conn* conn, const rpma_mr_remote* dst, size_t dst_offset, const char* src,
                        int flags) noexcept {
  constexpr const char* kFunction = "rpma_atomic_write";
  if (!conn || !dst || !src) {
    return refuse_null(kFunction, {NAMED(conn), NAMED(dst), {"src", src, "Pass the address of the 8 bytes."}});
  }
  if (flags == 0) return refuse_flags(kFunction);
  return refuse(kFunction, RPMA_E_INVAL,
                "dst_offset is %zu, which is no multiple of 8.\nAlign the 8 bytes in the peer's region.", dst_offset);
}

int refuse_flush(const rpma_conn* conn, const rpma_mr_remote* dst, int type, int flags) noexcept {
  constexpr const char* kFunction = "rpma_flush";
  if (!conn || !dst) return refuse_null(kFunction, {NAMED(conn), NAMED(dst)});
  if (flags == 0) return refuse_flags(kFunction);
  return refuse(kFunction, RPMA_E_INVAL, "type is %d.\nPass RPMA_FLUSH_TYPE_PERSISTENT or RPMA_FLUSH_TYPE_VISIBILITY.",
                type);
}

int refuse_flushed_range(uint64_t size, size_t dst_offset, size_t len) noexcept {
  return refuse("rpma_flush", RPMA_E_INVAL,
                "dst_offset is %zu and len is %zu, and the peer's region has %llu bytes.\nPass a part of the region.",
                dst_offset, len, static_cast<unsigned long long>(size));
}

int refuse_undeclared_persistence() noexcept {
  return refuse(in_a_line("rpma_flush"), RPMA_E_NOSUPP,
                "the peer has not declared direct writes to persistent memory.\nCall "
                "rpma_conn_apply_remote_peer_cfg() with the peer's configuration, or pass "
                "RPMA_FLUSH_TYPE_VISIBILITY.");
}

int refuse_flush_of_region(bool persistent) noexcept {
  const char* const type = persistent ? "PERSISTENT" : "VISIBILITY";
  return refuse(in_a_line("rpma_flush"), RPMA_E_NOSUPP,
                "the peer has registered dst without RPMA_MR_USAGE_FLUSH_TYPE_%s.\nLet the peer add it, or pass "
                "a type of rpma_mr_remote_get_flush_type().",
                type);
}

}  // namespace dapple::rpma
