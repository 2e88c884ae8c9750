// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>

#include "udapl/registry/common/dat.hpp"

namespace dapple::registry {

/// A provider's shared library, loaded, and its entry points. Move-only; the destructor unloads it. Confined: the
/// caller holds the registry's loading lock around every call.
class ProviderLibrary {
 public:
  ProviderLibrary() = default;
  ProviderLibrary(ProviderLibrary&& other) noexcept;
  ProviderLibrary& operator=(ProviderLibrary&& other) noexcept;
  ~ProviderLibrary();

  /// The loader and the registry's own folder are searched for a name without a path: the RUNPATH of a program in a
  /// private prefix finds the registry, but does not apply to libraries that the registry loads. kOwnFolderFirst is for
  /// our own provider, which has the same name as the original's: we want the one beside us.
  enum class Search { kLoaderFirst, kOwnFolderFirst };

  /// Loads `name`. On failure the library is empty and `why` holds the loader's message.
  static ProviderLibrary load(const std::string& name, Search search, std::string& why);

  explicit operator bool() const { return handle_ != nullptr; }

  /// dat_provider_init() and dat_provider_fini() of the library.
  void init(const DAT_PROVIDER_INFO& info, const char* instance_data) const { init_(&info, instance_data); }
  void fini(const DAT_PROVIDER_INFO& info) const {
    if (fini_) fini_(&info);
  }

 private:
  void* handle_ = nullptr;
  DAT_PROVIDER_INIT_FUNC init_ = nullptr;
  DAT_PROVIDER_FINI_FUNC fini_ = nullptr;
};

}  // namespace dapple::registry
