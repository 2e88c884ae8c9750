// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/registry.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "udapl/registry/log.hpp"
#include "udapl/registry/never_destroyed.hpp"
#include "udapl/registry/status.hpp"

namespace dapple::dat {
namespace {

constexpr ApiMajors kServedMajors{2};

bool same(const DAT_PROVIDER_INFO& a, const DAT_PROVIDER_INFO& b) {
  return std::strcmp(a.ia_name, b.ia_name) == 0 && a.dapl_version_major == b.dapl_version_major &&
         a.dapl_version_minor == b.dapl_version_minor &&
         (a.is_thread_safe != DAT_FALSE) == (b.is_thread_safe != DAT_FALSE);
}

DAT_PROVIDER_INFO info_of(const ConfEntry& entry) {
  DAT_PROVIDER_INFO info{};
  entry.ia_name.copy(info.ia_name, sizeof info.ia_name - 1);
  info.dapl_version_major = entry.api.major;
  info.dapl_version_minor = entry.api.minor;
  info.is_thread_safe = entry.is_thread_safe ? DAT_TRUE : DAT_FALSE;
  return info;
}

/// When the program exits, or unloads us. Everything stays usable for those who exit after us.
__attribute__((destructor)) void give_back_memory() {
  registry().clear();
}

}  // namespace

Registry& registry() {
  static NeverDestroyed<Registry> only;
  return only.value;
}

DAT_RETURN Registry::add(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info) {
  const std::lock_guard lock(mutex_);
  if (find_registered(info)) return error(DAT_PROVIDER_ALREADY_REGISTERED);
  registered_.push_back({&provider, info});
  return DAT_SUCCESS;
}

DAT_RETURN Registry::remove(const DAT_PROVIDER_INFO& info) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(registered_.begin(), registered_.end(), [&](const Registered& r) { return same(r.info, info); });
  if (found == registered_.end()) return error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
  if (found->users > 0) return error(DAT_PROVIDER_IN_USE);
  registered_.erase(found);
  return DAT_SUCCESS;
}

DAT_RETURN Registry::acquire(const char* name, Version version, bool thread_safe, ProviderUse& use) {
  const std::lock_guard loading(loading_mutex_);
  load_configuration_once();
  DAT_PROVIDER_INFO key{};
  if (const DAT_RETURN status = choose(name, version, thread_safe, key)) return status;

  Listed* const listed = load_first_of_chain(key);
  {
    const std::lock_guard lock(mutex_);
    if (Registered* found = find_registered(key)) {
      found->users++;
      use = ProviderUse{found->provider, key, listed};
      return DAT_SUCCESS;
    }
  }
  if (listed) {
    log(LogType::kError, conf_path_ + ":" + std::to_string(listed->conf.line) + ": " + quoted(listed->conf.library) +
                             " was loaded but registers no provider for " + quoted(name));
    drop(*listed);
  }
  return error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

void Registry::release(const ProviderUse& use) {
  const std::lock_guard loading(loading_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (Registered* found = find_registered(use.info)) found->users--;
  }
  if (use.listed) drop(*use.listed);
}

bool Registry::find_use(const DAT_PROVIDER* provider, ProviderUse& use) {
  const std::lock_guard loading(loading_mutex_);
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(registered_.begin(), registered_.end(),
                                  [&](const Registered& r) { return r.provider == provider && r.users > 0; });
  if (found == registered_.end()) return false;
  const auto line = std::find_if(listed_.begin(), listed_.end(),
                                 [&](const Listed& l) { return l.users > 0 && same(l.info, found->info); });
  use = ProviderUse{provider, found->info, line == listed_.end() ? nullptr : &*line};
  return true;
}

std::vector<DAT_PROVIDER_INFO> Registry::list() {
  const std::lock_guard loading(loading_mutex_);
  load_configuration_once();
  std::vector<DAT_PROVIDER_INFO> infos;
  const auto add_once = [&](const DAT_PROVIDER_INFO& info) {
    if (std::none_of(infos.begin(), infos.end(), [&](const DAT_PROVIDER_INFO& other) { return same(info, other); }))
      infos.push_back(info);
  };
  for (const Listed& listed : listed_) add_once(listed.info);
  const std::lock_guard lock(mutex_);
  for (const Registered& registered : registered_) add_once(registered.info);
  return infos;
}

void Registry::clear() {
  // A thread that is still in here when the program exits must not be waited for.
  const std::unique_lock loading(loading_mutex_, std::try_to_lock);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!loading || !lock) return;
  if (std::any_of(listed_.begin(), listed_.end(), [](const Listed& listed) { return listed.users > 0; })) return;
  std::vector<Listed>().swap(listed_);
  std::string().swap(conf_path_);
  std::vector<Registered>().swap(registered_);
  configured_ = false;
}

void Registry::load_configuration_once() {
  if (configured_) return;
  // A second source of entries, for when no file is found, belongs here.
  Configuration configuration = load_configuration(default_search(), kServedMajors);
  conf_path_ = std::move(configuration.path);
  std::vector<Listed> listed;  // all of it or, when memory is short, nothing
  for (ConfEntry& entry : configuration.entries)
    if (entry.is_default) listed.push_back({std::move(entry), {}, {}});
  for (Listed& each : listed) each.info = info_of(each.conf);
  listed_ = std::move(listed);
  configured_ = true;
}

DAT_RETURN Registry::choose(const char* name, Version version, bool thread_safe, DAT_PROVIDER_INFO& chosen) {
  std::vector<DAT_PROVIDER_INFO> candidates = list();
  const auto keep = [&](auto&& matches) {
    std::erase_if(candidates, [&](const DAT_PROVIDER_INFO& info) { return !matches(info); });
    return !candidates.empty();
  };
  if (!keep([&](const DAT_PROVIDER_INFO& info) { return std::strcmp(info.ia_name, name) == 0; }))
    return error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
  if (!keep([&](const DAT_PROVIDER_INFO& info) { return info.dapl_version_major == version.major; }))
    return error(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
  if (!keep([&](const DAT_PROVIDER_INFO& info) { return info.dapl_version_minor >= version.minor; }))
    return error(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND);
  if (!keep([&](const DAT_PROVIDER_INFO& info) { return (info.is_thread_safe != DAT_FALSE) == thread_safe; }))
    return error(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND);
  chosen = *std::min_element(candidates.begin(), candidates.end(),
                             [](const auto& a, const auto& b) { return a.dapl_version_minor < b.dapl_version_minor; });
  return DAT_SUCCESS;
}

/// Counts a user of the line that serves `key`, loading the first line that can be loaded. NULL if none can, or if the
/// program itself has registered the provider.
Listed* Registry::load_first_of_chain(const DAT_PROVIDER_INFO& key) {
  for (Listed& listed : listed_)
    if (listed.users > 0 && same(listed.info, key)) {
      listed.users++;
      return &listed;
    }
  {
    const std::lock_guard lock(mutex_);
    if (find_registered(key)) return nullptr;
  }
  std::vector<std::pair<Listed*, std::string>> failures;
  for (Listed& listed : listed_) {
    if (!same(listed.info, key)) continue;
    std::string why;
    listed.library = ProviderLibrary::load(listed.conf.library, why);
    if (listed.library) {
      listed.users = 1;
      listed.library.init(listed.info, listed.conf.ia_params.c_str());
      return &listed;
    }
    failures.emplace_back(&listed, std::move(why));
  }
  for (auto& [listed, why] : failures) {
    if (std::exchange(listed->failure_reported, true)) continue;
    log(LogType::kError, conf_path_ + ":" + std::to_string(listed->conf.line) + ": cannot load the provider " +
                             quoted(listed->conf.library) + " of " + quoted(listed->conf.ia_name) + ": " + why);
  }
  return nullptr;
}

/// Uncounts a user of a line.
void Registry::drop(Listed& listed) {
  if (--listed.users > 0) return;
  listed.library.fini(listed.info);
  // A provider that did not remove itself must not be found once its code is gone.
  if (remove(listed.info) == DAT_SUCCESS)
    log(LogType::kDynamicRegistry,
        quoted(listed.conf.library) + " left " + quoted(listed.conf.ia_name) + " registered");
  listed.library = ProviderLibrary();
}

Registry::Registered* Registry::find_registered(const DAT_PROVIDER_INFO& key) {
  const auto found =
      std::find_if(registered_.begin(), registered_.end(), [&](const Registered& r) { return same(r.info, key); });
  return found == registered_.end() ? nullptr : &*found;
}

}  // namespace dapple::dat
