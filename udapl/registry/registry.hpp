// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "udapl/registry/automatic_entries.hpp"
#include "udapl/registry/conf_file.hpp"
#include "udapl/registry/dat.hpp"
#include "udapl/registry/provider_library.hpp"

namespace dapple::dat {

/// A line of dat.conf on offer, or an automatic entry that was opened, and its library while somebody uses it.
struct Listed {
  ConfEntry conf;
  DAT_PROVIDER_INFO info;
  ProviderLibrary library;
  int users = 0;
  bool failure_reported = false;
};

/// A counted use of a provider, from Registry::acquire() to release(): meanwhile it stays registered and loaded.
struct ProviderUse {
  const DAT_PROVIDER* provider = nullptr;
  DAT_PROVIDER_INFO info{};
  Listed* listed = nullptr;  ///< NULL for a provider that the program registered itself
};

/// Who can be opened: the lines of dat.conf (the static registry), each port of an RDMA device by an automatic entry,
/// and the providers that registered themselves (the dynamic one). Internally locked, any thread. Providers' init and
/// fini run under the loading lock, so they may register and remove providers, and even open IAs, but not wait for
/// another thread that does. Throws bad_alloc only.
///
/// A fork waits for none of the locks. In a child that lacks one, of the registry or of the table of IAs, everything is
/// given up: there each call is refused.
class Registry {
 public:
  /// DAT_PROVIDER_ALREADY_REGISTERED for an info that is there.
  DAT_RETURN add(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info);
  /// DAT_PROVIDER_IN_USE, DAT_PROVIDER_NOT_FOUND.
  DAT_RETURN remove(const DAT_PROVIDER_INFO& info);

  /// Finds the provider for a request, loading it if need be: the exact version, else the smallest greater minor. The
  /// subtype of DAT_PROVIDER_NOT_FOUND is the first part of the request, in the order name, major, minor, thread
  /// safety, that leaves no candidate; NAME also if a candidate's library does not load. DAT_INVALID_STATE where a fork
  /// has given up. Blocks on the loader.
  DAT_RETURN acquire(const char* name, Version version, bool thread_safe, ProviderUse& use);
  /// The last release of a line calls fini and unloads its library, which stays where a fork has given up.
  void release(const ProviderUse& use);
  /// The use that belongs to a provider's table, acquired earlier by somebody who kept only the table. None where a
  /// fork has given up.
  bool find_use(const DAT_PROVIDER* provider, ProviderUse& use);

  /// Whether the table is that of a registered provider.
  bool has(const DAT_PROVIDER* provider);

  /// The listed part of all on offer, each name + version + thread safety once: the lines of dat.conf in its order, but
  /// those for ports that cannot be used now; the ports that can and that no line names; those lines; the others.
  /// DAT_INVALID_STATE where a fork has given up. Blocks on sysfs.
  DAT_RETURN list(std::vector<DAT_PROVIDER_INFO>& infos);

  /// Gives back all memory, if nothing is in use. The registry goes on working, and will read dat.conf again.
  void clear();

  /// Around a fork, of which there is one at a time.
  void before_fork();
  void after_fork_in_parent();
  /// True if the fork had the locks.
  bool after_fork_in_child();
  void give_up() { given_up_ = true; }
  bool is_given_up() const { return given_up_; }

 private:
  struct Registered {
    const DAT_PROVIDER* provider;
    DAT_PROVIDER_INFO info;
    int users = 0;
  };

  /// The order of the list: what cannot open on this machine is behind what can.
  enum class Place { kLine, kAutomatic, kUnusableLine, kRegistered };

  /// What can be opened. An automatic one that was not opened yet has no Listed: its entry is here.
  struct Offer {
    DAT_PROVIDER_INFO info;
    bool is_listed = true;
    Place place = Place::kLine;
    ConfEntry automatic;
  };

  void load_configuration_once();
  std::vector<Offer> offers();
  void remember_automatic(ConfEntry entry, const DAT_PROVIDER_INFO& key);
  std::string place_of(const Listed& listed) const;
  Listed* load_first_of_chain(const DAT_PROVIDER_INFO& key);
  void drop(Listed& listed);
  DAT_RETURN choose(const char* name, Version version, bool thread_safe, Offer& chosen);
  Registered* find_registered(const DAT_PROVIDER_INFO& key);

  std::recursive_mutex loading_mutex_;  // of listed_ and of the libraries; taken before mutex_
  std::mutex mutex_;                    // of registered_; no foreign code runs under it
  bool configured_ = false;
  std::vector<ConfEntry> lines_;  // those on offer
  std::list<Listed> listed_;      // only grows once configured: pointers into it are kept; empty, it holds no memory
  std::string conf_path_;
  std::vector<Registered> registered_;
  bool fork_has_loading_ = false;
  bool fork_has_mutex_ = false;
  bool given_up_ = false;  // constant while there are threads; then nothing touches the locks and what they guard
};

/// The one of this process. It is never destroyed, because exit handlers may still call, but cleared.
Registry& registry();

}  // namespace dapple::dat
