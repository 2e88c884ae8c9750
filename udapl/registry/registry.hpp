// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "udapl/registry/common/dat.hpp"
#include "udapl/registry/configuration/automatic_entries.hpp"
#include "udapl/registry/configuration/conf_file.hpp"
#include "udapl/registry/provider_library.hpp"

namespace dapple::registry {

/// A line of dat.conf, or an automatic entry that was opened, and its library while it has users.
struct Listed {
  ConfEntry conf;
  DAT_PROVIDER_INFO info;
  ProviderLibrary library;
  int users = 0;
  bool failure_reported = false;
};

/// A counted use of a provider, from Registry::acquire() to release(). During that time the provider stays registered
/// and loaded.
struct ProviderUse {
  const DAT_PROVIDER* provider = nullptr;
  DAT_PROVIDER_INFO info{};
  Listed* listed = nullptr;  ///< NULL for a provider that the program has registered itself
};

/// All entries that can be opened: the lines of dat.conf (the static registry), an automatic entry for each port of an
/// RDMA device, and the providers that registered themselves (the dynamic registry). Internally locked, any thread.
/// Providers' init and fini run under the loading lock: they may register and remove providers, and even open IAs, but
/// must not wait for another thread that does. Throws only bad_alloc.
///
/// A fork waits for none of the locks. If the child lacks one, of the registry or of the table of IAs, it gives
/// everything up and refuses each call.
class Registry {
 public:
  /// DAT_PROVIDER_ALREADY_REGISTERED if the info is already registered.
  DAT_RETURN add(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info);
  /// DAT_PROVIDER_IN_USE, DAT_PROVIDER_NOT_FOUND.
  DAT_RETURN remove(const DAT_PROVIDER_INFO& info);

  /// Finds the provider for a request, and loads it if necessary: the exact version, otherwise the smallest greater
  /// minor version. The subtype of DAT_PROVIDER_NOT_FOUND is the first part of the request, in the order name, major,
  /// minor, thread safety, that leaves no candidate; it is NAME also if a candidate's library does not load.
  /// DAT_INVALID_STATE after a fork gave up. Blocks on the loader. The first request of a process for a name that
  /// nothing has is logged, with the names that exist.
  DAT_RETURN acquire(const char* name, Version version, bool thread_safe, ProviderUse& use);
  /// The last release of a line calls fini and unloads its library. After a fork gave up, the library stays.
  void release(const ProviderUse& use);
  /// The use that belongs to a provider's table, for callers that kept only the table. Empty after a fork gave up.
  bool find_use(const DAT_PROVIDER* provider, ProviderUse& use);

  /// True if the table belongs to a registered provider.
  bool has(const DAT_PROVIDER* provider);

  /// The listed entries, each name + version + thread safety once, in this order: the lines of dat.conf, except those
  /// for ports that cannot be used now; the usable ports that no line names; those excepted lines; the others.
  /// DAT_INVALID_STATE after a fork gave up. Blocks on sysfs.
  DAT_RETURN list(std::vector<DAT_PROVIDER_INFO>& infos);

  /// Frees all memory if nothing is in use. The registry continues to work, and will read dat.conf again.
  void clear();

  /// Called around a fork; only one runs at a time.
  void before_fork();
  void after_fork_in_parent();
  /// True if the fork held the locks.
  bool after_fork_in_child();
  void give_up() { given_up_ = true; }
  bool is_given_up() const { return given_up_; }

 private:
  struct Registered {
    const DAT_PROVIDER* provider;
    DAT_PROVIDER_INFO info;
    int users = 0;
  };

  /// The order of the list: entries that cannot open on this machine come last.
  enum class Origin { kLine, kAutomatic, kUnusableLine, kRegistered };

  /// An entry that can be opened. An automatic entry that was not opened yet has no Listed, only the entry here.
  struct Offer {
    DAT_PROVIDER_INFO info;
    bool is_listed = true;
    Origin origin = Origin::kLine;
    ConfEntry automatic;
  };

  void load_configuration_once();
  std::vector<Offer> offers();
  void remember_automatic(ConfEntry entry, const DAT_PROVIDER_INFO& key);
  std::string place_of(const Listed& listed) const;
  Listed* load_first_of_chain(const DAT_PROVIDER_INFO& key);
  void drop(Listed& listed);
  void tell_names(const char* missing) noexcept;
  DAT_RETURN choose(const char* name, Version version, bool thread_safe, Offer& chosen);
  Registered* find_registered(const DAT_PROVIDER_INFO& key);

  std::recursive_mutex loading_mutex_;  // guards listed_ and the libraries; taken before mutex_
  std::mutex mutex_;                    // guards registered_; no foreign code runs under it
  bool configured_ = false;
  bool names_told_ = false;
  std::vector<ConfEntry> lines_;  // the entries that can be opened
  std::list<Listed> listed_;      // only grows once configured, because pointers into it are kept; uses no memory while
                                  // empty
  std::string conf_path_;
  std::vector<Registered> registered_;
  bool fork_has_loading_ = false;
  bool fork_has_mutex_ = false;
  bool given_up_ = false;  // constant while there are threads; afterwards nothing touches the locks and the data they
                           // guard
};

/// This process's registry. It is cleared but never destroyed, because exit handlers may still call it.
Registry& registry();

}  // namespace dapple::registry
