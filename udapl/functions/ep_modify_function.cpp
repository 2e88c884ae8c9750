// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/connect_arguments.hpp"
#include "udapl/functions/functions.hpp"

namespace dapple::udapl::functions {
namespace {

// The members that only a connection, the creation or another function sets.
constexpr DAT_EP_PARAM_MASK kFixed =
    DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL |
    DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL | DAT_EP_FIELD_SRQ_HANDLE;

// Sets those fields of an EP's attributes that the mask names; the errors are of dat_ep_modify's third argument.
class Change {
 public:
  Change(DAT_EP_PARAM_MASK mask, const DAT_EP_ATTR& in, EpAttr& out) : mask_(mask), in_(in), out_(out) {}

  DAT_RETURN apply() {
    if (has(DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE) && in_.service_type != to_dat_service(out_.datagrams)) return bad();
    if (has(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE)) out_.max_message_size = in_.max_message_size;
    if (has(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE)) out_.max_rdma_size = in_.max_rdma_size;
    if (has(DAT_EP_FIELD_EP_ATTR_QOS)) {
      if (auto status = check_qos(in_.qos, DAT_INVALID_ARG3)) return status;
      out_.qos = in_.qos;
    }
    const bool good =
        flags(DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, in_.recv_completion_flags, out_.recv_completion_flags) &&
        flags(DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, in_.request_completion_flags,
              out_.request_completion_flags) &&
        count(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, in_.max_recv_dtos, out_.max_recv_dtos) &&
        count(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, in_.max_request_dtos, out_.max_request_dtos) &&
        count(DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, in_.max_recv_iov, out_.max_recv_iov) &&
        count(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, in_.max_request_iov, out_.max_request_iov) &&
        count(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, in_.max_rdma_read_in, out_.max_rdma_read_in) &&
        count(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, in_.max_rdma_read_out, out_.max_rdma_read_out) &&
        count(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV, in_.max_rdma_read_iov, out_.max_rdma_read_iov) &&
        count(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, in_.max_rdma_write_iov, out_.max_rdma_write_iov);
    if (!good) return bad();
    // Attributes of these kinds do not exist.
    if (has(DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR) && in_.ep_transport_specific_count != 0) return bad();
    if (has(DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR) && in_.ep_provider_specific_count != 0) return bad();
    return kSuccess;
  }

 private:
  bool has(DAT_EP_PARAM_MASK field) const { return mask_ & field; }
  static DAT_RETURN bad() { return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3); }

  bool count(DAT_EP_PARAM_MASK field, DAT_COUNT in, uint32_t& out) const {
    if (!has(field)) return true;
    if (in >= 0) out = static_cast<uint32_t>(in);
    return in >= 0;
  }
  bool flags(DAT_EP_PARAM_MASK field, DAT_COMPLETION_FLAGS in, uint32_t& out) const {
    if (!has(field)) return true;
    out = static_cast<uint32_t>(in);
    return !(out & ~uint32_t{kAllCompletionFlags});
  }

  const DAT_EP_PARAM_MASK mask_;
  const DAT_EP_ATTR& in_;
  EpAttr& out_;
};

DAT_RETURN modify(Ep& ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM& param) {
  const DAT_RETURN bad = error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  Pz* pz = ep.pz();
  if ((mask & DAT_EP_FIELD_PZ_HANDLE) && !find_optional(param.pz_handle, ep.ia(), pz)) return bad;
  EpEvds evds = ep.evds();
  const bool evds_good = (!(mask & DAT_EP_FIELD_RECV_EVD_HANDLE) ||
                          find_optional_evd(param.recv_evd_handle, ep.ia(), kEvdDto, evds.recv)) &&
                         (!(mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE) ||
                          find_optional_evd(param.request_evd_handle, ep.ia(), kEvdDto, evds.request)) &&
                         (!(mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE) ||
                          find_optional_evd(param.connect_evd_handle, ep.ia(), kEvdConnection, evds.connect));
  if (!evds_good) return bad;
  EpAttr attr = ep.attr();
  if (auto status = Change(mask, param.ep_attr, attr).apply()) return status;
  return to_dat(
      ep.configure(pz, evds, attr, changed_comm(ep, mask, param)),
      {{Subtype::kAttr, DAT_INVALID_ARG3}, {Subtype::kEvd, DAT_INVALID_ARG3}, {Subtype::kPz, DAT_INVALID_ARG3}});
}

}  // namespace

DAT_RETURN ep_modify(Ep& ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM* param) {
  if (mask & (~DAT_EP_FIELD_ALL | kFixed)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!param) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  return controlled([&] { return modify(ep, mask, *param); });
}

}  // namespace dapple::udapl::functions
