// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/transport/network_turn.hpp"

#include <utility>

#include "provider/soft/transport/context.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::soft {

NetworkTurn::NetworkTurn(BatchPool& pool, Qp& qp)
    : pool_(pool), qp_(qp), path_(qp.init.qp_type != IBV_QPT_UD ? &qp.transport.path : nullptr) {
  assert_held(qp.mutex);
}

void NetworkTurn::end() {
  if (batch_ == nullptr) return;
  batch_->flush();
  pool_.give(std::move(batch_));
  if (packets_ == 0) return;
  qp_.traffic->sent_packets.add(packets_);
  qp_.traffic->sent_bytes.add(bytes_);
}

std::byte* NetworkTurn::reserve(size_t size) {
  if (packets_ == kPacketsOfATurn) return nullptr;
  if (batch_ == nullptr) {
    batch_ = pool_.take();
    if (batch_ == nullptr) return nullptr;
    if (path_ != nullptr) batch_->set_path(*path_);
  }
  room_ = batch_->reserve(size);
  reserved_ = size + roce::kIcrcSize;
  return room_;
}

void NetworkTurn::commit(const roce::AddressVector* to) {
  ++packets_;
  bytes_ += reserved_;
  if (path_ == nullptr) {
    Path path;
    // A datagram to an address that is gone is lost.
    if (to == nullptr || !qp_.context->resolve(*to, path)) return;
    path.source_qpn = qp_.qpn;
    // BTH: the destination queue pair is in bytes 5 to 7.
    path.destination_qpn = std::to_integer<uint32_t>(room_[5]) << 16 | std::to_integer<uint32_t>(room_[6]) << 8 |
                           std::to_integer<uint32_t>(room_[7]);
    batch_->set_path(path);
  }
  batch_->commit(to);
}

}  // namespace dapple::soft
