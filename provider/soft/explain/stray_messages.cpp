// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/stray_messages.hpp"

#include <atomic>
#include <string>

#include "provider/member/address_text.hpp"
#include "provider/soft/explain/process_reporter.hpp"
#include "provider/soft/transport/stray_packets.hpp"

namespace dapple::soft::explain {
namespace {

constexpr uint32_t kMaxReports = 8;
constexpr size_t kMarks = 4096;  // two numbers with one mark: the report of one of them may be missing

std::atomic<uint64_t> marks[kMarks / 64];
std::atomic<uint32_t> reports = 0;

// Marks the number. False if it was marked before.
bool mark(uint32_t qpn) {
  const uint32_t place = qpn % kMarks;
  const uint64_t bit = uint64_t{1} << place % 64;
  return (marks[place / 64].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

void report_stray(const StrayPacket& packet) {
  if (!mark(packet.qpn) || reports.fetch_add(1) >= kMaxReports) return;
  std::string text = "A message for queue pair " + check::format("0x%x", packet.qpn) +
                     " is dropped, and nobody is told: "
                     "this process has no queue pair of that number. It comes from ";
  if (packet.source_qpn != 0) text += check::format("queue pair 0x%x at ", packet.source_qpn);
  text += std::string(AddressText(packet.source).c_str()) + ".";
  process_reporter()->show({.level = check::Level::kWarning,
                            .kind = "dropped-message",
                            .text = text,
                            .remedy = "Compare the sender's wr.ud.remote_qpn, or dest_qp_num, with the receiver's "
                                      "qp->qp_num: a number that goes over a network needs htonl() and ntohl().",
                            .places = {}});
}

}  // namespace

void explain_strays(uint32_t qpn) {
  mark(qpn);
  stray_watch.store(report_stray, std::memory_order_release);
}

}  // namespace dapple::soft::explain
