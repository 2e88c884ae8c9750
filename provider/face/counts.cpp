// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/counts.hpp"

#include <cstring>

#include "provider/face/texts.hpp"

namespace dapple::face {
namespace {

// The port's counters of bytes count words of four bytes.
constexpr uint32_t kWord = 4;
constexpr uint32_t kLifespanMilliseconds = 10;

constexpr CounterFile kPort[] = {
    {"VL15_dropped", nullptr},
    {"excessive_buffer_overrun_errors", nullptr},
    {"link_downed", nullptr},
    {"link_error_recovery", nullptr},
    {"local_link_integrity_errors", nullptr},
    {"multicast_rcv_packets", nullptr},
    {"multicast_xmit_packets", nullptr},
    {"port_rcv_constraint_errors", nullptr},
    {"port_rcv_data", &DeviceCounts::received_bytes, kWord},
    {"port_rcv_errors", &DeviceCounts::dropped_packets},
    {"port_rcv_packets", &DeviceCounts::received_packets},
    {"port_rcv_remote_physical_errors", nullptr},
    {"port_rcv_switch_relay_errors", nullptr},
    {"port_xmit_constraint_errors", nullptr},
    {"port_xmit_data", &DeviceCounts::sent_bytes, kWord},
    {"port_xmit_discards", nullptr},
    {"port_xmit_packets", &DeviceCounts::sent_packets},
    {"port_xmit_wait", nullptr},
    {"symbol_error", nullptr},
    {"unicast_rcv_packets", &DeviceCounts::received_packets},
    {"unicast_xmit_packets", &DeviceCounts::sent_packets},
};

constexpr CounterFile kRxe[] = {
    {"ack_deferred", nullptr},
    {"completer_retry_err", &DeviceCounts::timeouts},
    {"duplicate_request", &DeviceCounts::duplicates},
    {"lifespan", nullptr, 1, kLifespanMilliseconds},
    {"link_downed", nullptr},
    {"out_of_seq_request", &DeviceCounts::sequence_naks_sent},
    {"rcvd_bytes", &DeviceCounts::received_bytes},
    {"rcvd_pkts", &DeviceCounts::received_packets},
    {"rcvd_rnr_err", nullptr},
    {"rcvd_seq_err", nullptr},
    {"rdma_recvs", nullptr},
    {"rdma_sends", nullptr},
    {"retry_exceeded_err", nullptr},
    {"retry_rnr_exceeded_err", nullptr},
    {"send_err", nullptr},
    {"send_rnr_err", &DeviceCounts::rnr_naks_sent},
    {"sent_bytes", &DeviceCounts::sent_bytes},
    {"sent_pkts", &DeviceCounts::sent_packets},
};

constexpr CounterFile kMlx5[] = {
    {"duplicate_request", &DeviceCounts::duplicates},
    {"implied_nak_seq_err", nullptr},
    {"lifespan", nullptr, 1, kLifespanMilliseconds},
    {"local_ack_timeout_err", &DeviceCounts::timeouts},
    {"np_cnp_sent", nullptr},
    {"np_ecn_marked_roce_packets", nullptr},
    {"out_of_buffer", &DeviceCounts::rnr_naks_sent},
    {"out_of_sequence", &DeviceCounts::sequence_naks_sent},
    {"packet_seq_err", nullptr},
    {"req_cqe_error", nullptr},
    {"req_cqe_flush_error", nullptr},
    {"req_remote_access_errors", nullptr},
    {"req_remote_invalid_request", nullptr},
    {"resp_cqe_error", nullptr},
    {"resp_cqe_flush_error", nullptr},
    {"resp_local_length_error", nullptr},
    {"resp_remote_access_errors", nullptr},
    {"rnr_nak_retry_err", nullptr},
    {"roce_adp_retrans", nullptr},
    {"roce_adp_retrans_to", nullptr},
    {"roce_slow_restart", nullptr},
    {"roce_slow_restart_cnps", nullptr},
    {"roce_slow_restart_trans", nullptr},
    {"rp_cnp_handled", nullptr},
    {"rp_cnp_ignored", nullptr},
    {"rx_atomic_requests", nullptr},
    {"rx_icrc_encapsulated", nullptr},
    {"rx_read_requests", nullptr},
    {"rx_write_requests", nullptr},
};

}  // namespace

std::span<const CounterFile> port_counters() {
  return kPort;
}

std::span<const CounterFile> hardware_counters(const char* driver) {
  if (strcmp(driver, "mlx5_core") == 0) return kMlx5;
  return kRxe;
}

std::string counter_text(const CounterFile& file, const DeviceCounts& counts) {
  return number_text(file.count == nullptr ? file.value : counts.*file.count / file.unit);
}

}  // namespace dapple::face
