// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that the registry calls when it loads and unloads us: one provider table for each entry of dat.conf.
#include "udapl/functions/provider.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <string>

#include "ibverbs-glue/explains.hpp"
#include "udapl/common/fork_token.hpp"
#include "udapl/core/connection/connection_manager.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/log.hpp"
#include "udapl/core/refusal.hpp"
#include "udapl/functions/convert.hpp"
#include "udapl/functions/explained.hpp"

namespace dapple::udapl::functions {
namespace {

struct Entry {
  DAT_PROVIDER table;  // must be first: info_of() finds the entry by it
  DAT_PROVIDER_INFO info;
  std::string params;
  uint64_t generation = 0;  // grows from one initialisation to the next; 0 while the provider is finished
};

bool equal(const DAT_PROVIDER_INFO& a, const DAT_PROVIDER_INFO& b) {
  return std::strcmp(a.ia_name, b.ia_name) == 0 && a.dapl_version_major == b.dapl_version_major &&
         a.dapl_version_minor == b.dapl_version_minor && a.is_thread_safe == b.is_thread_safe;
}

// ia_open of both versions. It has no argument for thread safety, so each table has the function that it needs. 1.2
// tells whether the consumer is aware of relaxed ordering. Verbs can switch that off for a region, so any consumer can
// be served.
template <class Pointer>
struct Open;
template <class... Aware>
struct Open<DAT_RETURN (*)(DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*, Aware...)> {
  template <bool kThreadSafe>
  static DAT_RETURN call(DAT_NAME_PTR name, DAT_COUNT async_qlen, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia_handle,
                         Aware... aware) {
    unsigned failures = 0;
    // It looks for the plug-in, and in a child of fork() the loader's lock may belong to a thread that is not there.
    if (explains()) {
      dappledv_refusal(&failures);
      forget_refusal();
    }
    const DAT_RETURN result = open_ia(name, async_qlen, async_evd, ia_handle,
                                      {.thread_safe = kThreadSafe, .relaxed_ordering = (... || (aware != DAT_FALSE))});
    const auto type = static_cast<DAT_RETURN_TYPE>(DAT_GET_TYPE(result));
    // The other errors have lines of their own.
    if (explains() && (type == DAT_INVALID_PARAMETER || type == DAT_INVALID_HANDLE || *kept_refusal() != 0)) {
      explain("dat_ia_open", "name, async_event_qlen, async_event_handle, ia_handle",
              {ArgumentValue::of(name), ArgumentValue::of(async_qlen), ArgumentValue::of(async_evd),
               ArgumentValue::of(ia_handle)},
              result, failures);
    }
    return result;
  }
};

// An entry stays after its provider is finished, because an object of an IA that was never closed still dispatches
// through it.
class Entries {
 public:
  Entry& add(const DAT_PROVIDER_INFO& info, const char* params) {
    std::lock_guard guard(mutex_);
    auto found = std::find_if(list_.begin(), list_.end(), [&](const Entry& entry) { return equal(entry.info, info); });
    Entry& entry = found == list_.end() ? list_.emplace_back() : *found;
    entry.info = info;
    entry.params = params ? params : "";
    entry.generation = ++generations_;
    entry.table = make_table(entry.info.ia_name, info.is_thread_safe ? &Open<DAT_IA_OPEN_FUNC>::call<true>
                                                                     : &Open<DAT_IA_OPEN_FUNC>::call<false>);
    return entry;
  }

  // For forks, which do not wait for the lock.
  std::mutex& mutex() { return mutex_; }
  // Read without the lock, in a child that has one thread: entries are only ever added.
  template <class Visit>
  void for_each_table(Visit visit) {
    for (Entry& entry : list_) visit(entry.table);
  }

  // The matching entry that was initialised last, unless it is finished.
  template <class Match>
  Entry* find(Match match) {
    std::lock_guard guard(mutex_);
    return last(match);
  }
  // A copy, because the name may be initialised again at any time.
  std::optional<std::string> params_of(const char* name) {
    std::lock_guard guard(mutex_);
    const Entry* found = last([name](const Entry& entry) { return std::strcmp(entry.info.ia_name, name) == 0; });
    return found ? std::optional(found->params) : std::nullopt;
  }
  void finish(Entry& entry) {
    std::lock_guard guard(mutex_);
    entry.generation = 0;
  }

 private:
  template <class Match>
  Entry* last(Match match) {
    Entry* found = nullptr;
    for (Entry& entry : list_) {
      if (entry.generation > (found ? found->generation : 0) && match(entry)) found = &entry;
    }
    return found;
  }

  std::mutex mutex_;
  std::list<Entry> list_;
  uint64_t generations_ = 0;
};

Entries& entries() {
  static Entries& instance = *new Entries;  // handles outlive static destruction
  return instance;
}

// ---- Forks ----
//
// A child has none of our threads, and a close in it would destroy the parent's objects, because parent and child share
// the descriptors that own them in the kernel. So no call works in the child of a process with an open IA. The child of
// any other process may open an IA, unless the fork came during a call that may have left our state unfinished.

// ia_open of both versions in such a child.
template <class Pointer>
struct RefusedOpen;
template <class... Arguments>
struct RefusedOpen<DAT_RETURN (*)(Arguments...)> {
  static DAT_RETURN open(Arguments...) {
    log_error(
        "the parent of this process had an open IA or a call in progress at the fork: without the parent's threads "
        "and queues no IA can be opened here");
    return error(DAT_INVALID_STATE);
  }
};

void leave_behind(DAT_PROVIDER& table) {
  refuse_everything(table);
  table.ia_open_func = RefusedOpen<DAT_IA_OPEN_FUNC>::open;
}

struct Fork {
  common::ForkToken token;
  bool has_control = false;
  bool has_entries = false;
  bool is_left_behind = false;  // in a child
};
constinit Fork the_fork;

void before_fork() {
  if (!the_fork.token.take()) return;
  the_fork.has_control = control_mutex().try_lock();
  the_fork.has_entries = entries().mutex().try_lock();
}

void unlock_after_fork() {
  if (the_fork.has_entries) entries().mutex().unlock();
  if (the_fork.has_control) control_mutex().unlock();
}

void after_fork_in_parent() {
  if (the_fork.token.is_mine()) unlock_after_fork();
  the_fork.token.give_back();
}

void after_fork_in_child() {
  const bool is_mine = the_fork.token.is_mine();
  const bool has_all = is_mine && the_fork.has_control && the_fork.has_entries;
  if (is_mine) unlock_after_fork();
  if (!has_all || ConnectionManager::in_use()) {
    the_fork.is_left_behind = true;
    entries().for_each_table(leave_behind);
  }
  the_fork.token.give_back();
}

void watch_forks() {
  static const int error = [] {
    (void)entries();
    return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }();
  if (error) throw std::bad_alloc();
}

// In such a child: an entry for a line of dat.conf that the parent had not opened.
DAT_RETURN add_refused_entry(const DAT_PROVIDER_INFO& info) {
  static DAT_PROVIDER table = make_table("left behind", nullptr);
  leave_behind(table);
  return dat_registry_add_provider(&table, const_cast<DAT_PROVIDER_INFO*>(&info));
}

// The meaning of *async_evd on entry (uDAPL 2.0 6.2.1.1).
DAT_RETURN set_async_evd(Ia& ia, DAT_COUNT qlen, DAT_EVD_HANDLE* async_evd) {
  if (*async_evd == DAT_HANDLE_NULL) {
    if (!within(ia, "an EVD's length", static_cast<uint64_t>(qlen), static_cast<uint64_t>(ia.device().max_cqe))) {
      return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
    }
    auto created = ia.create_async_evd(static_cast<uint32_t>(qlen));
    if (created) *async_evd = ia.async_evd();
    return to_dat(created);
  }
  if (*async_evd == DAT_EVD_ASYNC_EXISTS || *async_evd == DAT_EVD_OUT_OF_SCOPE) return DAT_SUCCESS;
  Evd* evd = arena<Evd>().find(*async_evd);
  if (!evd || !evd->has(kEvdAsync)) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
  ia.borrow_async_evd(*evd);
  return DAT_SUCCESS;
}

}  // namespace

DAT_RETURN open_ia(const DAT_NAME_PTR name, DAT_COUNT async_qlen, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia_handle,
                   OpenOptions options) {
  if (!name) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
  if (!async_evd) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  if (!ia_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  if (*async_evd == DAT_HANDLE_NULL && async_qlen <= 0)
    return wrong_argument(DAT_INVALID_ARG2, "it must be above 0 for an EVD that the call makes");
  return guarded([&] {
    const Entry* entry = entries().find([&](const Entry& candidate) {
      return std::strcmp(candidate.info.ia_name, name) == 0 &&
             (candidate.info.is_thread_safe != DAT_FALSE) == options.thread_safe;
    });
    if (!entry) return error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
    auto ia = Ia::open({.name = entry->info.ia_name,
                        .params = entry->params,
                        .thread_safe = options.thread_safe,
                        .relaxed_ordering = options.relaxed_ordering,
                        .extensions = DAT_VERSION_MAJOR >= 2,
                        .tables = {&entry->table, &dead_table()}});
    if (!ia) return to_dat(ia.error());
    const DAT_RETURN status = guarded([&] { return set_async_evd(**ia, async_qlen, async_evd); });
    if (status != DAT_SUCCESS) {
      (void)Ia::close(**ia, true);
      return status;
    }
    *ia_handle = *ia;
    return kSuccess;
  });
}

const DAT_PROVIDER_INFO& info_of(const void* table) {
  return static_cast<const Entry*>(table)->info;
}

std::optional<std::string> params_of(const char* name) {
  return entries().params_of(name);
}

}  // namespace dapple::udapl::functions

using namespace dapple::udapl::functions;

extern "C" [[gnu::visibility("default")]] void dat_provider_init(const DAT_PROVIDER_INFO* info, const char* params) {
  if (!info) return;
  if (info->dapl_version_major != DAT_VERSION_MAJOR) {
    dapple::udapl::log_error("IA %s is of DAT %u.%u, and this provider is for %d.%d", info->ia_name,
                             info->dapl_version_major, info->dapl_version_minor, DAT_VERSION_MAJOR, DAT_VERSION_MINOR);
    return;
  }
  (void)guarded([&] {
    if (the_fork.is_left_behind) return add_refused_entry(*info);
    watch_forks();
    auto& entry = entries().add(*info, params);
    const DAT_RETURN status = dat_registry_add_provider(&entry.table, &entry.info);
    if (status != DAT_SUCCESS) {
      dapple::udapl::log_error("the registry refuses provider %s: 0x%x", info->ia_name, status);
    }
    return status;
  });
}

extern "C" [[gnu::visibility("default")]] void dat_provider_fini(const DAT_PROVIDER_INFO* info) {
  if (!info || the_fork.is_left_behind) return;
  (void)guarded([&] {
    auto* entry = entries().find([&](const auto& candidate) { return equal(candidate.info, *info); });
    if (entry && dat_registry_remove_provider(&entry->table, &entry->info) == DAT_SUCCESS) entries().finish(*entry);
    return kSuccess;
  });
}
