// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/ids/port_table.hpp"

#include <errno.h>

#include <cassert>

namespace dapple::dappled::rdma_cm {
namespace {

bool is_at(const CmId& id, uint16_t port_space, uint16_t port) {
  return id.port_space == port_space && id.source.port == port;
}

}  // namespace

CmId* PortTable::first_of(uint16_t port_space, uint16_t port) const {
  CmId* id = buckets_[(port_space * 31U + port) % kBuckets];
  while (id != nullptr && !is_at(*id, port_space, port)) id = id->same_port;
  return id;
}

CmId* PortTable::next_of(const CmId& id) {
  CmId* next = id.same_port;
  while (next != nullptr && !is_at(*next, id.port_space, id.source.port)) next = next->same_port;
  return next;
}

int PortTable::check(const CmId& id, bool reuse_address) const {
  for (const CmId* other = first_of(id.port_space, id.source.port); other != nullptr; other = next_of(*other)) {
    if (other == &id) continue;
    if (reuse_address && other->reuse_address && other->state != State::kListen) continue;
    if (id.one_family && other->one_family && id.source.family != other->source.family) continue;
    if (id.source.is_any() || other->source.is_any()) return EADDRNOTAVAIL;
    if (id.source.same_host(other->source) && id.source.scope == other->source.scope) return EADDRINUSE;
  }
  return 0;
}

int PortTable::bind(CmId& id, uint64_t random) {
  assert(id.has_port == 0 && first_ <= last_);
  if (id.source.port != 0) {
    if (const int error = check(id, id.reuse_address); error != 0) return error;
  } else {
    const uint32_t range = last_ - first_ + 1U;
    const auto start = static_cast<uint32_t>(random % range);
    for (uint32_t i = 0; i < range && id.source.port == 0; i++) {
      const auto port = static_cast<uint16_t>(first_ + (start + i) % range);
      if (first_of(id.port_space, port) == nullptr) id.source.port = port;
    }
    if (id.source.port == 0) return EADDRNOTAVAIL;
  }
  assert(id.source.port != 0);
  CmId*& first = bucket(id.port_space, id.source.port);
  id.same_port = first;
  first = &id;
  id.has_port = true;
  return 0;
}

void PortTable::release(CmId& id) {
  if (!id.has_port) return;
  CmId** link = &bucket(id.port_space, id.source.port);
  while (*link != &id) {
    // Its port has changed since bind().
    assert(*link != nullptr);
    link = &(*link)->same_port;
  }
  *link = id.same_port;
  id.has_port = false;
}

}  // namespace dapple::dappled::rdma_cm
