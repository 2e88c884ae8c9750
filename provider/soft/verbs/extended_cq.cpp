// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/verbs/extended_cq.hpp"

#include <errno.h>

#include <cassert>

#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/sanitizers/watched.hpp"
#include "provider/soft/trace/program_trace.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft {
namespace {

using roce::CompletionOpcode;
using roce::CompletionStatus;

static_assert(static_cast<int>(CompletionStatus::kLocalLength) == IBV_WC_LOC_LEN_ERR);
static_assert(static_cast<int>(CompletionStatus::kLocalQpOperation) == IBV_WC_LOC_QP_OP_ERR);
static_assert(static_cast<int>(CompletionStatus::kLocalProtection) == IBV_WC_LOC_PROT_ERR);
static_assert(static_cast<int>(CompletionStatus::kFlushed) == IBV_WC_WR_FLUSH_ERR);
static_assert(static_cast<int>(CompletionStatus::kWindowBind) == IBV_WC_MW_BIND_ERR);
static_assert(static_cast<int>(CompletionStatus::kBadResponse) == IBV_WC_BAD_RESP_ERR);
static_assert(static_cast<int>(CompletionStatus::kLocalAccess) == IBV_WC_LOC_ACCESS_ERR);
static_assert(static_cast<int>(CompletionStatus::kRemoteInvalidRequest) == IBV_WC_REM_INV_REQ_ERR);
static_assert(static_cast<int>(CompletionStatus::kRemoteAccess) == IBV_WC_REM_ACCESS_ERR);
static_assert(static_cast<int>(CompletionStatus::kRemoteOperation) == IBV_WC_REM_OP_ERR);
static_assert(static_cast<int>(CompletionStatus::kRetryExceeded) == IBV_WC_RETRY_EXC_ERR);
static_assert(static_cast<int>(CompletionStatus::kRnrRetryExceeded) == IBV_WC_RNR_RETRY_EXC_ERR);
static_assert(static_cast<int>(CompletionOpcode::kSend) == IBV_WC_SEND);
static_assert(static_cast<int>(CompletionOpcode::kWrite) == IBV_WC_RDMA_WRITE);
static_assert(static_cast<int>(CompletionOpcode::kRead) == IBV_WC_RDMA_READ);
static_assert(static_cast<int>(CompletionOpcode::kCompareSwap) == IBV_WC_COMP_SWAP);
static_assert(static_cast<int>(CompletionOpcode::kFetchAdd) == IBV_WC_FETCH_ADD);
static_assert(static_cast<int>(CompletionOpcode::kBindWindow) == IBV_WC_BIND_MW);
static_assert(static_cast<int>(CompletionOpcode::kLocalInvalidate) == IBV_WC_LOCAL_INV);
static_assert(static_cast<int>(CompletionOpcode::kAtomicWrite) == IBV_WC_ATOMIC_WRITE);
static_assert(static_cast<int>(CompletionOpcode::kReceive) == IBV_WC_RECV);
static_assert(static_cast<int>(CompletionOpcode::kReceiveWriteImmediate) == IBV_WC_RECV_RDMA_WITH_IMM);
static_assert(static_cast<int>(CompletionStatus::kTagError) == IBV_WC_TM_ERR);
static_assert(static_cast<int>(CompletionStatus::kRendezvousIncomplete) == IBV_WC_TM_RNDV_INCOMPLETE);
static_assert(static_cast<int>(CompletionOpcode::kTagAdd) == IBV_WC_TM_ADD);
static_assert(static_cast<int>(CompletionOpcode::kTagDelete) == IBV_WC_TM_DEL);
static_assert(static_cast<int>(CompletionOpcode::kTagSync) == IBV_WC_TM_SYNC);
static_assert(static_cast<int>(CompletionOpcode::kTagReceive) == IBV_WC_TM_RECV);
static_assert(static_cast<int>(CompletionOpcode::kReceiveNoTag) == IBV_WC_TM_NO_TAG);
static_assert(int{roce::kTagSyncWanted} == IBV_WC_TM_SYNC_REQ);
static_assert(int{roce::kTagMatch} == IBV_WC_TM_MATCH);
static_assert(int{roce::kTagDataValid} == IBV_WC_TM_DATA_VALID);
static_assert(int{roce::kWithGrh} == IBV_WC_GRH);
static_assert(int{roce::kWithImmediate} == IBV_WC_WITH_IMM);
static_assert(int{roce::kIpChecksumGood} == IBV_WC_IP_CSUM_OK);
static_assert(int{roce::kWithInvalidate} == IBV_WC_WITH_INV);

Cq& cq_of(ibv_cq_ex* ibv) {
  return *ours<Cq>(ibv);
}

const roce::Completion& current_of(ibv_cq_ex* ibv) {
  return cq_of(ibv).current;
}

template <bool kSanitized, bool kStamped>
bool take_current(Cq& cq) {
  assert(cq.single_threaded || cq.poll_mutex.is_held_here());
  if constexpr (kStamped) {
    if (!cq.queue.take_stamped(cq.current, cq.current_stamp)) return false;
  } else {
    if (cq.queue.take(&cq.current, 1) == 0) return false;
  }
  if (kSanitized && cq.current.mark != 0) AnnouncedQueue::polled(cq.current);
  cq.abi.cq_ex.wr_id = cq.current.request_id;
  cq.abi.cq_ex.status = static_cast<ibv_wc_status>(cq.current.status);
  return true;
}

template <bool kSanitized, bool kStamped>
int start_poll(ibv_cq_ex* ibv, ibv_poll_cq_attr* attr) {
  Cq& cq = cq_of(ibv);
  if (attr != nullptr && attr->comp_mask != 0)
    return refused(refuse(EINVAL, "comp_mask is 0x%x.\nSet comp_mask to 0.", attr->comp_mask));
  if (!usable(ibv->context)) return refused(refuse_child());
  if (!cq.single_threaded) cq.poll_mutex.lock();
  if (take_current<kSanitized, kStamped>(cq)) return 0;
  cq.context->runtime.poll();
  if (take_current<kSanitized, kStamped>(cq)) return 0;
  if (!cq.single_threaded) cq.poll_mutex.unlock();
  return ENOENT;  // no refusal: there is no completion
}

template <bool kSanitized, bool kStamped>
int next_poll(ibv_cq_ex* ibv) {
  return take_current<kSanitized, kStamped>(cq_of(ibv)) ? 0 : ENOENT;  // no refusal: there is no other
}

void end_poll(ibv_cq_ex* ibv) {
  Cq& cq = cq_of(ibv);
  if (!cq.single_threaded) cq.poll_mutex.unlock();
}

ibv_wc_opcode read_opcode(ibv_cq_ex* ibv) {
  return static_cast<ibv_wc_opcode>(current_of(ibv).opcode);
}

uint32_t read_byte_len(ibv_cq_ex* ibv) {
  return current_of(ibv).byte_count;
}

__be32 read_imm_data(ibv_cq_ex* ibv) {
  return current_of(ibv).immediate_or_rkey;
}

uint32_t read_qp_num(ibv_cq_ex* ibv) {
  return current_of(ibv).qpn;
}

uint32_t read_src_qp(ibv_cq_ex* ibv) {
  return current_of(ibv).source_qpn;
}

unsigned int read_wc_flags(ibv_cq_ex* ibv) {
  return current_of(ibv).flags;
}

// IBTA A17.4.5.1: the completion of a datagram shows the kind of its IP header. Verbs has no field for it. Ethernet has
// no service level, so Mellanox' devices put it into that field. Without it, UCX before 1.19 treats every datagram as
// IPv6, and silently drops IPv4 datagrams.
uint8_t service_level(const roce::Completion& completion) {
  if (completion.ip_version == 0) return 0;
  constexpr uint8_t kWithUdp = 8, kIpv6 = 1, kIpv4 = 2;
  return kWithUdp | (completion.ip_version == 6 ? kIpv6 : kIpv4);
}

uint8_t read_sl(ibv_cq_ex* ibv) {
  return service_level(current_of(ibv));
}

// Ethernet has no such numbers, and this device has no vendor errors.
uint32_t read_no_number(ibv_cq_ex*) {
  return 0;
}

uint8_t read_no_byte(ibv_cq_ex*) {
  return 0;
}

uint64_t read_completion_ts(ibv_cq_ex* ibv) {
  return cq_of(ibv).current_stamp.raw;
}

void read_tm_info(ibv_cq_ex* ibv, ibv_wc_tm_info* info) {
  const roce::MatchedTag& tag = cq_of(ibv).current_stamp.tag;
  *info = {.tag = tag.tag, .priv = tag.application};
}

uint64_t read_completion_wallclock_ns(ibv_cq_ex* ibv) {
  return cq_of(ibv).current_stamp.wall;
}

template <bool kSanitized, bool kStamped>
int traced_start_poll(ibv_cq_ex* ibv, ibv_poll_cq_attr* attr) {
  const int error = start_poll<kSanitized, kStamped>(ibv, attr);
  if (error == 0) trace_poll("ibv_start_poll", ibv_cq_ex_to_cq(ibv), 1);
  if (error == ENOENT) trace_poll_in_vain();
  return error;
}

template <bool kSanitized, bool kStamped>
int traced_next_poll(ibv_cq_ex* ibv) {
  const int error = next_poll<kSanitized, kStamped>(ibv);
  if (error == 0) trace_poll("ibv_next_poll", ibv_cq_ex_to_cq(ibv), 1);
  return error;
}

template <bool kSanitized, bool kStamped>
void publish_polls(ibv_cq_ex& ex) {
  const bool traced = program_trace() != nullptr;
  ex.start_poll =
      traced ? watched<traced_start_poll<kSanitized, kStamped>>() : watched<start_poll<kSanitized, kStamped>>();
  ex.next_poll =
      traced ? watched<traced_next_poll<kSanitized, kStamped>>() : watched<next_poll<kSanitized, kStamped>>();
}

template <bool kSanitized>
void publish_polls(Cq& cq) {
  ibv_cq_ex& ex = cq.abi.cq_ex;
  if (!cq.queue.keeps_stamps()) {
    publish_polls<kSanitized, false>(ex);
    return;
  }
  publish_polls<kSanitized, true>(ex);
  ex.read_completion_ts = read_completion_ts;
  ex.read_tm_info = read_tm_info;
  ex.read_completion_wallclock_ns = read_completion_wallclock_ns;
}

}  // namespace

void show(const roce::Completion& completion, ibv_wc& shown) {
  shown = {};
  shown.wr_id = completion.request_id;
  shown.status = static_cast<ibv_wc_status>(completion.status);
  shown.opcode = static_cast<ibv_wc_opcode>(completion.opcode);
  shown.byte_len = completion.byte_count;
  shown.imm_data = completion.immediate_or_rkey;
  shown.qp_num = completion.qpn;
  shown.src_qp = completion.source_qpn;
  shown.wc_flags = completion.flags;
  shown.sl = service_level(completion);
}

void publish_cq_ex(Cq& cq) {
  assert(cq.queue.keeps_stamps() == (cq.stamped != nullptr));
  ibv_cq_ex& ex = cq.abi.cq_ex;
  if (Sanitizer::of_program() != nullptr) {
    publish_polls<true>(cq);
  } else {
    publish_polls<false>(cq);
  }
  ex.end_poll = watched<end_poll>();
  ex.read_opcode = read_opcode;
  ex.read_vendor_err = read_no_number;
  ex.read_byte_len = read_byte_len;
  ex.read_imm_data = read_imm_data;
  ex.read_qp_num = read_qp_num;
  ex.read_src_qp = read_src_qp;
  ex.read_wc_flags = read_wc_flags;
  ex.read_slid = read_no_number;
  ex.read_sl = read_sl;
  ex.read_dlid_path_bits = read_no_byte;
}

}  // namespace dapple::soft
