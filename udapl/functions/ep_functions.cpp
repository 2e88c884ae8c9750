// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/refusal.hpp"
#include "udapl/functions/connect_arguments.hpp"
#include "udapl/functions/functions.hpp"

namespace dapple::udapl::functions {
namespace {

#define EP_STATE(NAME, SUBTYPE, DAT) static_assert(static_cast<int>(EpState::NAME) == (DAT));
#include "udapl/api/names.def"

// The attributes that are counts, in DAT's structure and in the core's, and the bit of each in the mask of
// dat_ep_modify.
struct Count {
  const char* what;
  DAT_COUNT DAT_EP_ATTR::*dat;
  uint32_t EpAttr::*core;
  DAT_EP_PARAM_MASK field;
};
#define COUNT(NAME, FIELD) \
  { "an EP's " #NAME, &DAT_EP_ATTR::NAME, &EpAttr::NAME, DAT_EP_FIELD_EP_ATTR_##FIELD }
constexpr Count kCounts[] = {
    COUNT(max_recv_dtos, MAX_RECV_DTOS),         COUNT(max_request_dtos, MAX_REQUEST_DTOS),
    COUNT(max_recv_iov, MAX_RECV_IOV),           COUNT(max_request_iov, MAX_REQUEST_IOV),
    COUNT(max_rdma_read_in, MAX_RDMA_READ_IN),   COUNT(max_rdma_read_out, MAX_RDMA_READ_OUT),
    COUNT(max_rdma_read_iov, MAX_RDMA_READ_IOV), COUNT(max_rdma_write_iov, MAX_RDMA_WRITE_IOV),
};
#undef COUNT

// False for an attribute that no EP can have; a logged line names it.
bool to_core(const Ia& ia, const DAT_EP_ATTR& in, EpAttr& out) {
  if (!to_service(in.service_type, out.datagrams)) {
    log_refused(ia, "an EP's service_type", static_cast<int>(in.service_type), "unknown service");
    return false;
  }
  out.max_message_size = in.max_message_size;
  out.max_rdma_size = in.max_rdma_size;
  out.qos = in.qos;
  out.recv_completion_flags = in.recv_completion_flags;
  out.request_completion_flags = in.request_completion_flags;
  for (const Count& count : kCounts) {
    if (in.*count.dat < 0) {
      log_refused(ia, count.what, in.*count.dat, "it must not be negative");
      return false;
    }
    out.*count.core = static_cast<uint32_t>(in.*count.dat);
  }
  return true;
}

void fill(const EpAttr& in, DAT_EP_ATTR& out) {
  out = {};
  out.service_type = to_dat_service(in.datagrams);
  out.max_message_size = static_cast<decltype(out.max_message_size)>(in.max_message_size);
  out.max_rdma_size = static_cast<decltype(out.max_rdma_size)>(in.max_rdma_size);
  out.qos = static_cast<DAT_QOS>(in.qos);
  out.recv_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(in.recv_completion_flags);
  out.request_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(in.request_completion_flags);
  for (const Count& count : kCounts) out.*count.dat = static_cast<DAT_COUNT>(in.*count.core);
}

// Sets those attributes that the mask names; the errors are of dat_ep_modify's third argument.
DAT_RETURN change(DAT_EP_PARAM_MASK mask, const DAT_EP_ATTR& in, EpAttr& out) {
  const DAT_RETURN bad = error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  const auto has = [mask](DAT_EP_PARAM_MASK field) { return (mask & field) != 0; };
  if (has(DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE) && in.service_type != to_dat_service(out.datagrams)) {
    expect_of("service_type", static_cast<int>(in.service_type), "an EP keeps its service type");
    return bad;
  }
  if (has(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE)) out.max_message_size = in.max_message_size;
  if (has(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE)) out.max_rdma_size = in.max_rdma_size;
  if (has(DAT_EP_FIELD_EP_ATTR_QOS)) {
    if (auto status = check_qos(in.qos, DAT_INVALID_ARG3)) return status;
    out.qos = in.qos;
  }
  if (has(DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS)) out.recv_completion_flags = in.recv_completion_flags;
  if (has(DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS)) out.request_completion_flags = in.request_completion_flags;
  const uint32_t flags = out.recv_completion_flags | out.request_completion_flags;
  if (flags & ~uint32_t{kAllCompletionFlags}) {
    expect_of("the completion flags", flags, "unknown flags");
    return bad;
  }
  for (const Count& count : kCounts) {
    if (!has(count.field)) continue;
    if (in.*count.dat < 0) {
      expect_of(count.what, in.*count.dat, "it must not be negative");
      return bad;
    }
    out.*count.core = static_cast<uint32_t>(in.*count.dat);
  }
  // Attributes of these kinds do not exist.
  const bool has_specific = (has(DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR) && in.ep_transport_specific_count != 0) ||
                            (has(DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR) && in.ep_provider_specific_count != 0);
  if (!has_specific) return kSuccess;
  expect("attributes of the transport, or of the provider, do not exist");
  return bad;
}

// The members that only a connection, the creation or another function sets.
constexpr DAT_EP_PARAM_MASK kFixed =
    DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL |
    DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL | DAT_EP_FIELD_SRQ_HANDLE;

DAT_RETURN modify(Ep& ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM& param) {
  const DAT_RETURN bad = error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  Pz* pz = ep.pz();
  if ((mask & DAT_EP_FIELD_PZ_HANDLE) && !find_optional(param.pz_handle, ep.ia(), pz)) {
    expect("pz_handle is no protection zone of the IA");
    return bad;
  }
  EpEvds evds = ep.evds();
  const bool evds_good = (!(mask & DAT_EP_FIELD_RECV_EVD_HANDLE) ||
                          find_optional_evd(param.recv_evd_handle, ep.ia(), kEvdDto, evds.recv)) &&
                         (!(mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE) ||
                          find_optional_evd(param.request_evd_handle, ep.ia(), kEvdDto, evds.request)) &&
                         (!(mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE) ||
                          find_optional_evd(param.connect_evd_handle, ep.ia(), kEvdConnection, evds.connect));
  if (!evds_good) {
    expect("an EVD is none of the IA, or lacks the stream that it is for");
    return bad;
  }
  EpAttr attr = ep.attr();
  if (auto status = change(mask, param.ep_attr, attr)) return status;
  return to_dat(
      ep.configure(pz, evds, attr, changed_comm(ep, mask, param)),
      {{Subtype::kAttr, DAT_INVALID_ARG3}, {Subtype::kEvd, DAT_INVALID_ARG3}, {Subtype::kPz, DAT_INVALID_ARG3}});
}

// srq: null for an EP with receives of its own, otherwise the handle to check; then the numbers of later arguments are
// one higher.
DAT_RETURN create(Ia& ia, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
                  DAT_EVD_HANDLE connect_evd, const DAT_SRQ_HANDLE* srq_handle, const DAT_EP_ATTR* ep_attr,
                  DAT_EP_HANDLE* ep_handle) {
  Pz* pz = nullptr;
  if (!find_optional(pz_handle, ia, pz)) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
  EpEvds evds;
  if (!find_optional_evd(recv_evd, ia, kEvdDto, evds.recv) || (srq_handle && !evds.recv)) {
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
  }
  if (!find_optional_evd(request_evd, ia, kEvdDto, evds.request)) {
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
  }
  if (!find_optional_evd(connect_evd, ia, kEvdConnection, evds.connect)) {
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
  }
  auto* srq = srq_handle ? find_object<Srq>(*srq_handle, ia) : nullptr;
  if (srq_handle && !srq) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
  const DAT_RETURN_SUBTYPE attr_number = srq ? DAT_INVALID_ARG7 : DAT_INVALID_ARG6;
  EpAttr attr;
  if (ep_attr && !to_core(ia, *ep_attr, attr)) return error(DAT_INVALID_PARAMETER, attr_number);
  if (auto status = check_qos(static_cast<DAT_QOS>(attr.qos), attr_number)) {
    log_refused(ia, "an EP's qos", attr.qos, "only DAT_QOS_BEST_EFFORT is supported");
    return status;
  }
  if (!ep_handle) return error(DAT_INVALID_PARAMETER, srq ? DAT_INVALID_ARG8 : DAT_INVALID_ARG7);
  return controlled([&] { return store(Ep::create(ia, pz, evds, attr, srq), ep_handle); },
                    {{Subtype::kPz, DAT_INVALID_ARG2}, {Subtype::kAttr, attr_number}});
}

}  // namespace

DAT_RETURN ep_create(Ia& ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
                     DAT_EVD_HANDLE connect_evd, const DAT_EP_ATTR* attr, DAT_EP_HANDLE* ep) {
  return create(ia, pz, recv_evd, request_evd, connect_evd, nullptr, attr, ep);
}

DAT_RETURN ep_create_with_srq(Ia& ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
                              DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR* attr,
                              DAT_EP_HANDLE* ep) {
  return create(ia, pz, recv_evd, request_evd, connect_evd, &srq, attr, ep);
}

// Only the device knows how many receives an EP holds from a shared queue.
DAT_RETURN ep_recv_query(Ep& ep, DAT_COUNT* buffers, DAT_COUNT* span) {
  const DAT_COUNT count = ep.srq() ? DAT_VALUE_UNKNOWN : static_cast<DAT_COUNT>(ep.outstanding_receives());
  if (buffers) *buffers = count;
  if (span) *span = count;
  return DAT_SUCCESS;
}

// Verbs has no such watermarks, so only none can be granted.
DAT_RETURN ep_set_watermark(Ep& ep, DAT_COUNT soft, DAT_COUNT hard) {
  constexpr char kExpected[] = "it must not be negative, or be DAT_WATERMARK_INFINITE";
  if (soft < 0 && soft != DAT_WATERMARK_INFINITE) return wrong_argument(DAT_INVALID_ARG2, kExpected);
  if (hard < 0 && hard != DAT_WATERMARK_INFINITE) return wrong_argument(DAT_INVALID_ARG3, kExpected);
  if (!ep.srq()) return error(DAT_INVALID_STATE);
  if (soft != DAT_WATERMARK_INFINITE || hard != DAT_WATERMARK_INFINITE) return error(DAT_MODEL_NOT_SUPPORTED);
  return DAT_SUCCESS;
}

DAT_RETURN ep_query(Ep& ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM* param) {
  if (!is_ep_query_mask(mask)) return wrong_argument(DAT_INVALID_ARG2, "it has bits of no member");
  if (!param) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  return controlled([&] {
    *param = {};
    param->ia_handle = consumer_handle(ep.ia());
    param->ep_state = static_cast<DAT_EP_STATE>(ep.reported_state());
    fill_comm(ep, *param);
    param->local_ia_address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(ep.ia().address());
    param->local_port_qual = ep.connection().local_port();
    param->remote_ia_address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(ep.connection().remote_address());
    param->remote_port_qual = ep.connection().remote_port();
    param->pz_handle = ep.pz();
    param->recv_evd_handle = ep.evds().recv;
    param->request_evd_handle = ep.evds().request;
    param->connect_evd_handle = ep.evds().connect;
    param->srq_handle = ep.srq();
    fill(ep.attr(), param->ep_attr);
    return kSuccess;
  });
}

DAT_RETURN ep_modify(Ep& ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM* param) {
  if (auto status = check_query(mask, DAT_EP_FIELD_ALL & ~kFixed, param)) return status;
  return controlled([&] { return modify(ep, mask, *param); });
}

DAT_RETURN ep_get_status(Ep& ep, DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle, DAT_BOOLEAN* request_idle) {
  if (state) *state = static_cast<DAT_EP_STATE>(ep.reported_state());
  if (recv_idle) *recv_idle = to_dat(ep.recv_idle());
  if (request_idle) *request_idle = to_dat(ep.request_idle());
  return DAT_SUCCESS;
}

DAT_RETURN ep_disconnect(Ep& ep, DAT_CLOSE_FLAGS flags) {
  if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
    return wrong_argument(DAT_INVALID_ARG2, "it must be DAT_CLOSE_ABRUPT_FLAG or DAT_CLOSE_GRACEFUL_FLAG");
  return controlled([&] { return ep.disconnect(flags == DAT_CLOSE_ABRUPT_FLAG); });
}

DAT_RETURN ep_reset(Ep& ep) {
  return controlled([&] { return ep.reset(); });
}

DAT_RETURN ep_free(Ep& ep) {
  return controlled([&] {
    auto can_free = ep.check_can_free();
    return can_free ? Ep::free(ep) : can_free;
  });
}

}  // namespace dapple::udapl::functions
