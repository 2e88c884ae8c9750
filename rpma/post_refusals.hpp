// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The reasons why a request is not posted. A function of the data path comes here with its arguments when one of them
// is wrong, so it only compares. All but the last two return RPMA_E_INVAL.
#pragma once

#include "rpma/common/refusal.hpp"

namespace dapple::rpma {

// A request between two regions. opcode: that of rpma_read(), rpma_write() or rpma_write_with_imm().
[[gnu::cold, gnu::noinline]] int refuse_move(ibv_wr_opcode opcode, const rpma_conn* conn, const rpma_mr_local* local,
                                             size_t local_offset, const rpma_mr_remote* remote, size_t remote_offset,
                                             size_t len, int flags) noexcept;

[[gnu::cold, gnu::noinline]] int refuse_send(ibv_wr_opcode opcode, const rpma_conn* conn, const rpma_mr_local* src,
                                             size_t offset, size_t len, int flags) noexcept;

// rpma_recv(), rpma_srq_recv() and rpma_conn_req_recv().
[[gnu::cold, gnu::noinline]] int refuse_recv(const rpma_conn* conn, const rpma_mr_local* dst, size_t offset,
                                             size_t len) noexcept;
[[gnu::cold, gnu::noinline]] int refuse_recv(const rpma_srq* srq, const rpma_mr_local* dst, size_t offset,
                                             size_t len) noexcept;
[[gnu::cold, gnu::noinline]] int refuse_recv(const rpma_conn_req* req, const rpma_mr_local* dst, size_t len) noexcept;

[[gnu::cold, gnu::noinline]] int refuse_atomic_write(const rpma_conn* conn, const rpma_mr_remote* dst,
                                                     size_t dst_offset, const char* src, int flags) noexcept;

[[gnu::cold, gnu::noinline]] int refuse_flush(const rpma_conn* conn, const rpma_mr_remote* dst, int type,
                                              int flags) noexcept;
// size: of the region.
[[gnu::cold, gnu::noinline]] int refuse_flushed_range(uint64_t size, size_t dst_offset, size_t len) noexcept;

// The peer or the region does not allow the flush: RPMA_E_NOSUPP, and a line, because a program may try such flushes.
[[gnu::cold, gnu::noinline]] int refuse_undeclared_persistence() noexcept;
[[gnu::cold, gnu::noinline]] int refuse_flush_of_region(bool persistent) noexcept;

}  // namespace dapple::rpma
