// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tombs/dead_calls.hpp"

#include <errno.h>

#include "provider/soft/tombs/tombs.hpp"

namespace dapple::soft::tombs {
namespace {

int refuse(const void* object, const char* verb) {
  Tombs::get().report_if_ended(object, verb);
  errno = EINVAL;
  return EINVAL;
}

// After ibv_wr_start(), which reports.
template <typename... Arguments>
void ignore(ibv_qp_ex*, Arguments...) {}

void wr_start(ibv_qp_ex* qp) {
  refuse(qp, "ibv_wr_start");
}

int wr_complete(ibv_qp_ex*) {
  errno = EINVAL;
  return EINVAL;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr*) {
  return refuse(cq, "ibv_start_poll");
}

int next_poll(ibv_cq_ex* cq) {
  return refuse(cq, "ibv_next_poll");
}

void end_poll(ibv_cq_ex* cq) {
  refuse(cq, "ibv_end_poll");
}

template <typename Value>
Value read_nothing(ibv_cq_ex* cq) {
  refuse(cq, "ibv_wc_read");
  return Value();
}

int post_recv(ibv_wq* wq, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  *bad = requests;
  return refuse(wq, "ibv_post_wq_recv");
}

int memcpy_to_dm(ibv_dm* dm, uint64_t, const void*, size_t) {
  return refuse(dm, "ibv_memcpy_to_dm");
}

int memcpy_from_dm(void*, ibv_dm* dm, uint64_t, size_t) {
  return refuse(dm, "ibv_memcpy_from_dm");
}

}  // namespace

void end_calls(abi::Qp& qp) {
  ibv_qp_ex& ex = qp.qp_ex;
  ex.wr_atomic_cmp_swp = ignore;
  ex.wr_atomic_fetch_add = ignore;
  ex.wr_bind_mw = ignore;
  ex.wr_local_inv = ignore;
  ex.wr_rdma_read = ignore;
  ex.wr_rdma_write = ignore;
  ex.wr_rdma_write_imm = ignore;
  ex.wr_send = ignore;
  ex.wr_send_imm = ignore;
  ex.wr_send_inv = ignore;
  ex.wr_set_ud_addr = ignore;
  ex.wr_set_inline_data = ignore;
  ex.wr_set_inline_data_list = ignore;
  ex.wr_set_xrc_srqn = ignore;
  ex.wr_set_sge = ignore;
  ex.wr_set_sge_list = ignore;
  ex.wr_atomic_write = ignore;
  ex.wr_abort = ignore;
  ex.wr_start = wr_start;
  ex.wr_complete = wr_complete;
  // In libibverbs that has it, wr_flush is here.
  void (*const flush)(ibv_qp_ex*, uint32_t, uint64_t, size_t, uint8_t, uint8_t) = ignore;
  if (qp.tail()[1] == abi::kQpEx) qp.tail()[0] = reinterpret_cast<uintptr_t>(flush);
}

void end_calls(abi::Cq& cq) {
  ibv_cq_ex& ex = cq.cq_ex;
  ex.start_poll = start_poll;
  ex.next_poll = next_poll;
  ex.end_poll = end_poll;
  ex.read_opcode = read_nothing;
  ex.read_vendor_err = read_nothing;
  ex.read_byte_len = read_nothing;
  ex.read_imm_data = read_nothing;
  ex.read_qp_num = read_nothing;
  ex.read_src_qp = read_nothing;
  ex.read_wc_flags = read_nothing;
  ex.read_slid = read_nothing;
  ex.read_sl = read_nothing;
  ex.read_dlid_path_bits = read_nothing;
  ex.read_completion_ts = read_nothing;
  ex.read_completion_wallclock_ns = read_nothing;
}

void end_calls(ibv_wq& wq) {
  wq.post_recv = post_recv;
}

void end_calls(ibv_dm& dm) {
  dm.memcpy_to_dm = memcpy_to_dm;
  dm.memcpy_from_dm = memcpy_from_dm;
}

}  // namespace dapple::soft::tombs
