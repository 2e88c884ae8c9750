// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/request_findings.hpp"

#include <mutex>
#include <string>
#include <vector>

#include "provider/soft/check/reports/symbols.hpp"
#include "provider/soft/faults/verbs_names.hpp"
#include "provider/soft/transport/context.hpp"
#include "roce/send_queue/send_queue.hpp"

namespace dapple::soft::check {
namespace {

const char* device_of(const Qp& qp) {
  return qp.context->ibv->device->name;
}

void add_maker(Checker& checker, const Qp& qp, std::vector<ReportedStack>& places) {
  if (const std::optional<ReportedStack> made = checker.objects.made(&qp)) places.push_back(*made);
}

}  // namespace

BindExplanation explain_bind(BindObstacle obstacle, const roce::WindowBind& bind) {
  switch (obstacle) {
    case BindObstacle::kNone:
      break;
    case BindObstacle::kNoWindow:
      return {"no window has that key", "Bind a memory window before ibv_dealloc_mw()."};
    case BindObstacle::kWindowOfAnotherDomain:
      return {"the window is of another protection domain", "Use one protection domain for window and queue pair."};
    case BindObstacle::kRights:
      return {format("a window cannot have the rights 0x%x", bind.access),
              "Give a memory window only the rights of peers, IBV_ACCESS_REMOTE_WRITE and the like."};
    case BindObstacle::kBound:
      return {"the window is bound", "Invalidate a memory window of type 2 before the next bind."};
    case BindObstacle::kNoBytes:
      return {"a window of type 2 needs at least one byte", "Invalidate a memory window of type 2 to unbind it."};
    case BindObstacle::kZeroBased:
      return {"a window of type 1 cannot begin at the address 0", "Use a memory window of type 2."};
    case BindObstacle::kNoRegion:
      return {format("no region has the key 0x%x", bind.region_lkey), "Bind to a region that is registered."};
    case BindObstacle::kRegionOfAnotherDomain:
      return {"the region is of another protection domain", "Use one protection domain for region and queue pair."};
    case BindObstacle::kRegionWithoutBinding:
      return {"the region lacks IBV_ACCESS_MW_BIND", "Register the memory with IBV_ACCESS_MW_BIND."};
    case BindObstacle::kRegionWithoutWriting:
      return {"the region lacks IBV_ACCESS_LOCAL_WRITE, which the window's rights need",
              "Register the memory with IBV_ACCESS_LOCAL_WRITE."};
    case BindObstacle::kZeroBasedRegion:
      return {"the region has IBV_ACCESS_ZERO_BASED", "Register the memory without IBV_ACCESS_ZERO_BASED."};
    case BindObstacle::kOutside:
      return {format("the region does not hold all %llu bytes at 0x%llx", static_cast<unsigned long long>(bind.length),
                     static_cast<unsigned long long>(bind.address)),
              "Register all bytes that a memory window may cover, or bind fewer."};
  }
  // The window or the region has changed meanwhile.
  return {"the window or the region has just changed", "Change neither while a bind waits for its turn."};
}

void report_bind(Checker& checker, const Qp& qp, const roce::WindowBind& bind, BindObstacle obstacle) {
  const BindExplanation explanation = explain_bind(obstacle, bind);
  std::vector<ReportedStack> places;
  if (const auto region = checker.keys.find(&qp.context->memory, bind.region_lkey))
    places.push_back({"registered", region->registered});
  add_maker(checker, qp, places);
  checker.reporter.show({.kind = "failed-bind",
                         .text = format("Queue pair 0x%x of %s cannot bind the memory window with the key 0x%x: %s.",
                                        qp.qpn, device_of(qp), bind.window_rkey, explanation.reason.c_str()),
                         .remedy = explanation.remedy,
                         .places = places});
}

void report_invalidation(Checker& checker, const Qp& qp, uint32_t rkey, bool from_peer) {
  std::vector<ReportedStack> places;
  add_maker(checker, qp, places);
  checker.reporter.show(
      {.kind = "failed-invalidation",
       .text =
           format(from_peer ? "A peer's Send with Invalidate reaches queue pair 0x%x of %s, and its key 0x%x is not "
                              "that of a memory window of type 2 which is bound there."
                            : "Queue pair 0x%x of %s cannot invalidate the key 0x%x, which is not that of a memory "
                              "window of type 2 which is bound there.",
                  qp.qpn, device_of(qp), rkey),
       .remedy = "Invalidate the present key of a memory window of type 2, on the queue pair that has bound it.",
       .places = places});
}

bool is_unfit(const Qp& qp, roce::SendOpcode opcode, bool is_foreign_address) {
  return is_foreign_address || !roce::operations_of(static_cast<roce::QpType>(qp.init.qp_type)).has(opcode);
}

void report_unfit(Checker& checker, const Qp& qp, roce::SendOpcode opcode) {
  const auto type = static_cast<roce::QpType>(qp.init.qp_type);
  if (!roce::operations_of(type).has(opcode)) {
    checker.reporter.show(
        {.kind = "unsupported-request",
         .text = format("Queue pair 0x%x of %s has the type IBV_QPT_%s, which has no IBV_WR_%s.", qp.qpn, device_of(qp),
                        type == roce::QpType::kUd          ? "UD"
                        : type == roce::QpType::kRawPacket ? "RAW_PACKET"
                                                           : "UC",
                        std::string(opcode_name(opcode)).c_str()),
         .remedy = "Use a queue pair of the type IBV_QPT_RC for this operation.",
         .places = {{"posted", here()}}});
  } else {
    checker.reporter.show(
        {.kind = "foreign-domain",
         .text = format("A datagram of queue pair 0x%x of %s has an address handle of another protection domain than "
                        "the queue pair's.",
                        qp.qpn, device_of(qp)),
         .remedy = "Create the address handle in the protection domain of the queue pair.",
         .places = {{"posted", here()}}});
  }
}

void report_if_beyond(Checker& checker, const Context& device, const void* queue, uint64_t held, size_t granted,
                      const char* what, uint32_t qpn, const void* object) {
  const std::optional<size_t> depth = checker.asked.exceeded(queue, held);
  if (!depth) return;
  std::vector<ReportedStack> places;
  if (const std::optional<ReportedStack> made = checker.objects.made(object)) places.push_back(*made);
  const std::string queue_name = qpn == 0 ? "" : format(" in queue pair 0x%x", qpn);
  checker.reporter.show(
      {.level = Level::kNote,
       .kind = "more-than-asked",
       .text = format("There are %llu %s%s of %s, and the program has asked for room for %zu. This device has granted "
                      "room for %zu, and another may grant less.",
                      static_cast<unsigned long long>(held), what, queue_name.c_str(), device.ibv->device->name, *depth,
                      granted),
       .remedy = "Ask for as much room as the program uses, or read how much the device has granted.",
       .places = places});
}

void report_inline_result(Checker& checker, const Qp& qp, roce::SendOpcode opcode) {
  checker.reporter.show(
      {.level = Level::kWarning,
       .kind = "unsupported-request",
       .text = format(
           "The program posts an IBV_WR_%s to queue pair 0x%x of %s with IBV_SEND_INLINE, which is for sends and "
           "RDMA Writes only. This device ignores the flag; others need not.",
           std::string(opcode_name(opcode)).c_str(), qp.qpn, device_of(qp)),
       .remedy = "Clear IBV_SEND_INLINE in send_flags of a request whose result comes into its segments.",
       .places = {{"posted", here()}}});
}

void report_post_in_error(Checker& checker, const Qp& qp) {
  const Owner owner(qp.qpn, qp.context->ibv->device->name);
  checker.reporter.show(
      {.level = Level::kWarning,
       .kind = "post-in-error",
       .text =
           "The program posts a send request to " + owner.name() +
           ", which is in IBV_QPS_ERR, although it has polled IBV_WC_WR_FLUSH_ERR for other requests that it posted "
           "in this state: none of them is sent.",
       .remedy =
           "Stop to post when a completion has an error. Destroy the queue pair, or change it to IBV_QPS_RESET and "
           "connect it again.",
       .places = {{"posted", here()}}});
}

void note_disconnection(Checker& checker, const void* qp) {
  if (!checker.objects.made(qp)) return;
  Qp& own = *const_cast<Qp*>(static_cast<const Qp*>(qp));
  uint32_t peer = 0;
  {
    const std::lock_guard lock(own.mutex);
    peer = own.engine->attributes().destination_qpn;
  }
  checker.disconnections.add(own.qpn, peer, here());
}

void report_post_after_end(Checker& checker, const Qp& qp, const Stack& got) {
  const Owner owner(qp.qpn, qp.context->ibv->device->name);
  checker.reporter.show({.level = Level::kWarning,
                         .kind = "post-after-disconnect",
                         .text = "The program posts a send request to " + owner.name() +
                                 ", which is in IBV_QPS_RTS, although this thread has got RDMA_CM_EVENT_DISCONNECTED "
                                 "of its connection: the peer "
                                 "takes no request any more, and the request fails after all its retries.",
                         .remedy = "Call rdma_disconnect() when the event comes, and post nothing after it.",
                         .places = {{"posted", here()}, {"the event was got by rdma_get_cm_event", got}}});
}

void report_if_hopless(Checker& checker, const ibv_context& device, const ibv_ah_attr& address) {
  if (address.is_global == 0 || address.grh.hop_limit != 0) return;
  const Stack stack = here();
  if (called_by_rdma_cm(stack)) return;
  checker.reporter.show(
      {.level = Level::kNote,
       .kind = "zero-hop-limit",
       .text = format("The program gives %s an address with a grh.hop_limit of 0. This device takes 64; the packets of "
                      "another one would not leave its host, or its network.",
                      device.device->name),
       .remedy = "Set grh.hop_limit to 64.",
       .places = {{"called", stack}}});
}

void report_end(Checker& checker, Qp& qp) {
  uint64_t outstanding = 0, not_ready = 0;
  {
    const std::lock_guard lock(qp.mutex);
    outstanding = qp.engine->outstanding_sends();
    not_ready = qp.engine->counters().rnr_naks_sent;
  }
  std::vector<ReportedStack> places = {{"destroyed by ibv_destroy_qp", here()}};
  if (const std::optional<ReportedStack> made = checker.objects.made(&qp)) places.push_back(*made);
  const char* device = qp.context->ibv->device->name;
  if (outstanding != 0) {
    checker.reporter.show(
        {.level = Level::kWarning,
         .kind = "outstanding-sends",
         .text =
             format("Queue pair 0x%x of %s is destroyed with %llu send requests that are not complete: its peer may "
                    "never get them.",
                    qp.qpn, device, static_cast<unsigned long long>(outstanding)),
         .remedy = called_by_rdma_cm(places[0].stack)
                       ? "Wait for the completion of the last request before rdma_destroy_qp() or rdma_destroy_ep()."
                       : "Wait for the completion of the last request before ibv_destroy_qp().",
         .places = places});
  }
  if (not_ready == 0) return;
  checker.reporter.show(
      {.level = Level::kNote,
       .kind = "receiver-not-ready",
       .text = format("Queue pair 0x%x of %s had no receive for a message of its peer, and sent %llu RNR NAKs.", qp.qpn,
                      device, static_cast<unsigned long long>(not_ready)),
       .remedy = "Post receives before the peer can send: the peer waits for a while after each such answer.",
       .places = places});
}

}  // namespace dapple::soft::check
