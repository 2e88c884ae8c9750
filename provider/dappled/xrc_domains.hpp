// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The XRC domains of files, and the connections that have them open.
#pragma once

#include <cstdint>
#include <vector>

#include "provider/protocol/xrc_messages.hpp"
#include "provider/system/file_inode.hpp"
#include "provider/system/owned_fd.hpp"
#include "provider/system/problem.hpp"

namespace dapple::dappled {

class XrcDomains {
 public:
  // A file's inode, and an RDMA device.
  struct Name {
    uint32_t device = 0;
    soft::FileInode file;
    bool operator==(const Name&) const = default;
  };

  // The connection opens the domain of a device and a file; `flags` are XrcOpenFlags. Returns the descriptor of the
  // domain's memory, which stays the table's; -1 if `outcome` is another one than kOpen, or on failure, and `problem`
  // has the reason. `memory`: what a member of the last dappled has, or no descriptor.
  int open(uint32_t connection, uint32_t device, uint32_t flags, soft::OwnedFd file, soft::OwnedFd memory,
           soft::XrcOutcome& outcome, soft::Problem& problem);
  void close(uint32_t connection, const Name& name);
  // The connection has ended.
  void leave(uint32_t connection);

 private:
  struct Domain {
    Name name;
    soft::OwnedFd file;  // keeps the inode's number from another file
    soft::OwnedFd memory;
    std::vector<uint32_t> connections;
  };
  using Iterator = std::vector<Domain>::iterator;

  Domain* make(const Name& name, soft::OwnedFd file, soft::OwnedFd memory, soft::Problem& problem);
  // The next domain, as this one goes if nobody has it open any more.
  Iterator without(Iterator domain, uint32_t connection);

  std::vector<Domain> domains_;
};

}  // namespace dapple::dappled
