// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/requests/stray_messages.hpp"

#include <atomic>
#include <string>

#include "provider/network/address_text.hpp"
#include "provider/soft/explain/process_reporter.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/multicast.hpp"
#include "provider/soft/transport/stray_packets.hpp"

namespace dapple::soft::explain {
namespace {

constexpr uint32_t kMaxReports = 8;

// Two numbers may have one mark: then the report of one of them is missing.
class Marks {
 public:
  // Marks the number. False if it was marked before.
  bool add(uint32_t qpn) {
    const uint64_t bit = bit_of(qpn);
    return (word_of(qpn).fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }
  bool has(uint32_t qpn) { return (word_of(qpn).load(std::memory_order_relaxed) & bit_of(qpn)) != 0; }

 private:
  static constexpr size_t kMarks = 4096;

  std::atomic<uint64_t>& word_of(uint32_t qpn) { return words_[qpn % kMarks / 64]; }
  static uint64_t bit_of(uint32_t qpn) { return uint64_t{1} << qpn % 64; }

  std::atomic<uint64_t> words_[kMarks / 64] = {};
};

constinit Marks explained;  // numbers of this process, and those that were reported
constinit Marks sent_to;
std::atomic<uint32_t> reports = 0;

constexpr char kRemedy[] =
    "Compare the sender's wr.ud.remote_qpn, or dest_qp_num, with the receiver's qp->qp_num: a number that goes over a "
    "network needs htonl() and ntohl().";

void report_stray(const StrayPacket& packet) {
  if (!explained.add(packet.qpn) || reports.fetch_add(1) >= kMaxReports) return;
  std::string text = "A message for queue pair " + check::format("0x%x", packet.qpn) +
                     " is dropped, and nobody is told: "
                     "this process has no queue pair of that number. It comes from ";
  if (packet.source_qpn != 0) text += check::format("queue pair 0x%x at ", packet.source_qpn);
  text += std::string(AddressText(packet.source).c_str()) + ".";
  process_reporter()->show(
      {.level = check::Level::kWarning, .kind = "dropped-message", .text = text, .remedy = kRemedy, .places = {}});
}

}  // namespace

void explain_strays(uint32_t qpn) {
  explained.add(qpn);
  stray_watch.store(report_stray, std::memory_order_release);
}

void explain_datagram(const Qp& qp, const roce::AddressVector& to, uint32_t qpn) {
  if (sent_to.has(qpn) || !sent_to.add(qpn)) return;
  // The device's own services, groups, and numbers of this process, which reports as the receiver.
  if (qpn <= 1 || qpn == kMulticastQpn || qpn >> 16 == qp.qpn >> 16) return;
  ResourceRow peer;
  if (!qp.context->has_gid(to.destination_gid) || qp.context->find_qp(qpn, peer) != Context::Found::kNo) return;
  if (reports.fetch_add(1) >= kMaxReports) return;
  process_reporter()->show(
      {.level = check::Level::kWarning,
       .kind = "dropped-message",
       .text = check::format("A datagram of queue pair 0x%x of ", qp.qpn) + qp.context->ibv->device->name +
               check::format(" for queue pair 0x%x at %s is dropped, and nobody is told: no program of this host has "
                             "a queue pair of that number.",
                             qpn, AddressText(to.destination_gid).c_str()),
       .remedy = kRemedy,
       .places = {{"posted", check::Stack::here()}}});
}

}  // namespace dapple::soft::explain
