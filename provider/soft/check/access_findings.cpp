// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/access_findings.hpp"

namespace dapple::soft::check {
namespace {

std::vector<Place> places_of(const Access& access, const std::optional<Registration>& registration) {
  std::vector<Place> places;
  if (access.posted) places.push_back(*access.posted);
  if (!registration) return places;
  places.push_back({"registered", registration->registered});
  if (registration->deregistered) places.push_back({"deregistered", *registration->deregistered});
  return places;
}

}  // namespace

bool report_key(Checker& checker, const Access& access) {
  const std::optional<Registration> registration = checker.keys.find(access.device, access.key);
  if (!registration) return false;
  if (registration->deregistered) {
    checker.reporter.show(
        {.kind = "deregistered-key",
         .text = access.text + format(" by key 0x%x, which ibv_dereg_mr() has ended (%zu bytes at %p).", access.key,
                                      registration->length, registration->address),
         .remedy = access.from_peer
                       ? "Deregister memory after the peer has reported that it no longer needs it."
                       : "Deregister memory after the completion of the last request that uses it, and make requests "
                         "with the key of the present registration.",
         .places = places_of(access, registration)});
    return true;
  }
  if (registration->domain == access.domain) return false;
  checker.reporter.show(
      {.kind = "foreign-domain",
       .text = access.text + format(" by key 0x%x of another protection domain: the key's domain has the handle "
                                    "%u, and the queue pair's domain has %u.",
                                    access.key, registration->domain, access.domain),
       .remedy = "Register the memory in the protection domain of the queue pair.",
       .places = places_of(access, registration)});
  return true;
}

void report_unmapped(Checker& checker, const Access& access, const void* memory, size_t size) {
  checker.reporter.show(
      {.kind = "unmapped-memory",
       .text = access.text + format(" by key 0x%x, and the program no longer has that memory (%zu bytes at %p): it is "
                                    "unmapped, truncated or protected.",
                                    access.key, size, memory),
       .remedy = "Call ibv_dereg_mr() before the memory is unmapped, freed or protected.",
       .places = places_of(access, checker.keys.find(access.device, access.key))});
}

void report_freed(Checker& checker, const Access& access, const FreedMarks::Mark& freed) {
  const bool is_unmapped = freed.how == FreedMarks::How::kUnmapped;
  std::vector<Place> places = {{is_unmapped ? "unmapped" : "freed", freed.stack}};
  for (const Place& place : places_of(access, checker.keys.find(access.device, access.key))) places.push_back(place);
  checker.reporter.show(
      {.level = Level::kWarning,
       .kind = "freed-memory",
       .text = access.text + format(" by key 0x%x, and the program has %s that memory (%zu bytes at %p)%s.", access.key,
                                    is_unmapped ? "unmapped" : "freed", freed.size, freed.memory,
                                    is_unmapped ? "; a NIC would not use what is mapped there now" : ""),
       .remedy = "Call ibv_dereg_mr() before the memory is freed or unmapped, when nothing uses the key any more.",
       .places = places});
}

}  // namespace dapple::soft::check
