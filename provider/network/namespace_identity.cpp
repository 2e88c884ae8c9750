// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/network/namespace_identity.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "provider/system/owned_fd.hpp"

namespace dapple::soft {
namespace {

// From <asm/socket.h>: Linux 5.14.
constexpr int kSoNetnsCookie = 71;

// A number that no other namespace has until the next boot; 0 if the kernel does not tell.
uint64_t namespace_cookie() {
  const OwnedFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (getsockopt(socket.get(), SOL_SOCKET, kSoNetnsCookie, &cookie, &size) != 0) return 0;
  return cookie;
}

// FNV-1a of the boot's random name; 0 if it cannot be read.
uint64_t boot_number() {
  const OwnedFd file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t size = read(file.get(), text, sizeof text);
  if (size < 32) return 0;
  uint64_t hash = 0xCBF29CE484222325;
  for (ssize_t i = 0; i < size; i++) hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001B3;
  return hash;
}

}  // namespace

uint64_t namespace_identity() {
  const uint64_t cookie = namespace_cookie();
  const uint64_t boot = boot_number();
  return cookie != 0 && boot != 0 ? boot ^ cookie * 0x9E3779B97F4A7C15 : 0;
}

}  // namespace dapple::soft
