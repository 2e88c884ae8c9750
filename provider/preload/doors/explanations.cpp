// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/explanations.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <atomic>

#include "provider/preload/doors/link.hpp"

namespace dapple::doors {
namespace {

constinit std::atomic<const soft::CmVoice*> voice = nullptr;

constinit std::atomic<bool> has_begun = false;
constinit std::atomic<void (*)()> at_beginning = nullptr;

void tell_beginning() {
  // It stays, because a child of fork() begins again.
  void (*const function)() = at_beginning.load();
  if (function != nullptr) function();
}

// Asks dappled for the addresses of an id. They stay without a family if the id is gone.
void find_addresses(const soft::CmChannelName& channel, uint32_t id, soft::CmFailure& failure) {
  soft::Problem problem;
  soft::DaemonLink* link = connection(problem);
  if (link == nullptr) return;
  const rdma_ucm_cmd_hdr header = {RDMA_USER_CM_CMD_QUERY_ROUTE, sizeof(rdma_ucm_query),
                                   sizeof(rdma_ucm_query_route_resp)};
  rdma_ucm_query query = {};
  query.id = id;
  soft::CmCommandRequest request;
  request.channel = channel;
  memcpy(request.command, &header, sizeof header);
  memcpy(request.command + sizeof header, &query, sizeof query);
  request.length = sizeof header + sizeof query;
  soft::CmCommandReply reply;
  bool again = false;
  if (link->cm_command(request, reply, again, problem) != 0) return;
  rdma_ucm_query_route_resp route = {};
  memcpy(&route, reply.response, std::min<size_t>(reply.length, sizeof route));
  failure.source = route.src_addr;
  failure.destination = route.dst_addr;
}

void tell(const RdmaCmCommand& command, int error, const char* reason, bool is_planned) {
  const soft::CmVoice* present = voice.load(std::memory_order_acquire);
  const char* function = function_of(command.header.cmd);
  if (present != nullptr && function != nullptr) present->refused(function, error, reason, is_planned);
}

}  // namespace

void explain_cm(const soft::CmVoice& new_voice) {
  voice.store(&new_voice, std::memory_order_release);
}

void when_cm_begins(void (*function)()) {
  at_beginning.store(function);
  if (has_begun.load()) tell_beginning();
}

void cm_begins() {
  has_begun.store(true);
  tell_beginning();
}

void explain_refusal(const RdmaCmCommand& command, int error, const char* reason) {
  // librdmacm asks in this way whether there is AF_IB, and refuses it itself.
  if (command.header.cmd == RDMA_USER_CM_CMD_BIND && error == ENOSYS) return;
  tell(command, error, reason, false);
}

void explain_planned(const RdmaCmCommand& command, int error) {
  tell(command, error,
       "the plan of faults (DAPPLE_FAULTS) lets this call fail.\nSee whether the program copes with it.", true);
}

void explain_event(const soft::CmChannelName& channel, const soft::CmCommandReply& reply) {
  const soft::CmVoice* present = voice.load(std::memory_order_acquire);
  rdma_ucm_event_resp event = {};
  memcpy(&event, reply.response, std::min<size_t>(reply.length, sizeof event));
  if (present == nullptr || !present->is_failure(event.event)) return;
  soft::CmFailure failure = {};
  failure.event = event.event;
  failure.status = static_cast<int>(event.status);
  find_addresses(channel, event.id, failure);
  present->failed(failure);
}

}  // namespace dapple::doors
