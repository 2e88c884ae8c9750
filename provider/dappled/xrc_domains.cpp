// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/xrc_domains.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "provider/member/xrc_domain_file.hpp"

namespace dapple::dappled {
namespace {

// Each has two descriptors.
constexpr size_t kMaxDomains = 256;

}  // namespace

XrcDomains::Domain* XrcDomains::make(const Name& name, soft::OwnedFd file, soft::OwnedFd memory,
                                     soft::Problem& problem) {
  if (domains_.size() == kMaxDomains) {
    problem.set(ENOSPC, "the programs of this network namespace have %zu XRC domains of files open; close one",
                domains_.size());
    return nullptr;
  }
  if (!memory) memory = soft::make_xrc_domain_file();
  if (!memory) {
    problem.set(errno, "dappled cannot make the memory of an XRC domain: %s", strerror(errno));
    return nullptr;
  }
  domains_.push_back({name, std::move(file), std::move(memory), {}});
  return &domains_.back();
}

int XrcDomains::open(uint32_t connection, uint32_t device, uint32_t flags, soft::OwnedFd file, soft::OwnedFd memory,
                     soft::XrcOutcome& outcome, soft::Problem& problem) {
  outcome = soft::XrcOutcome::kOpen;
  soft::FileInode inode;
  if (!file || !inode.read(file.get()) || (memory && !soft::is_xrc_domain_file(memory.get()))) {
    problem.set(EBADF, "the file of the XRC domain, or its memory, cannot be used");
    return -1;
  }
  const Name name = {device, inode};
  const auto found = std::ranges::find(domains_, name, &Domain::name);
  Domain* domain = found == domains_.end() ? nullptr : &*found;
  if (domain != nullptr && (flags & soft::kXrcIsNew) != 0) {
    outcome = soft::XrcOutcome::kExists;
    return -1;
  }
  if (domain == nullptr && (flags & soft::kXrcCreates) == 0) {
    outcome = soft::XrcOutcome::kMissing;
    return -1;
  }
  if (domain == nullptr) domain = make(name, std::move(file), std::move(memory), problem);
  if (domain == nullptr) return -1;
  if (std::ranges::find(domain->connections, connection) == domain->connections.end())
    domain->connections.push_back(connection);
  return domain->memory.get();
}

XrcDomains::Iterator XrcDomains::without(Iterator domain, uint32_t connection) {
  std::erase(domain->connections, connection);
  return domain->connections.empty() ? domains_.erase(domain) : domain + 1;
}

void XrcDomains::close(uint32_t connection, const Name& name) {
  const auto found = std::ranges::find(domains_, name, &Domain::name);
  if (found != domains_.end()) without(found, connection);
}

void XrcDomains::leave(uint32_t connection) {
  for (auto domain = domains_.begin(); domain != domains_.end();) domain = without(domain, connection);
}

}  // namespace dapple::dappled
