// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Service ID resolution (IBTA 12.11): a datagram queue pair's number for a service id.
#include "roce/cm/exponent.hpp"
#include "roce/cm/manager.hpp"

namespace dapple::roce::cm {

namespace {

// A SIDR REQ does not tell its sender's time-out: twice that of rdma_cm of Linux, 2^20.
constexpr Time kHold = 2 * (Time{4096} << 20);

}  // namespace

Status Manager::resolve(Time now, uint64_t user, const Path& path, const SidrReq& request, uint8_t response_timeout,
                        uint8_t max_retries, Id& id) {
  Record* record = add_record();
  if (record == nullptr) return Status::kNoRoom;
  record->active = true;
  record->sidr = true;
  record->user = user;
  record->path = path;
  record->transaction = host_.random();
  record->max_retries = max_retries;
  record->period = wait_of(response_timeout);
  enter(*record, State::kSidrReqSent);
  SidrReq sent = request;
  sent.request_id = record->local_id;
  id = record->id;
  send_first(now, *record, make_mad(record->transaction, sent));
  return done(*record);
}

void Manager::received_sidr_rep(const Path& path, const MadView& view) {
  SidrRep reply;
  read(view, reply);
  Record* record = table_.by_local_id(reply.request_id);
  if (record == nullptr || !record->sidr || record->state != State::kSidrReqSent) {
    ++count_.unknown;
    return;
  }
  if (is_foreign(*record, path)) return;
  emit(*record, {.type = EventType::kSidrReply,
                 .last = true,
                 .sidr_rep = &reply,
                 .info = Data(reply.info).first(std::min<size_t>(reply.info_size, reply.info.size())),
                 .private_data = reply.private_data});
  finish(*record);
}

void Manager::received_sidr_req(Time now, const Path& path, const MadView& view) {
  SidrReq request;
  read(view, request);
  if (Record* old = table_.by_request(path.remote, request.request_id)) {
    ++count_.duplicates;
    if (old->state != State::kSidrAnswered) return;
    table_.timers().set(*old, now + old->hold);
    return send(*old, old->message);
  }
  const bool ip_service = is_ip_service(request.service_id);
  IpHeader ip;
  const bool has_ip = ip_service && read_ip_header(request.private_data, ip);
  const Listener* listener = listener_for(request.service_id, path, has_ip ? &ip : nullptr);
  if (listener == nullptr || !listener->parameters.datagram || has_ip != ip_service) {
    ++count_.unserved;
    if (listener == nullptr && now < others_until_) return;
    ++count_.sent;
    const SidrRep reply{.request_id = request.request_id,
                        .status = listener == nullptr ? SidrStatus::kUnsupported : SidrStatus::kRejected,
                        .service_id = request.service_id};
    return host_.send(path, make_mad(view.transaction, reply));
  }
  Record* record = admit(*listener, path, view, request.request_id);
  if (record == nullptr) return;
  record->sidr = true;
  record->service_id = request.service_id;
  record->hold = kHold;
  table_.enter(*record, kByRemoteId);
  enter(*record, State::kSidrReqReceived);
  emit(*record, {.type = EventType::kSidrRequest,
                 .listener = listener->id,
                 .sidr_req = &request,
                 .ip = has_ip ? &ip : nullptr,
                 .private_data = Data(request.private_data).subspan(has_ip ? kIpHeaderSize : 0)});
}

void Manager::answer_and_remember(Time now, Record& record, const SidrRep& reply) {
  SidrRep sent = reply;
  sent.request_id = record.remote_id;
  sent.service_id = record.service_id;
  record.message = make_mad(record.transaction, sent);
  enter(record, State::kSidrAnswered);
  send(record, record.message);
  table_.timers().set(record, now + record.hold);
}

Status Manager::answer(Time now, Id id, const SidrRep& reply) {
  Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  if (record->state != State::kSidrReqReceived) return Status::kWrongState;
  answer_and_remember(now, *record, reply);
  return done(*record);
}

}  // namespace dapple::roce::cm
