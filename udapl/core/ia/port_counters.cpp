// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/ia/port_counters.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "udapl/core/unique_fd.hpp"

namespace dapple::udapl {
namespace {

struct Row {
  IaCounter counter;
  CounterGroup group;
  const char* file;                        // path below the group's folder
  std::array<const char*, 2> others = {};  // names of it in hw_counters of the port, which depend on the driver
  size_t index() const { return static_cast<size_t>(counter); }
};

using enum IaCounter;
constexpr auto kCm = CounterGroup::kConnectionManager;
constexpr auto kLink = CounterGroup::kLink;
constexpr auto kDiag = CounterGroup::kDiagnostic;

// These do not include the counters of a process (requests, replies and so on of its own connections).
constexpr Row kRows[] = {
    {kDrepTx, kCm, "cm_tx_msgs/drep"},
    {kDrepRx, kCm, "cm_rx_msgs/drep"},
    {kMraTx, kCm, "cm_tx_msgs/mra"},
    {kMraRx, kCm, "cm_rx_msgs/mra"},
    {kErrReqDup, kCm, "cm_rx_duplicates/req"},
    {kErrReqRetry, kCm, "cm_tx_retries/req"},
    {kErrRepDup, kCm, "cm_rx_duplicates/rep"},
    {kErrRepRetry, kCm, "cm_tx_retries/rep"},
    {kErrRtuDup, kCm, "cm_rx_duplicates/rtu"},
    {kErrRtuRetry, kCm, "cm_tx_retries/rtu"},
    {kErrRejTx, kCm, "cm_tx_msgs/rej"},
    {kErrDreqDup, kCm, "cm_rx_duplicates/dreq"},
    {kErrDreqRetry, kCm, "cm_tx_retries/dreq"},
    {kErrDrepDup, kCm, "cm_rx_duplicates/drep"},
    {kErrDrepRetry, kCm, "cm_tx_retries/drep"},
    {kErrMraDup, kCm, "cm_rx_duplicates/mra"},
    {kErrMraRetry, kCm, "cm_tx_retries/mra"},
    {kLinkErrRcv, kLink, "port_rcv_errors"},
    {kLinkErrRcvRemPhys, kLink, "port_rcv_remote_physical_errors"},
    {kLinkErrRcvConstraint, kLink, "port_rcv_constraint_errors"},
    {kLinkErrXmtDiscards, kLink, "port_xmit_discards"},
    {kLinkErrXmtConstraint, kLink, "port_xmit_constraint_errors"},
    {kLinkErrIntegrity, kLink, "local_link_integrity_errors"},
    {kLinkErrExcBufOverrun, kLink, "excessive_buffer_overrun_errors"},
    {kLinkWarnRcvSwRelay, kLink, "port_rcv_switch_relay_errors"},
    {kLinkWarnXmtWait, kLink, "port_xmit_wait"},
    {kDiagErrRqRae, kDiag, "rq_num_rae"},
    {kDiagErrRqOos, kDiag, "rq_num_oos", {"out_of_sequence", "out_of_seq_request"}},
    {kDiagErrRqRire, kDiag, "rq_num_rire"},
    {kDiagErrRqUdsdprd, kDiag, "rq_num_udsdprd"},
    {kDiagErrSqRae, kDiag, "sq_num_rae"},
    {kDiagErrSqOos, kDiag, "sq_num_oos", {"packet_seq_err", "rcvd_seq_err"}},
    {kDiagErrSqRire, kDiag, "sq_num_rire"},
    {kDiagErrSqRree, kDiag, "sq_num_rree", {"rnr_nak_retry_err", "retry_rnr_exceeded_err"}},
    {kDiagErrSqTree, kDiag, "sq_num_tree", {"local_ack_timeout_err", "retry_exceeded_err"}},
};

bool read_number(const std::string& path, uint64_t& value) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  char text[32];
  const ssize_t length = ::read(fd.get(), text, sizeof text - 1);
  if (length <= 0) return false;
  text[length] = '\0';
  char* end = nullptr;
  value = std::strtoull(text, &end, 10);
  return end != text;
}

constexpr size_t kNoRow = std::size(kRows);

size_t row_of(size_t counter) {
  const auto* found =
      std::find_if(std::begin(kRows), std::end(kRows), [counter](const Row& row) { return row.index() == counter; });
  return static_cast<size_t>(found - std::begin(kRows));
}

}  // namespace

void PortCounters::open(const char* device, int port) {
  device_ = device;
  port_ = port;
}

uint64_t PortCounters::read(size_t row) const {
  const std::string name = kRows[row].file;
  const std::string device = "/sys/class/infiniband/" + device_ + "/";
  const std::string port = device + "ports/" + std::to_string(port_) + "/";
  uint64_t value = 0;
  switch (kRows[row].group) {
    case kCm:  // Linux 5.14 moved the counter
      if (!read_number(port + name, value))
        read_number("/sys/class/infiniband_cm/" + device_ + "/" + std::to_string(port_) + "/" + name, value);
      break;
    case kLink:
      read_number(port + "counters/" + name, value);
      break;
    case kDiag: {
      const auto hardware = [&](const std::string& other) { return read_number(port + "hw_counters/" + other, value); };
      if (read_number(device + "diag_counters/" + name, value) || read_number(device + "hw_counters/" + name, value) ||
          hardware(name))
        break;
      for (const char* other : kRows[row].others) {
        if (other && hardware(other)) break;
      }
      break;
    }
  }
  return value;
}

void PortCounters::start(CounterGroup group) {
  for (size_t row = 0; row < std::size(kRows); ++row) {
    if (kRows[row].group == group) values_[kRows[row].index()] = read(row);
  }
  states_[static_cast<size_t>(group)] = State::kRunning;
}

void PortCounters::stop(CounterGroup group) {
  State& state = states_[static_cast<size_t>(group)];
  if (state != State::kRunning) return;
  for (size_t row = 0; row < std::size(kRows); ++row) {
    if (kRows[row].group == group) values_[kRows[row].index()] = read(row) - values_[kRows[row].index()];
  }
  state = State::kStopped;
}

PortCounters::State PortCounters::state_of(size_t row) const {
  return states_[static_cast<size_t>(kRows[row].group)];
}

uint64_t PortCounters::at(size_t index) const {
  const size_t row = row_of(index);
  if (row == kNoRow) return 0;
  switch (state_of(row)) {
    case State::kUnused:
      return 0;
    case State::kRunning:
      return read(row) - values_[index];
    case State::kStopped:
      return values_[index];
  }
  return 0;
}

void PortCounters::reset(size_t index) {
  const size_t row = row_of(index);
  if (row != kNoRow) values_[index] = state_of(row) == State::kRunning ? read(row) : 0;
}

}  // namespace dapple::udapl
