// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/marking_sink.hpp"

#include <cassert>
#include <cstring>
#include <utility>

#include "roce/packet/packet.hpp"

namespace dapple::soft::check {

bool MarkingSink::send_held() {
  for (; !held_.empty(); held_.pop_front()) {
    const std::vector<std::byte>& packet = held_.front();
    std::byte* const to = below_.reserve(packet.size());
    if (to == nullptr) return false;
    memcpy(to, packet.data(), packet.size());
    below_.commit(nullptr);
  }
  return true;
}

std::byte* MarkingSink::reserve(size_t size) {
  if (!send_held()) return nullptr;
  assert(held_.empty());
  room_.assign(size, std::byte{0});
  return room_.data();
}

void MarkingSink::commit(const roce::AddressVector*) {
  assert(!room_.empty());
  mark(room_);
  held_.push_back(std::move(room_));
  (void)send_held();
}

void MarkingSink::put(const Mark& mark) {
  MarkBytes bytes;
  const size_t size = write_mark(mark, bytes);
  if (size > mtu_) return;
  std::vector<std::byte> packet(roce::kBthSize + size);
  roce::write_bth({.opcode = roce::kHostOpcode, .destination_qpn = qpn_, .psn = mark.psn}, packet.data());
  memcpy(packet.data() + roce::kBthSize, bytes.data(), size);
  held_.push_back(std::move(packet));
}

}  // namespace dapple::soft::check
