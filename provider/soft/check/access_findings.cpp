// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/access_findings.hpp"

#include "provider/soft/memory/mapped_range.hpp"

namespace dapple::soft::check {
namespace {

std::vector<ReportedStack> places_of(const Access& access, const std::optional<Registration>& registration) {
  std::vector<ReportedStack> places;
  if (access.posted) places.push_back(*access.posted);
  if (!registration) return places;
  places.push_back({"registered", registration->registered});
  if (registration->deregistered) places.push_back({"deregistered", *registration->deregistered});
  return places;
}

}  // namespace

const char* missing_right(uint32_t rights, uint32_t given) {
  static constexpr struct {
    uint32_t right;
    const char* name;
  } kNames[] = {
      {roce::kLocalWrite, "IBV_ACCESS_LOCAL_WRITE"},   {roce::kRemoteWrite, "IBV_ACCESS_REMOTE_WRITE"},
      {roce::kRemoteRead, "IBV_ACCESS_REMOTE_READ"},   {roce::kRemoteAtomic, "IBV_ACCESS_REMOTE_ATOMIC"},
      {roce::kFlushGlobal, "IBV_ACCESS_FLUSH_GLOBAL"}, {roce::kFlushPersistent, "IBV_ACCESS_FLUSH_PERSISTENT"},
  };
  for (const auto& [right, name] : kNames) {
    if ((rights & ~given & right) != 0) return name;
  }
  return nullptr;
}

bool report_key(Checker& checker, MemoryTable& memory, const Access& access) {
  const std::optional<Registration> registration = checker.keys.find(access.device, access.key);
  std::vector<ReportedStack> places = places_of(access, registration);
  const auto report = [&](const char* kind, const std::string& reason, const std::string& remedy) {
    checker.reporter.show({.kind = kind,
                           .text = access.text + format(" by key 0x%x", access.key) + reason,
                           .remedy = remedy,
                           .places = places});
    return true;
  };
  if (registration && registration->deregistered) {
    return report(
        "deregistered-key",
        format(", which ibv_dereg_mr() has ended (%zu bytes at %p).", registration->length, registration->address),
        access.from_peer ? "Deregister memory after the peer has reported that it no longer needs it."
                         : "Deregister memory after the completion of the last request that uses it, and make requests "
                           "with the key of the present registration.");
  }
  KeyHolder known;
  if (!memory.find_holder(access.key, known)) {
    // A region that is just being reregistered.
    if (registration) return false;
    // No other place tells one such request of a peer from another.
    if (access.queue_pair) places.push_back(*access.queue_pair);
    if (const std::optional<EndedWindow> window = checker.keys.ended_window(access.device, access.key)) {
      if (window->by) places.push_back(*window->by);
      return report("ended-window", std::string(", the key of a memory window ") + window->how + ".",
                    "Use the key that the last bind of the window has made, until the window is unbound.");
    }
    if (access.from_peer && memory.is_unbound_window(access.key)) {
      return report(
          "ended-window", ", the key of a memory window that is not bound.",
          "Use the key that a bind has made, after the completion of the bind. ibv_bind_mw() is for windows of "
          "type 1, and returns EINVAL for type 2: post IBV_WR_BIND_MW for these.");
    }
    return report("unknown-key", ", which belongs to no memory.",
                  access.from_peer ? "Give the peer the rkey of registered memory, in a byte order that both know."
                                   : "Use the lkey of the registration that holds these bytes.");
  }
  if (known.domain != access.domain) {
    return report(
        "foreign-domain",
        format(" of another protection domain: the key's domain has the handle %u, and the %s's domain has %u.",
               known.domain, access.domain_of, access.domain),
        format("Register the memory in the protection domain of the %s.", access.domain_of));
  }
  if (known.is_window && !access.from_peer) {
    return report("unknown-key", ", the key of a memory window, which only peers may use.",
                  "Use the lkey of the region under the memory window.");
  }
  if (known.qpn && *known.qpn != access.qpn) {
    return report("foreign-window",
                  format(", the key of a memory window of type 2 that queue pair 0x%x has bound.", *known.qpn),
                  "Bind the memory window on the queue pair that the peer is connected to, or use one of type 1.");
  }
  const char* holder = known.is_window ? "memory window" : "region";
  if (const char* right = missing_right(access.rights, known.access)) {
    return report("missing-right", format(", whose %s lacks %s.", holder, right),
                  format(known.is_window ? "Bind the memory window with %s." : "Register the memory with %s.", right));
  }
  if (access.length == 0 || within(access.address, access.length, known.start, known.length)) {
    if (known.kind == RegionKind::kGpu && known.problem != nullptr) {
      return report("unmapped-memory", format(", whose memory is a GPU's and cannot be copied: %s.", known.problem),
                    "Call ibv_dereg_mr() before the memory is freed (cuMemFree() or cudaFree()), and look for an "
                    "earlier error of CUDA.");
    }
    if (known.kind != RegionKind::kOnDemand || access.length == 0) return false;
    constexpr uint32_t kWriting = kRemoteChanges | roce::kLocalWrite;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(known.memory) + (access.address - known.start);
    if (populate_range(reinterpret_cast<const void*>(begin), access.length, (access.rights & kWriting) != 0) == 0)
      return false;
    return report("unmapped-memory",
                  ", whose memory is under on-demand paging: the program has unmapped or protected it.",
                  "Unmap or protect memory under on-demand paging when no request uses it any more.");
  }
  return report("out-of-bounds",
                format(", whose %s (%llu bytes at 0x%llx) does not hold all %llu bytes at 0x%llx.", holder,
                       static_cast<unsigned long long>(known.length), static_cast<unsigned long long>(known.start),
                       static_cast<unsigned long long>(access.length), static_cast<unsigned long long>(access.address)),
                "Register all bytes that a request may use, or use fewer.");
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
  const bool is_unmapped = freed.how != FreedMarks::How::kFreed;
  std::vector<ReportedStack> places = {{FreedMarks::name_of(freed.how), freed.stack}};
  for (const ReportedStack& place : places_of(access, checker.keys.find(access.device, access.key)))
    places.push_back(place);
  checker.reporter.show(
      {.kind = "freed-memory",
       .text = access.text + format(" by key 0x%x, and the program has %s that memory (%zu bytes at %p)%s.", access.key,
                                    FreedMarks::name_of(freed.how), freed.size, freed.memory,
                                    is_unmapped ? "; a NIC would not use what is mapped there now" : ""),
       .remedy = "Call ibv_dereg_mr() before the memory is freed or unmapped, when nothing uses the key any more.",
       .places = places});
}

}  // namespace dapple::soft::check
