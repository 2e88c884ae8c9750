// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/registration.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "provider/common/loaded_object.hpp"

namespace dapple::provider {
namespace {

constexpr int kFirstMajor = 7;
constexpr int kFirstMinor = 1;

// libibverbs' functions, of the copy that the context came from: this library is not linked to it.
struct Verbs {
  decltype(&ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&ibv_dealloc_pd) dealloc_pd = nullptr;
  ibv_mr* (*reg_mr)(ibv_pd*, void*, size_t, int) = nullptr;
  decltype(&ibv_dereg_mr) dereg_mr = nullptr;

  explicit Verbs(void* library) {
    if (library == nullptr) return;
    alloc_pd = reinterpret_cast<decltype(alloc_pd)>(dlsym(library, "ibv_alloc_pd"));
    dealloc_pd = reinterpret_cast<decltype(dealloc_pd)>(dlsym(library, "ibv_dealloc_pd"));
    reg_mr = reinterpret_cast<decltype(reg_mr)>(dlsym(library, "ibv_reg_mr"));
    dereg_mr = reinterpret_cast<decltype(dereg_mr)>(dlsym(library, "ibv_dereg_mr"));
  }
  bool complete() const { return alloc_pd && dealloc_pd && reg_mr && dereg_mr; }
};

Registration register_page(const Verbs& verbs, ibv_context* context) {
  ibv_pd* pd = verbs.alloc_pd(context);
  if (pd == nullptr) return Registration::kNotAsked;
  Registration answer = Registration::kNotAsked;
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) {
    ibv_mr* region = verbs.reg_mr(pd, page, size, IBV_ACCESS_LOCAL_WRITE);
    answer = judge_registration(region != nullptr ? 0 : errno);
    // A page that the device may still write to is not freed.
    if (region == nullptr || verbs.dereg_mr(region) == 0) munmap(page, size);
  }
  (void)verbs.dealloc_pd(pd);
  return answer;
}

}  // namespace

bool refuses_noncoherent(std::string_view release) {
  int major = 0;
  int minor = 0;
  const char* end = release.data() + release.size();
  const auto first = std::from_chars(release.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return false;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return false;
  return major > kFirstMajor || (major == kFirstMajor && minor >= kFirstMinor);
}

Registration try_registration(ibv_context* context, std::string_view release) {
  if (!refuses_noncoherent(release)) return Registration::kNotAsked;
  // A context without a device file does not come from the kernel, and its answer says nothing about DMA.
  struct stat status;
  if (fstat(context->cmd_fd, &status) != 0 || !S_ISCHR(status.st_mode)) return Registration::kNotAsked;
  void* library = open_verbs_of(context);
  const Verbs verbs(library);
  const Registration answer = verbs.complete() ? register_page(verbs, context) : Registration::kNotAsked;
  if (library != nullptr) dlclose(library);
  return answer;
}

Registration judge_registration(int error) {
  switch (error) {
    case 0:
      return Registration::kAccepted;
    // Errors of the lock limit, a full device, a filter of system calls, or a removed device: the kernel returns these
    // before it checks coherence.
    case ENOMEM:
    case EPERM:
    case EACCES:
    case EAGAIN:
    case ENOSYS:
    case ENODEV:
    case EINTR:
    case ENOSPC:
      return Registration::kNotAsked;
    default:
      return Registration::kRefused;
  }
}

}  // namespace dapple::provider
