// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The operations of a program with DAPPLE_TRACE: a line for each call, written after it, with its objects and its
// error. Lines of posts come before the call, which may complete them. Other programs have the plain table.
#include <errno.h>

#include <algorithm>
#include <cassert>

#include "provider/common/request_circle.hpp"
#include "provider/common/segment_at.hpp"
#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/faults/verbs_names.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/trace/program_trace.hpp"

namespace dapple::soft {
namespace {

constinit const Operations* inner = nullptr;

// Adds an argument or a result to a line.
template <typename Other>
void describe(TraceLine&, const Other&) {}
void describe(TraceLine& line, ibv_pd* pd) {
  if (pd != nullptr) line.number("pd", ours<Pd>(pd)->number);
}
void describe(TraceLine& line, ibv_mr* mr) {
  if (mr == nullptr) return;
  line.hex("lkey", mr->lkey).hex("address", reinterpret_cast<uintptr_t>(mr->addr)).number("length", mr->length);
}
void describe(TraceLine& line, ibv_mw* mw) {
  if (mw != nullptr) line.hex("window", mw->rkey);
}
void describe(TraceLine& line, ibv_cq* cq) {
  if (cq != nullptr) line.hex("cq", reinterpret_cast<uintptr_t>(cq)).number("cqe", static_cast<uint64_t>(cq->cqe));
}
void describe(TraceLine& line, ibv_cq_ex* cq) {
  describe(line, reinterpret_cast<ibv_cq*>(cq));
}
void describe(TraceLine& line, ibv_srq* srq) {
  if (srq != nullptr) line.hex("srq", reinterpret_cast<uintptr_t>(srq));
}
void describe(TraceLine& line, ibv_xrcd* xrcd) {
  if (xrcd != nullptr) line.hex("xrcd", reinterpret_cast<uintptr_t>(xrcd));
}
void describe(TraceLine& line, ibv_qp* qp) {
  if (qp != nullptr) line.hex("qp", qp->qp_num);
}

const char* state_name(ibv_qp_state state) {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return static_cast<size_t>(state) < std::size(kNames) ? kNames[state] : "unknown";
}

template <provider::Operation kVerb, auto kMember, typename Function = FunctionOf<kMember>>
struct Traced;

template <provider::Operation kVerb, auto kMember, typename Result, typename... Arguments>
struct Traced<kVerb, kMember, Result (*)(Arguments...)> {
  static inline const char* name = "";
  static Result call(Arguments... arguments) {
    TraceLine line;
    line.text("call", name);
    // Before the call, which may destroy them.
    (describe(line, arguments), ...);
    const Result result = (inner->*kMember)(arguments...);
    if constexpr (std::is_pointer_v<Result>) {
      result == nullptr ? void(line.error(errno)) : describe(line, result);
    } else if constexpr (kReturnsNumber<kMember>) {
      if (result < 0) line.error(-result);
    } else {
      line.error(result);
    }
    append_call(line);
    return result;
  }
};

// The operation cannot fail.
template <auto kMember, typename Function = FunctionOf<kMember>>
struct TracedUnfailing;

template <auto kMember, typename Result, typename... Arguments>
struct TracedUnfailing<kMember, Result (*)(Arguments...)> {
  static inline const char* name = "";
  static Result call(Arguments... arguments) {
    TraceLine line;
    line.text("call", name);
    (describe(line, arguments), ...);
    if constexpr (std::is_void_v<Result>) {
      (inner->*kMember)(arguments...);
      append_call(line);
    } else {
      const Result result = (inner->*kMember)(arguments...);
      append_call(line.number("result", static_cast<uint64_t>(result)));
      return result;
    }
  }
};

int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  TraceLine line;
  line.text("call", "ibv_modify_qp").hex("qp", qp->qp_num);
  if ((mask & IBV_QP_STATE) != 0) line.text("state", state_name(attr->qp_state));
  if ((mask & IBV_QP_DEST_QPN) != 0) line.hex("remote_qp", attr->dest_qp_num);
  const int error = inner->modify_qp(qp, attr, mask);
  append_call(line.error(error));
  return error;
}

uint64_t bytes_of(const ibv_sge* list, int count) {
  uint64_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += provider::segment_at(list, i).length;
  return bytes;
}

void set_remote_memory(roce::SendRequest& request, const ibv_send_wr& wr) {
  switch (request.opcode) {
    case roce::SendOpcode::kWrite:
    case roce::SendOpcode::kWriteImmediate:
    case roce::SendOpcode::kRead:
    case roce::SendOpcode::kAtomicWrite:
      request.remote_address = wr.wr.rdma.remote_addr;
      request.rkey = wr.wr.rdma.rkey;
      break;
    case roce::SendOpcode::kCompareSwap:
    case roce::SendOpcode::kFetchAdd:
      request.remote_address = wr.wr.atomic.remote_addr;
      request.rkey = wr.wr.atomic.rkey;
      break;
    default:
      break;
  }
}

// Calls show(request) for each request of the list; of a list without an end for the first one.
template <typename Request, typename Show>
void show_each(const Request* requests, Show show) {
  const bool ends = !provider::find_circle(requests);
  for (const Request* wr = requests; wr != nullptr; wr = ends ? wr->next : nullptr) show(*wr);
}

int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad) {
  constexpr const char* kCall = "ibv_post_send";
  show_each<ibv_send_wr>(requests, [&](const ibv_send_wr& wr) {
    roce::SendRequest request;
    request.id = wr.wr_id;
    request.opcode = static_cast<roce::SendOpcode>(wr.opcode);
    request.flags = static_cast<uint8_t>(wr.send_flags);
    if (qp->qp_type == IBV_QPT_UD) request.remote_qpn = wr.wr.ud.remote_qpn;
    if (qp->qp_type == IBV_QPT_XRC_SEND) request.remote_srq = wr.qp_type.xrc.remote_srqn;
    set_remote_memory(request, wr);
    trace_post(kCall, *qp, request, bytes_of(wr.sg_list, wr.num_sge));
  });
  const int error = inner->post_send(qp, requests, bad);
  if (error != 0) trace_refusal(kCall, qp->qp_num, (*bad)->wr_id, error);
  return error;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  constexpr const char* kCall = "ibv_post_recv";
  show_each<ibv_recv_wr>(requests, [&](const ibv_recv_wr& wr) {
    TraceLine line;
    line.text("call", kCall)
        .hex("qp", qp->qp_num)
        .number("wr_id", wr.wr_id)
        .number("bytes", bytes_of(wr.sg_list, wr.num_sge));
    append_call(line);
  });
  const int error = inner->post_recv(qp, requests, bad);
  if (error != 0) trace_refusal(kCall, qp->qp_num, (*bad)->wr_id, error);
  return error;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  const auto line_of = [srq](const ibv_recv_wr& wr) {
    TraceLine line;
    line.text("call", "ibv_post_srq_recv").hex("srq", reinterpret_cast<uintptr_t>(srq)).number("wr_id", wr.wr_id);
    return line;
  };
  show_each<ibv_recv_wr>(requests, [&](const ibv_recv_wr& wr) {
    TraceLine line = line_of(wr);
    append_call(line.number("bytes", bytes_of(wr.sg_list, wr.num_sge)));
  });
  const int error = inner->post_srq_recv(srq, requests, bad);
  if (error != 0) {
    TraceLine line = line_of(**bad);
    append_call(line.error(error));
  }
  return error;
}

int post_srq_ops(ibv_srq* srq, ibv_ops_wr* operations, ibv_ops_wr** bad) {
  const auto line_of = [srq](const ibv_ops_wr& wr) {
    TraceLine line;
    line.text("call", "ibv_post_srq_ops").hex("srq", reinterpret_cast<uintptr_t>(srq)).number("wr_id", wr.wr_id);
    line.text("opcode", opcode_name(wr.opcode));
    return line;
  };
  show_each<ibv_ops_wr>(operations, [&](const ibv_ops_wr& wr) {
    TraceLine line = line_of(wr);
    if (wr.opcode == IBV_WR_TAG_ADD) {
      line.number("recv_wr_id", wr.tm.add.recv_wr_id).hex("tag", wr.tm.add.tag).hex("mask", wr.tm.add.mask);
      line.number("bytes", bytes_of(wr.tm.add.sg_list, wr.tm.add.num_sge));
    }
    if (wr.opcode == IBV_WR_TAG_DEL) line.hex("handle", wr.tm.handle);
    if ((wr.flags & IBV_OPS_TM_SYNC) != 0) line.number("unexpected", wr.tm.unexpected_cnt);
    if ((wr.flags & IBV_OPS_SIGNALED) != 0) line.number("signaled", 1);
    append_call(line);
  });
  const int error = inner->post_srq_ops(srq, operations, bad);
  if (error != 0) {
    TraceLine line = line_of(**bad);
    append_call(line.error(error));
  }
  return error;
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) {
  const int found = inner->poll_cq(cq, count, completions);
  assert(found <= std::max(count, 0));
  if (found > 0) trace_poll("ibv_poll_cq", cq, static_cast<uint32_t>(found));
  if (found == 0) trace_poll_in_vain();
  if (found < 0) {
    TraceLine line;
    line.text("call", "ibv_poll_cq").hex("cq", reinterpret_cast<uintptr_t>(cq));
    append_call(line.error(-found));
  }
  return found;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  TraceLine line;
  line.text("call", "ibv_req_notify_cq").hex("cq", reinterpret_cast<uintptr_t>(cq));
  if (solicited_only != 0) line.number("solicited_only", 1);
  const int error = inner->req_notify_cq(cq, solicited_only);
  append_call(line.error(error));
  return error;
}

// libibverbs calls it in ibv_get_cq_event().
void cq_event(ibv_cq* cq) {
  if (inner->cq_event != nullptr) inner->cq_event(cq);
  trace_notification(cq);
}

}  // namespace

const Operations& traced_operations(const Operations& traced) {
  using provider::Operation;
  static const Operations table = [&traced] {
    assert(inner == nullptr && program_trace() != nullptr);
    inner = &traced;
    Operations made = traced;
#define DAPPLE_TRACED(verb)                                        \
  Traced<Operation::verb, &Operations::verb>::name = "ibv_" #verb; \
  made.verb = Traced<Operation::verb, &Operations::verb>::call;
    DAPPLE_PLANNED_VERBS(DAPPLE_TRACED)
#undef DAPPLE_TRACED
#define DAPPLE_TRACED(verb)                                 \
  TracedUnfailing<& Operations::verb>::name = "ibv_" #verb; \
  made.verb = TracedUnfailing<&Operations::verb>::call;
    DAPPLE_UNFAILING_VERBS(DAPPLE_TRACED)
#undef DAPPLE_TRACED
    Traced<Operation::query_rt_values, &Operations::query_rt_values>::name = "ibv_query_rt_values_ex";
    Traced<Operation::reg_mr, &Operations::reg_mr_ex>::name = "ibv_reg_mr";
    made.reg_mr_ex = Traced<Operation::reg_mr, &Operations::reg_mr_ex>::call;
    made.modify_qp = modify_qp;
    made.post_send = post_send;
    made.post_recv = post_recv;
    made.post_srq_ops = post_srq_ops;
    made.post_srq_recv = post_srq_recv;
    made.poll_cq = poll_cq;
    made.req_notify_cq = req_notify_cq;
    made.cq_event = cq_event;
    return made;
  }();
  return table;
}

}  // namespace dapple::soft
