// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The events of a queue pair whose messages meet tags, as the program knows its requests: without the segment of the
// header, and with the device's own Reads as receives.
#pragma once

#include "provider/soft/tag_matching/rendezvous.hpp"
#include "provider/soft/tag_matching/tag_receives.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// Guarded by the queue pair's lock.
class TagEvents final : public roce::EventSink {
 public:
  // `reads`: the send queue is the device's own.
  TagEvents(roce::EventSink& below, const TagReceives& receives, const Rendezvous& rendezvous, bool reads)
      : below_(below), receives_(receives), rendezvous_(rendezvous), reads_(reads) {}

  void event(roce::QpEvent event, uint32_t qpn) override { below_.event(event, qpn); }
  void refused(uint32_t access) override { below_.refused(access); }
  void denied(const roce::RemoteRange& range, uint32_t rights) override { below_.denied(range, rights); }
  void cannot_invalidate(uint32_t rkey) override { below_.cannot_invalidate(rkey); }
  void dropped(const roce::DroppedMessage& message) override { below_.dropped(message); }
  void not_ready() override { below_.not_ready(); }
  void sends_fail() override { below_.sends_fail(); }
  void send_fails(const roce::SendRequest& request, roce::CompletionStatus status) override {
    if (!reads_) return below_.send_fails(request, status);
    // Nobody knows of a Send that ends a rendezvous.
    if (request.opcode != roce::SendOpcode::kRead) return;
    roce::SendRequest read = request;
    read.id = rendezvous_.receive_of(request.id);
    below_.read_fails(read, status);
  }
  void receive_fails(const roce::ReceiveRequest& request, roce::CompletionStatus status) override {
    if (receives_.skipped({request.segments, request.segment_count}) == 0) return below_.receive_fails(request, status);
    roce::ReceiveRequest shown;
    shown.id = request.id;
    shown.mark = request.mark;
    shown.segments = request.segments + 1;
    shown.segment_count = request.segment_count - 1;
    below_.receive_fails(shown, status);
  }

 private:
  roce::EventSink& below_;
  const TagReceives& receives_;
  const Rendezvous& rendezvous_;
  const bool reads_;
};

}  // namespace dapple::soft
