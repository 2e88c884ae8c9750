// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/packets/captures.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cassert>

namespace dapple::dappled::rdma_cm {

int Captures::add(uint32_t owner, soft::OwnedFd file) {
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return EINVAL;
  const int flags = fcntl(file.get(), F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_APPEND) == 0) return EINVAL;
  remove(owner);
  if (count_ == kMax) return ENFILE;
  assert(count_ < kMax);
  captures_[count_++] = {owner, status.st_dev, status.st_ino, soft::PcapWriter(std::move(file))};
  return 0;
}

void Captures::remove(uint32_t owner) {
  for (uint32_t i = 0; i < count_; i++) {
    if (captures_[i].owner != owner) continue;
    if (i != --count_) captures_[i] = std::move(captures_[count_]);
    captures_[count_] = {};
    return;
  }
}

bool Captures::is_first(uint32_t index) const {
  const Capture& capture = captures_[index];
  for (uint32_t i = 0; i < index; i++) {
    if (captures_[i].inode == capture.inode && captures_[i].device == capture.device) return false;
  }
  return true;
}

void Captures::write(Direction direction, const roce::IcrcAddresses& addresses, uint8_t traffic_class,
                     uint8_t hop_limit, std::span<const std::byte> transport) {
  for (uint32_t i = 0; i < count_; i++) {
    if (is_first(i)) captures_[i].writer.write(direction, addresses, traffic_class, hop_limit, transport);
  }
}

}  // namespace dapple::dappled::rdma_cm
