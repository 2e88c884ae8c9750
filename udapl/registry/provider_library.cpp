// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/provider_library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <utility>

namespace dapple::registry {
namespace {

/// Old providers call dats_get_ia_handle() and dat_registry_add_provider() without being linked with the registry. If
/// the program loaded us RTLD_LOCAL, they find these functions only after this call.
void make_own_symbols_global() {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<void*>(&make_own_symbols_global), &self) == 0) return;
  // The scope stays global after the close.
  if (void* handle = ::dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL)) ::dlclose(handle);
}

/// The path of `name` in the folder of this library if the file exists; otherwise empty.
std::string beside_us(const std::string& name) {
  Dl_info self{};
  if (name.find('/') != std::string::npos || ::dladdr(reinterpret_cast<void*>(&beside_us), &self) == 0) return {};
  const std::string own = self.dli_fname;
  const std::size_t folder = own.rfind('/');
  if (folder == std::string::npos) return {};
  std::string path = own.substr(0, folder + 1) + name;
  return ::access(path.c_str(), F_OK) == 0 ? path : std::string();
}

void* open_library(const std::string& path) {
  if (void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return handle;
  make_own_symbols_global();
  return ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

const char* last_error() {
  const char* text = ::dlerror();
  return text ? text : "unknown error of the loader";
}

}  // namespace

ProviderLibrary::ProviderLibrary(ProviderLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), init_(other.init_), fini_(other.fini_) {}

ProviderLibrary& ProviderLibrary::operator=(ProviderLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(init_, other.init_);
  std::swap(fini_, other.fini_);
  return *this;
}

ProviderLibrary::~ProviderLibrary() {
  if (handle_) ::dlclose(handle_);
}

ProviderLibrary ProviderLibrary::load(const std::string& name, Search search, std::string& why) {
  const std::string beside = beside_us(name);
  ProviderLibrary library;
  if (beside.empty() || search == Search::kLoaderFirst) library.handle_ = open_library(name);
  if (!library.handle_ && !beside.empty()) library.handle_ = open_library(beside);
  if (!library.handle_) {
    why = last_error();
    return library;
  }
  library.init_ = reinterpret_cast<DAT_PROVIDER_INIT_FUNC>(::dlsym(library.handle_, DAT_PROVIDER_INIT_FUNC_STR));
  if (!library.init_) {
    why = last_error();
    return {};
  }
  library.fini_ = reinterpret_cast<DAT_PROVIDER_FINI_FUNC>(::dlsym(library.handle_, DAT_PROVIDER_FINI_FUNC_STR));
  return library;
}

}  // namespace dapple::registry
