// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/registry.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "udapl/registry/common/log.hpp"
#include "udapl/registry/common/never_destroyed.hpp"
#include "udapl/registry/status.hpp"
#include "udapl/registry/version.hpp"

namespace dapple::registry {
namespace {

constexpr std::size_t kMaxTold = 8;

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

/// Runs when the program exits, or unloads us. Everything stays usable for handlers that run later.
__attribute__((destructor)) void give_back_memory() {
  registry().clear();
}

}  // namespace

Registry& registry() {
  static NeverDestroyed<Registry> only;
  return only.value;
}

DAT_RETURN Registry::add(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info) {
  if (given_up_) return error(DAT_INVALID_STATE);
  const std::lock_guard lock(mutex_);
  if (find_registered(info)) return error(DAT_PROVIDER_ALREADY_REGISTERED);
  registered_.push_back({&provider, info});
  return DAT_SUCCESS;
}

DAT_RETURN Registry::remove(const DAT_PROVIDER_INFO& info) {
  if (given_up_) return error(DAT_INVALID_STATE);
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(registered_.begin(), registered_.end(), [&](const Registered& r) { return same(r.info, info); });
  if (found == registered_.end()) return error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
  if (found->users > 0) return error(DAT_PROVIDER_IN_USE);
  registered_.erase(found);
  return DAT_SUCCESS;
}

DAT_RETURN Registry::acquire(const char* name, Version version, bool thread_safe, ProviderUse& use) {
  if (given_up_) {
    log(LogType::kError, "this process was forked while a call of DAT was in progress: DAT does not work here");
    return error(DAT_INVALID_STATE);
  }
  const std::lock_guard loading(loading_mutex_);
  load_configuration_once();
  Offer chosen;
  if (const DAT_RETURN status = choose(name, version, thread_safe, chosen)) {
    if (DAT_GET_SUBTYPE(status) == DAT_NAME_NOT_REGISTERED) tell_names(name);
    return status;
  }
  const DAT_PROVIDER_INFO& key = chosen.info;
  if (!chosen.automatic.library.empty()) remember_automatic(std::move(chosen.automatic), key);

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
    log(LogType::kError,
        place_of(*listed) + quoted(listed->conf.library) + " was loaded but registers no provider for " + quoted(name));
    drop(*listed);
  }
  return error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

void Registry::release(const ProviderUse& use) {
  if (given_up_) return;
  const std::lock_guard loading(loading_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (Registered* found = find_registered(use.info)) found->users--;
  }
  if (use.listed) drop(*use.listed);
}

bool Registry::find_use(const DAT_PROVIDER* provider, ProviderUse& use) {
  if (given_up_) return false;
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

bool Registry::has(const DAT_PROVIDER* provider) {
  if (given_up_) return false;
  const std::lock_guard lock(mutex_);
  return std::any_of(registered_.begin(), registered_.end(),
                     [&](const Registered& r) { return r.provider == provider; });
}

DAT_RETURN Registry::list(std::vector<DAT_PROVIDER_INFO>& infos) {
  if (given_up_) return error(DAT_INVALID_STATE);
  const std::lock_guard loading(loading_mutex_);
  const std::vector<Offer> offered = offers();
  for (const Origin origin : {Origin::kLine, Origin::kAutomatic, Origin::kUnusableLine, Origin::kRegistered}) {
    for (const Offer& offer : offered) {
      if (offer.is_listed && offer.origin == origin) infos.push_back(offer.info);
    }
  }
  return DAT_SUCCESS;
}

std::vector<Registry::Offer> Registry::offers() {
  load_configuration_once();
  std::vector<Offer> offers;
  const auto add_once = [&](Offer offer) {
    if (std::none_of(offers.begin(), offers.end(), [&](const Offer& other) { return same(offer.info, other.info); }))
      offers.push_back(std::move(offer));
  };
  const std::vector<RdmaPort> ports = rdma_ports();
  for (const ConfEntry& line : lines_)
    add_once({info_of(line), true, names_no_usable_port(line, ports) ? Origin::kUnusableLine : Origin::kLine, {}});
  // An automatic entry comes before its own provider, which registers itself while it is open, and may be unlisted.
  for (AutomaticEntry& made : automatic_entries(ports, lines_, automatic_style()))
    add_once({info_of(made.entry), made.is_listed, Origin::kAutomatic, std::move(made.entry)});
  const std::lock_guard lock(mutex_);
  for (const Registered& registered : registered_) add_once({registered.info, true, Origin::kRegistered, {}});
  return offers;
}

void Registry::clear() {
  if (given_up_) return;
  // The destructor must not wait for a thread that is still inside when the program exits.
  const std::unique_lock loading(loading_mutex_, std::try_to_lock);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!loading || !lock) return;
  const auto in_use = [](const auto& entry) { return entry.users > 0; };
  if (std::any_of(listed_.begin(), listed_.end(), in_use)) return;
  if (std::any_of(registered_.begin(), registered_.end(), in_use)) return;
  std::vector<ConfEntry>().swap(lines_);
  std::list<Listed>().swap(listed_);
  std::string().swap(conf_path_);
  std::vector<Registered>().swap(registered_);
  configured_ = false;
}

void Registry::load_configuration_once() {
  if (configured_) return;
  Configuration configuration = load_configuration(default_search(further_conf_paths()), kServedMajors);
  conf_path_ = std::move(configuration.path);
  std::vector<ConfEntry> lines = std::move(configuration.entries);
  std::erase_if(lines, [](const ConfEntry& line) { return !line.is_default; });
  std::list<Listed> listed;  // all of it or, when memory is short, nothing
  for (const ConfEntry& line : lines) listed.push_back({line, info_of(line), {}});
  lines_ = std::move(lines);
  listed_ = std::move(listed);
  configured_ = true;
}

/// Keeps the entry of a port that is about to be opened; the port may have moved to another network device since the
/// last time.
void Registry::remember_automatic(ConfEntry entry, const DAT_PROVIDER_INFO& key) {
  const auto known =
      std::find_if(listed_.begin(), listed_.end(), [&](const Listed& listed) { return same(listed.info, key); });
  if (known == listed_.end())
    listed_.push_back({std::move(entry), key, {}});
  else if (known->users == 0)
    known->conf = std::move(entry);
}

/// The prefix of a message about the entry.
std::string Registry::place_of(const Listed& listed) const {
  return listed.conf.line ? conf_path_ + ":" + std::to_string(listed.conf.line) + ": " : "automatic entry: ";
}

/// Once in a process, because MPIs try many names in turn. The program only sees the status, so a lack of memory must
/// not change it.
void Registry::tell_names(const char* missing) noexcept {
  if (std::exchange(names_told_, true) || !log_wants(LogType::kError)) return;
  try {
    std::vector<std::string> names;
    for (const Offer& offer : offers()) {
      if (!offer.is_listed || offer.origin == Origin::kUnusableLine) continue;
      if (std::find(names.begin(), names.end(), offer.info.ia_name) == names.end())
        names.emplace_back(offer.info.ia_name);
    }
    std::string line = "no provider for " + quoted(missing);
    if (names.empty())
      line += "; no name exists here, because no RDMA port is usable; dapple-run PROGRAM gives it software devices";
    for (std::size_t i = 0; i < names.size() && i < kMaxTold; ++i)
      line += (i == 0 ? "; the names here are " : ", ") + quoted(names[i]);
    if (names.size() > kMaxTold) line += " and " + std::to_string(names.size() - kMaxTold) + " more";
    log(LogType::kError, line);
  } catch (const std::bad_alloc&) {
  }
}

DAT_RETURN Registry::choose(const char* name, Version version, bool thread_safe, Offer& chosen) {
  std::vector<Offer> candidates = offers();
  const auto keep = [&](auto&& matches) {
    std::erase_if(candidates, [&](const Offer& offer) { return !matches(offer.info); });
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
  chosen = std::move(*std::min_element(candidates.begin(), candidates.end(), [](const Offer& a, const Offer& b) {
    return a.info.dapl_version_minor < b.info.dapl_version_minor;
  }));
  return DAT_SUCCESS;
}

/// Counts a user of the line that serves `key`, and loads the first line that can be loaded. NULL if none can, or if
/// the program itself has registered the provider.
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
    listed.library = ProviderLibrary::load(
        listed.conf.library,
        listed.conf.line ? ProviderLibrary::Search::kLoaderFirst : ProviderLibrary::Search::kOwnFolderFirst, why);
    if (listed.library) {
      listed.users = 1;
      listed.library.init(listed.info, listed.conf.ia_params.c_str());
      return &listed;
    }
    failures.emplace_back(&listed, std::move(why));
  }
  for (auto& [listed, why] : failures) {
    if (std::exchange(listed->failure_reported, true)) continue;
    log(LogType::kError, place_of(*listed) + "cannot load the provider " + quoted(listed->conf.library) + " of " +
                             quoted(listed->conf.ia_name) + ": " + why);
  }
  return nullptr;
}

/// Uncounts a user of a line.
void Registry::drop(Listed& listed) {
  if (--listed.users > 0) return;
  listed.library.fini(listed.info);
  // If a provider did not remove itself, remove it: it must not be found after its code is unloaded.
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

}  // namespace dapple::registry
