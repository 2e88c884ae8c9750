// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Listeners, and the look-up of the listener for a request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "roce/cm/ports.hpp"
#include "roce/cm/record_list.hpp"

namespace dapple::roce::cm {

enum class Family : uint8_t { kBoth, kIpv4, kIpv6 };

struct ListenParameters {
  uint64_t service_id = 0;
  // The bits of the service id that are compared.
  uint64_t service_mask = UINT64_MAX;
  // True: for SIDR REQs; false: for REQs. A request of the other kind is rejected.
  bool datagram = false;
  // These restrict a listener to requests that arrive at one device, and to requests for one address or one family of
  // addresses. The compared address is the IP header's destination, or the path's local GID without such a header.
  std::optional<uint32_t> device = std::nullopt;
  std::optional<Gid> address = std::nullopt;
  Family family = Family::kBoth;
  // The limit of requests that wait for the consumer; a further request is not answered, so that it comes again.
  uint32_t backlog = 128;
  uint64_t user = 0;
};

struct Listener {
  Id id = kNoId;
  uint32_t pending = 0;
  UnconfirmedOfOne unconfirmed;
  ListenParameters parameters;
};

// The parts of a request that listeners look at.
struct Wanted {
  uint64_t service_id = 0;
  uint32_t device = 0;
  Gid address{};
};

class Listeners {
 public:
  explicit Listeners(uint32_t most) : most_(most) {}

  // nullptr: too many, or no memory.
  Listener* add(const ListenParameters& parameters);
  void remove(Listener& listener);
  Listener* find(Id id) const;
  // A listener with the same service, device, address and family.
  bool has_same(const ListenParameters& parameters) const;
  // The most specific listener for the request, or nullptr.
  Listener* match(const Wanted& wanted) const;

  uint32_t count() const { return count_; }

  static bool is_listener(Id id) { return (id & kMark) != 0; }

 private:
  static constexpr Id kMark = 0x80000000;

  bool grow();
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  uint32_t most_;
  uint32_t count_ = 0;
  uint32_t size_ = 0;  // places used so far, some of them free again
  uint32_t room_ = 0;
  uint32_t generation_ = 0;
  std::unique_ptr<Listener[]> listeners_;
};

}  // namespace dapple::roce::cm
