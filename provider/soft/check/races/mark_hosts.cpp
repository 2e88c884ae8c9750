// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/mark_hosts.hpp"

#include <algorithm>
#include <cassert>

#include "provider/system/random.hpp"

namespace dapple::soft::check {
namespace {

// Nobody who has not seen the question can answer it.
uint64_t make_transaction() {
  uint64_t number = 0;
  fill_with_random_bytes(&number, sizeof number);
  return number;
}

}  // namespace

void MarkHosts::assert_consistent([[maybe_unused]] const Host& host) const {
  assert(!hosts_.empty() && hosts_.size() <= kMax);
  assert(host.tries <= kTries);
  assert(host.has_answered || host.number == kThisHost);
}

const MarkHosts::Host* MarkHosts::find(const Route& route) const {
  const auto found =
      std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& host) { return same(host.route, route); });
  return found == hosts_.end() ? nullptr : &*found;
}

std::optional<MarkQuestion> MarkHosts::due(const Route& route, uint64_t now) {
  auto* host = const_cast<Host*>(find(route));
  if (host == nullptr) {
    if (hosts_.size() == kMax) return std::nullopt;
    hosts_.push_back({.route = route, .transaction = make_transaction(), .next = now});
    host = &hosts_.back();
  }
  if (host->has_answered || host->tries == kTries || now < host->next) return std::nullopt;
  host->next = now + (kFirstWait << host->tries);
  host->tries++;
  assert_consistent(*host);
  return MarkQuestion{.transaction = host->transaction};
}

uint64_t MarkHosts::deadline(const Route& route) const {
  const Host* host = find(route);
  return host == nullptr || host->has_answered || host->tries == kTries ? roce::kNever : host->next;
}

void MarkHosts::answered(const Route& route, const MarkAnswer& answer) {
  auto* host = const_cast<Host*>(find(route));
  if (host == nullptr || host->has_answered || answer.transaction != host->transaction) return;
  host->has_answered = true;
  if (answer.version == kMarkVersion) host->number = host_number(answer.host);
  assert_consistent(*host);
}

uint64_t MarkHosts::host(const Route& route) const {
  const Host* host = find(route);
  return host == nullptr ? kThisHost : host->number;
}

void MarkHosts::forget(const Route& route) {
  std::erase_if(hosts_, [&](const Host& host) { return same(host.route, route); });
}

}  // namespace dapple::soft::check
