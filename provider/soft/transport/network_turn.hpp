// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdint.h>

#include <cstddef>
#include <memory>

#include "provider/soft/wire/batch_pool.hpp"
#include "provider/soft/wire/wire.hpp"

namespace dapple::soft {

struct Qp;

// The packets of one turn of a queue pair: a turn ends after some, so that queue pairs with much to send take turns.
inline constexpr uint32_t kPacketsOfATurn = 256;

// The sink that a turn writes to if its packets go over the network. Takes a batch when there is something to send.
class NetworkTurn final : public roce::PacketSink {
 public:
  // A turn lives under the queue pair's lock.
  NetworkTurn(BatchPool& pool, Qp& qp);
  ~NetworkTurn() { end(); }
  NetworkTurn(const NetworkTurn&) = delete;
  NetworkTurn& operator=(const NetworkTurn&) = delete;

  std::byte* reserve(size_t size) override;
  void commit(const roce::AddressVector* to) override;
  // Sends the committed packets. Afterwards only the count may be read.
  void end();
  uint32_t packets() const { return packets_; }

 private:
  BatchPool& pool_;
  Qp& qp_;
  const Path* const path_;  // to the peer, or null if each packet has its own address (UD)
  std::unique_ptr<SendBatch> batch_;
  std::byte* room_ = nullptr;
  uint32_t packets_ = 0;
  size_t reserved_ = 0;  // bytes of the packet that is not committed yet
  uint64_t bytes_ = 0;
};

}  // namespace dapple::soft
