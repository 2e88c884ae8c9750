// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/verbs/hung_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/native/kills/stage.hpp"

namespace dapple::tests {
namespace {

constexpr uint64_t kFile = 2;  // its node, beside that of the root

fuse_attr attributes_of(uint64_t node) {
  fuse_attr attributes = {};
  attributes.ino = node;
  attributes.nlink = 1;
  attributes.mode = node == kFile ? S_IFREG | 0666 : S_IFDIR | 0777;
  return attributes;
}

void reply(int fuse, uint64_t request, int error, const void* body, size_t size) {
  fuse_out_header header = {static_cast<uint32_t>(sizeof header + size), -error, request};
  const iovec parts[] = {{&header, sizeof header}, {const_cast<void*>(body), size}};
  if (writev(fuse, parts, size == 0 ? 1 : 2) < 0) _exit(1);
}

template <class Body>
void reply(int fuse, uint64_t request, const Body& body) {
  reply(fuse, request, 0, &body, sizeof body);
}

// Until the file is open.
int serve(int fuse) {
  alignas(8) static char room[FUSE_MIN_READ_BUFFER + (1 << 16)];
  for (;;) {
    if (read(fuse, room, sizeof room) < static_cast<ssize_t>(sizeof(fuse_in_header))) return 1;
    fuse_in_header header;
    memcpy(&header, room, sizeof header);
    switch (header.opcode) {
      case FUSE_INIT: {
        fuse_init_out body = {};
        body.major = FUSE_KERNEL_VERSION;
        body.minor = FUSE_KERNEL_MINOR_VERSION;
        body.max_write = 1 << 16;
        reply(fuse, header.unique, body);
        break;
      }
      case FUSE_LOOKUP: {
        fuse_entry_out body = {};
        body.nodeid = kFile;
        body.entry_valid = UINT32_MAX;
        body.attr = attributes_of(kFile);
        reply(fuse, header.unique, body);
        break;
      }
      case FUSE_GETATTR: {
        fuse_attr_out body = {};
        body.attr = attributes_of(header.nodeid);
        reply(fuse, header.unique, body);
        break;
      }
      case FUSE_OPEN:
        reply(fuse, header.unique, fuse_open_out{});
        // The descriptor stays open, so requests wait.
        pause();
        return 1;
      default:
        reply(fuse, header.unique, ENOSYS, nullptr, 0);
    }
  }
}

}  // namespace

HungFile::HungFile() {
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
  const int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fuse < 0 || mkdtemp(folder_) == nullptr) return;
  const std::string options = "fd=" + std::to_string(fuse) + ",rootmode=40000,user_id=0,group_id=0";
  is_mounted_ = mount("hung", folder_, "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
  if (is_mounted_) {
    server_ = start_process([fuse] { return serve(fuse); });
    fd_ = open((std::string(folder_) + "/file").c_str(), O_RDONLY | O_CLOEXEC);
  }
  close(fuse);
}

HungFile::~HungFile() {
  if (server_ > 0) {
    kill(server_, SIGKILL);
    waitpid(server_, nullptr, 0);
  }
  if (fd_ >= 0) close(fd_);
  if (is_mounted_) umount2(folder_, MNT_DETACH);
  rmdir(folder_);
}

}  // namespace dapple::tests
