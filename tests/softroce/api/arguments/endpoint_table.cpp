// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Endpoints: create, query, modify, free.
#include <limits>

#include "tests/softroce/api/arguments/table.hpp"

namespace arguments {
namespace {

constexpr int kBadAttributes = 14 ONLY_12(+2);

DAT_EP_HANDLE made;
DAT_EP_PARAM param;
DAT_EP_STATE ep_state;
DAT_BOOLEAN recv_idle, request_idle;
DAT_COUNT buffers, span;
DAT_EP_ATTR good_attr;
DAT_EP_ATTR bad_attrs[kBadAttributes];
DAT_EP_PARAM good_param;
DAT_EP_PARAM bad_params[kBadAttributes];
const char* const kBadNames[kBadAttributes] = {
    "service type",
    "negative max_recv_dtos",
    "max_request_dtos over the device's",
    "max_recv_dtos over the device's",
    "negative max_recv_iov",
    "max_recv_iov over the device's",
    "negative max_request_iov",
    "max_request_iov over the device's",
    "negative rdma_read_in",
    "rdma_read_in over the device's",
    "rdma_read_out over the device's",
    "recv_completion_flags",
    "request_completion_flags",
    "qos" ONLY_12(, "max_message_size of more than 32 bits", "max_rdma_size of more than 32 bits")};

void fill_attributes(const World& w) {
  constexpr DAT_COUNT kHuge = std::numeric_limits<DAT_COUNT>::max();
  const auto flags = static_cast<DAT_COMPLETION_FLAGS>(0x1000);
  DAT_EP_PARAM now;
  if (dat_ep_query(w.good[kEp], DAT_EP_FIELD_ALL, &now) != DAT_SUCCESS) return;
  good_attr = now.ep_attr;
  for (DAT_EP_ATTR& attr : bad_attrs) attr = good_attr;
  bad_attrs[0].service_type = static_cast<DAT_SERVICE_TYPE>(77);
  bad_attrs[1].max_recv_dtos = -1;
  bad_attrs[2].max_request_dtos = kHuge;
  bad_attrs[3].max_recv_dtos = kHuge;
  bad_attrs[4].max_recv_iov = -1;
  bad_attrs[5].max_recv_iov = kHuge;
  bad_attrs[6].max_request_iov = -1;
  bad_attrs[7].max_request_iov = kHuge;
  bad_attrs[8].max_rdma_read_in = -1;
  bad_attrs[9].max_rdma_read_in = kHuge;
  bad_attrs[10].max_rdma_read_out = kHuge;
  bad_attrs[11].recv_completion_flags = flags;
  bad_attrs[12].request_completion_flags = flags;
  bad_attrs[13].qos = static_cast<DAT_QOS>(0x1000);
  ONLY_12(bad_attrs[14].max_message_size = bad_attrs[15].max_rdma_size = (UINT64_C(1) << 32) + 1;)
  good_param = now;
  for (int i = 0; i < kBadAttributes; ++i) {
    bad_params[i] = now;
    bad_params[i].ep_attr = bad_attrs[i];
  }
}

template <class Bad>
Argument attributes(Argument argument, Bad& bad) {
  for (int i = 0; i < kBadAttributes; ++i) argument.others.push_back({kBadNames[i], word(&bad[i]), kByNumber});
  return argument;
}

// An EVD for one kind of event; it may be null only with may_lack.
Argument evd(const Table& t, DAT_RETURN_SUBTYPE subtype, bool may_lack, DAT_EVD_HANDLE other_stream) {
  Argument argument =
      may_lack ? t.optional_further(kEvd, t.w.full_evd, subtype) : t.further(kEvd, t.w.full_evd, subtype);
  return std::move(argument).also("of other streams", other_stream, handle_error(subtype));
}

// dat_ep_modify with handles has a table of its own, because the structure holds them.
Argument modified_handles(const Table& t) {
  static DAT_EP_PARAM wrong[5];
  for (DAT_EP_PARAM& each : wrong) each = good_param;
  wrong[0].pz_handle = t.w.freed[kPz];
  wrong[1].pz_handle = t.w.foreign[kPz];
  wrong[2].recv_evd_handle = t.w.f.requests;
  wrong[3].request_evd_handle = t.w.good[kPz];
  wrong[4].connect_evd_handle = t.w.f.active.recv;
  return needed(&good_param)
      .also("a freed PZ", &wrong[0])
      .also("a PZ of another IA", &wrong[1])
      .also("a receive EVD of other streams", &wrong[2])
      .also("a request EVD of another kind", &wrong[3])
      .also("a connect EVD of other streams", &wrong[4]);
}

#if DAPPLE_DAT_MAJOR != 1
Argument modified_comm() {
  static DAT_EP_PARAM wrong;
  wrong = good_param;
  wrong.comm.domain = 999;
  return needed(&good_param).also("an unknown comm", &wrong, status(DAT_COMM_NOT_SUPPORTED));
}

// This call sets nothing: only the EP's state matters.
#endif

Argument modify_mask(uint64_t fields) {
  return mask64(fields)
      .also("the EP's state", uint64_t{DAT_EP_FIELD_EP_STATE})
      .also("the IA", uint64_t{DAT_EP_FIELD_IA_HANDLE});
}

}  // namespace

void add_endpoints(Table& t) {
  const World& w = t.w;
  fill_attributes(w);
  t.add(FUNCTION(dat_ep_create, {t.self(kIa), t.optional_further(kPz, w.f.pz, DAT_INVALID_HANDLE_PZ),
                                 evd(t, DAT_INVALID_HANDLE_EVD_RECV, true, w.f.requests),
                                 evd(t, DAT_INVALID_HANDLE_EVD_REQUEST, true, w.f.requests),
                                 evd(t, DAT_INVALID_HANDLE_EVD_CONN, true, w.f.active.recv),
                                 attributes(good(&good_attr), bad_attrs), needed(&made)}));
  t.add(FUNCTION(dat_ep_create_with_srq,
                 {t.self(kIa), t.optional_further(kPz, w.f.pz, DAT_INVALID_HANDLE_PZ).also("not the SRQ's", w.spare_pz),
                  evd(t, DAT_INVALID_HANDLE_EVD_RECV, false, w.f.requests),
                  evd(t, DAT_INVALID_HANDLE_EVD_REQUEST, true, w.f.requests),
                  evd(t, DAT_INVALID_HANDLE_EVD_CONN, true, w.f.active.recv), t.further(kSrq),
                  attributes(good(&good_attr), bad_attrs), needed(&made)}));
  t.add(FUNCTION(dat_ep_query, {t.self(kEp), ONLY_20(mask64(DAT_EP_FIELD_ALL)) ONLY_12(any(0xffff)), needed(&param)}));
  const auto busy = [&](Argument ep) {
    return std::move(ep).also("connected", w.f.active.ep, state(DAT_INVALID_STATE_EP_CONNECTED));
  };
  t.add(FUNCTION(dat_ep_modify, {busy(t.self(kEp)),
                                 modify_mask(DAT_EP_FIELD_EP_ATTR_ALL & ~uint64_t{DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW}),
                                 attributes(needed(&good_param), bad_params)}));
  t.add(FUNCTION(dat_ep_modify, {busy(t.self(kEp)),
                                 modify_mask(DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
                                             DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE),
                                 modified_handles(t)}));
  ONLY_20(t.add(FUNCTION(dat_ep_modify, {busy(t.self(kEp)), modify_mask(DAT_EP_FIELD_COMM), modified_comm()}));)
  t.add(FUNCTION(dat_ep_get_status, {t.self(kEp), optional(&ep_state), optional(&recv_idle), optional(&request_idle)}));
  t.add(FUNCTION(dat_ep_recv_query, {t.self(kEp), optional(&buffers), optional(&span)}));
  const auto watermark = [] {
    return good(DAT_WATERMARK_INFINITE)
        .also("negative", -7)
        .also("what verbs have not", 5, status(DAT_MODEL_NOT_SUPPORTED));
  };
  t.add(FUNCTION(dat_ep_set_watermark,
                 {t.self(kEp, w.srq_ep).also("without an SRQ", w.good[kEp], status(DAT_INVALID_STATE)), watermark(),
                  watermark()}));
  t.add(FUNCTION(dat_ep_reset, {busy(t.self(kEp))
                                    .also("reserved", w.reserved_ep, state(DAT_INVALID_STATE_EP_RESERVED))
                                    .also("connecting", w.requesting_ep, state(DAT_INVALID_STATE_EP_ACTCONNPENDING))}));
  t.add(FUNCTION(dat_ep_free, {t.self(kEp).also("reserved", w.reserved_ep, state(DAT_INVALID_STATE_EP_RESERVED))}));
}

}  // namespace arguments
