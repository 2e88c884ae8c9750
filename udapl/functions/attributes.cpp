// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>

#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/functions/convert.hpp"
#include "udapl/functions/version.hpp"

namespace dapple::udapl::functions {
namespace {

constexpr DAT_COUNT kMaxCount = std::numeric_limits<DAT_COUNT>::max();

template <class T>
DAT_COUNT to_count(T value) {
  if (value < 0) return 0;
  return static_cast<uint64_t>(value) > static_cast<uint64_t>(kMaxCount) ? kMaxCount : static_cast<DAT_COUNT>(value);
}

// The value, reduced to the largest that the attribute can hold.
template <class Length>
void set_length(Length& attribute, uint64_t bytes) {
  attribute = static_cast<Length>(std::min<uint64_t>(bytes, std::numeric_limits<Length>::max()));
}

template <size_t Size>
void copy(char (&out)[Size], const char* text) {
  std::snprintf(out, Size, "%s", text);
}

// Parses "5.14.2" as 5 and 14. The firmware versions of software devices are empty.
void split_version(const char* text, DAT_UINT32& major, DAT_UINT32& minor) {
  unsigned int first = 0;
  unsigned int second = 0;
  std::sscanf(text, "%u.%u", &first, &second);
  major = first;
  minor = second;
}

// The structure's pointer is not const, but the consumer must not change the target.
DAT_NAMED_ATTR* to_dat(const NamedAttribute* attributes) {
  static_assert(sizeof(NamedAttribute) == sizeof(DAT_NAMED_ATTR) &&
                offsetof(NamedAttribute, value) == offsetof(DAT_NAMED_ATTR, value));
  return const_cast<DAT_NAMED_ATTR*>(reinterpret_cast<const DAT_NAMED_ATTR*>(attributes));
}

}  // namespace

void fill(const Ia& ia, DAT_IA_ATTR& attr) {
  const ibv_device_attr& device = ia.device();
  const ibv_port_attr& port = ia.port_attr();
  attr = {};
  copy(attr.adapter_name, ibv_get_device_name(ia.context()->device));
  std::snprintf(attr.vendor_name, sizeof attr.vendor_name, "vendor 0x%06x part %u", device.vendor_id,
                device.vendor_part_id);
  attr.hardware_version_major = device.hw_ver;
  split_version(device.fw_ver, attr.firmware_version_major, attr.firmware_version_minor);
  attr.ia_address_ptr = const_cast<DAT_IA_ADDRESS_PTR>(ia.address());
  attr.max_eps = to_count(device.max_qp);
  attr.max_dto_per_ep = to_count(ia.max_dtos());
  attr.max_rdma_read_per_ep_in = to_count(device.max_qp_rd_atom);
  attr.max_rdma_read_per_ep_out = to_count(device.max_qp_init_rd_atom);
  attr.max_evds = to_count(device.max_cq);
  attr.max_evd_qlen = to_count(device.max_cqe);
  attr.max_iov_segments_per_dto = to_count(device.max_sge);
  attr.max_lmrs = to_count(device.max_mr);
  set_length(attr.max_lmr_block_size, device.max_mr_size);
  attr.max_lmr_virtual_address = std::numeric_limits<DAT_VADDR>::max();
  attr.max_pzs = to_count(device.max_pd);
  set_length(attr.max_message_size, port.max_msg_sz);
  set_length(attr.max_rdma_size, port.max_msg_sz);
  const bool windows = ia.has_type_1_windows() || ia.has_type_2_windows();
  attr.max_rmrs = windows ? to_count(device.max_mw) : 0;
  attr.max_rmr_target_address = windows ? std::numeric_limits<DAT_VADDR>::max() : 0;
  attr.max_srqs = to_count(device.max_srq);
  attr.max_ep_per_srq = device.max_srq > 0 ? to_count(device.max_qp) : 0;
  attr.max_recv_per_srq = to_count(device.max_srq_wr);
  attr.max_iov_segments_per_rdma_read = to_count(ia.max_read_segments());
  attr.max_iov_segments_per_rdma_write = to_count(device.max_sge);
  attr.max_rdma_read_in = to_count(device.max_res_rd_atom);
  attr.max_rdma_read_out = to_count(int64_t{device.max_qp_init_rd_atom} * device.max_qp);
  attr.max_rdma_read_per_ep_in_guaranteed = DAT_TRUE;
  attr.max_rdma_read_per_ep_out_guaranteed = DAT_TRUE;
  fill_of_version(ia, attr);
  attr.num_transport_attr = static_cast<DAT_COUNT>(ia.named_attributes().transport_size());
  attr.transport_attr = to_dat(ia.named_attributes().transport_data());
  attr.num_vendor_attr = 0;
  attr.vendor_attr = nullptr;
}

void fill(const Ia& ia, const DAT_PROVIDER_INFO& info, DAT_PROVIDER_ATTR& attr) {
  const dappledv_device_attr& coherence = ia.coherence();
  std::memset(static_cast<void*>(&attr), 0, sizeof attr);
  copy(attr.provider_name, ia.name().c_str());
  attr.provider_version_major = DAPPLE_VERSION_MAJOR;
  attr.provider_version_minor = DAPPLE_VERSION_MINOR;
  // An old registry finds the entry to close by these members.
  attr.dapl_version_major = info.dapl_version_major;
  attr.dapl_version_minor = info.dapl_version_minor;
  attr.is_thread_safe = info.is_thread_safe;
  // A bit mask that always includes VIRTUAL, whose value is 0.
  attr.lmr_mem_types_supported = static_cast<DAT_MEM_TYPE>(DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);
  attr.iov_ownership_on_return = DAT_IOV_CONSUMER;
  attr.dat_qos_supported = DAT_QOS_BEST_EFFORT;
  attr.completion_flags_supported = static_cast<DAT_COMPLETION_FLAGS>(
      DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
      DAT_COMPLETION_BARRIER_FENCE_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG);
  attr.max_private_data_size = static_cast<DAT_COUNT>(Connection::kMaxConnectData);
  attr.supports_multipath = DAT_FALSE;
  attr.ep_creator = DAT_PSP_CREATES_EP_IFASKED;
  attr.pz_support = DAT_PZ_UNIQUE;
  attr.optimal_buffer_alignment = std::max<DAT_UINT32>(coherence.writeback_granule, DAT_OPTIMAL_ALIGNMENT);
  // Any two streams may share an EVD. The specification's structure has the table const.
  auto* merging = const_cast<DAT_BOOLEAN*>(&attr.evd_stream_merging_supported[0][0]);
  std::fill_n(merging, sizeof attr.evd_stream_merging_supported / sizeof *merging, DAT_TRUE);
  const bool srq = ia.device().max_srq > 0;
  attr.srq_supported = to_dat(srq);
  attr.srq_watermarks_supported = srq ? 1 : 0;  // the low one
  attr.srq_ep_pz_difference_supported = DAT_FALSE;
  attr.srq_info_supported = srq ? 1 : 0;
  attr.ep_recv_info_supported = 0;
  attr.lmr_sync_req = to_dat(ia.maintains_caches());
  attr.dto_async_return_guaranteed = DAT_TRUE;
  attr.rdma_write_for_rdma_read_req = to_dat(ia.rules().iwarp);
  fill_of_version(ia, attr);
  attr.num_provider_specific_attr = static_cast<DAT_COUNT>(ia.named_attributes().size());
  attr.provider_specific_attr = to_dat(ia.named_attributes().data());
}

}  // namespace dapple::udapl::functions
