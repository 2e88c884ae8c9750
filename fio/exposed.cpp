// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "fio/exposed.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace dapple::fio {
namespace {

// This name instead of a file's means memory.
constexpr char kMemory[] = "malloc";

std::uint64_t page_size() {
  return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

class Descriptor {
 public:
  explicit Descriptor(const char* name) noexcept : fd_(::open(name, O_RDWR | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) (void)::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  const int fd_;
};

}  // namespace

Exposed Exposed::open(ibv_context* device, rpma_peer* peer, const File& file, bool direct_write_to_pmem) noexcept {
  Exposed exposed;
  int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
  if (direct_write_to_pmem) usage |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
  if (!exposed.prepare(device) || !exposed.map(file)) return {};
  (void)made(exposed.region_, "rpma_mr_reg",
             [&](rpma_mr_local** out) { return rpma_mr_reg(peer, exposed.begin_, exposed.size_, usage, out); });
  return exposed;
}

bool Exposed::prepare(ibv_context* device) noexcept {
  dappledv_device_attr attributes = {};
  int error = dappledv_query_device(device, &attributes);
  if (error == 0) error = dappledv_init_region(&attributes, &attributes_);
  if (error != 0) say("the device's coherence: %s", std::strerror(error));
  return error == 0;
}

bool Exposed::map(const File& file) noexcept {
  size_ = file.size();
  if (size_ == 0) {
    say("size= is missing, or create_serialize is 0");
    return false;
  }
  if (std::strcmp(file.name(), kMemory) == 0) {
    mapping_ = Mapping::anonymous(size_);
    begin_ = mapping_.address();
    return begin_ != nullptr;
  }
  const Descriptor opened(file.name());
  struct stat found = {};
  if (opened.get() < 0 || fstat(opened.get(), &found) != 0) {
    say("%s: %s; filename= must name an existing file, or malloc for memory", file.name(), std::strerror(errno));
    return false;
  }
  const std::uint64_t end = file.offset() + size_;
  if (S_ISREG(found.st_mode) && static_cast<std::uint64_t>(found.st_size) < end) {
    say("%s has %lld bytes, and offset= and size= reach to %llu", file.name(), static_cast<long long>(found.st_size),
        static_cast<unsigned long long>(end));
    return false;
  }
  const std::uint64_t before = file.offset() % page_size();
  const auto map_with = [&](int flags) {
    return mmap(nullptr, before + size_, PROT_READ | PROT_WRITE, flags, opened.get(),
                static_cast<off_t>(file.offset() - before));
  };
  // The kernel grants MAP_SYNC if only the CPU's caches lie between a store and the file's persistent memory.
  void* mapped = map_with(MAP_SHARED_VALIDATE | MAP_SYNC);
  by_instructions_ = mapped != MAP_FAILED;
  if (mapped == MAP_FAILED) mapped = map_with(MAP_SHARED);
  if (mapped == MAP_FAILED) {
    say("%s cannot be mapped: %s", file.name(), std::strerror(errno));
    return false;
  }
  mapping_ = Mapping(mapped, before + size_);
  begin_ = mapping_.address() + before;
  return !by_instructions_ || persistent(file.name(), S_ISREG(found.st_mode));
}

bool Exposed::persistent(const char* name, bool has_msync) noexcept {
  const int error = dappledv_persist_region(&attributes_, DAPPLEDV_PERSISTENCE_UNSPECIFIED);
  if (error == 0) return true;
  by_instructions_ = false;
  if (has_msync) return true;
  say("%s: no known instruction of this CPU makes it persistent: %s", name, std::strerror(error));
  return false;
}

int Exposed::persist(std::uint64_t offset, std::uint64_t length) const noexcept {
  if (offset > size_ || length > size_ - offset) return EFAULT;
  char* const from = begin_ + offset;
  const iovec range = {from, length};
  const int error = dappledv_sync_for_cpu(&attributes_, &range, 1);
  if (error != 0 || by_instructions_) return error;
  const std::uint64_t before = reinterpret_cast<std::uintptr_t>(from) % page_size();
  return msync(from - before, before + length, MS_SYNC) == 0 ? 0 : errno;
}

}  // namespace dapple::fio
