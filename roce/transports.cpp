// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/transports.hpp"

#include <new>

namespace dapple::roce {
namespace {

template <typename Type>
std::unique_ptr<QueuePair> make(const QpConfig& config, Memory& memory, CompletionSink& send_completions,
                                CompletionSink& receive_completions, ReceiveSource& receives, EventSink& events) {
  std::unique_ptr<Type> made(new (std::nothrow)
                                 Type(config, memory, send_completions, receive_completions, receives, events));
  if (made == nullptr || !made->allocate()) return nullptr;
  return made;
}

}  // namespace

std::unique_ptr<QueuePair> QueuePair::create(const QpConfig& config, Memory& memory, CompletionSink& send_completions,
                                             CompletionSink& receive_completions, ReceiveSource& receives,
                                             EventSink& events) {
  switch (config.type) {
    case QpType::kRc:
    case QpType::kXrcSend:
    case QpType::kXrcReceive:
      return make<ReliableConnection>(config, memory, send_completions, receive_completions, receives, events);
    case QpType::kUc:
      return make<UnreliableConnection>(config, memory, send_completions, receive_completions, receives, events);
    case QpType::kUd:
      return make<UnreliableDatagram>(config, memory, send_completions, receive_completions, receives, events);
    case QpType::kRawPacket:
      break;
  }
  return nullptr;
}

}  // namespace dapple::roce
