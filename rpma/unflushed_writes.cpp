// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/unflushed_writes.hpp"

#include <cerrno>
#include <cstdio>
#include <new>

#include "ibverbs-glue/explains.hpp"

namespace dapple::rpma {
namespace {

bool has_failed(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0 || attr.qp_state != IBV_QPS_RTS;
}

}  // namespace

void UnflushedWrites::start() noexcept {
  if (explains() && !explains_all()) first_.reset(new (std::nothrow) dappledv_call);
}

void UnflushedWrites::note(size_t size) noexcept {
  if (bytes_ == 0 && dappledv_note_call(first_.get()) == 0) {
    first_.reset();  // the device has no check
    return;
  }
  bytes_ += size;
}

void UnflushedWrites::report(const char* function, ibv_qp* qp) noexcept {
  if (bytes_ == 0) return;
  const int saved = errno;
  if (!has_failed(qp)) {
    char text[400];
    std::snprintf(
        text, sizeof text,
        "%s() ends a connection by which the program has written %llu bytes into memory that the peer has "
        "registered with RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, and no rpma_flush(), read or message came after "
        "them.",
        function, static_cast<unsigned long long>(bytes_));
    dappledv_report_missing_call(
        text,
        "Call rpma_flush() after the last write, and wait for its completion: the completion of a write does not tell "
        "that the bytes are persistent.",
        first_.get());
  }
  bytes_ = 0;
  errno = saved;
}

}  // namespace dapple::rpma
