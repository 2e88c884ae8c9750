// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/udapl-registry/fake_provider.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace {

FakeLog& log_of(DAT_HANDLE handle) {
  return *static_cast<FakeObject*>(handle)->log;
}

/// A function for each slot that records its arguments.
template <auto kSlot>
struct Recorder;
template <class... Args, DAT_RETURN (*DAT_PROVIDER::*kSlot)(DAT_HANDLE, Args...)>
struct Recorder<kSlot> {
  static DAT_RETURN call(DAT_HANDLE handle, Args... args) {
    FakeLog& log = log_of(handle);
    log.slot = slot_offset<kSlot>();
    log.argument_count = 0;
    (record(log, args), ...);
    log.in_slot();
    return log.slot_result;
  }
};

/// The table of one dat_provider_init(). The registry must not open it under a name other than its own.
struct Provider {
  DAT_PROVIDER table;
  DAT_PROVIDER_INFO info;
  FakeLog* log;
  Provider* next;
};
Provider* providers;

Provider* find(const char* name) {
  for (Provider* provider = providers; provider; provider = provider->next)
    if (std::strcmp(provider->info.ia_name, name) == 0) return provider;
  return nullptr;
}

DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia_handle) {
  Provider* provider = find(name);
  if (!provider) return DAT_CLASS_ERROR | DAT_INTERNAL_ERROR;
  FakeLog& log = *provider->log;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  log.opens++;
  std::snprintf(log.opened_name, sizeof log.opened_name, "%s", name);
  if (log.open_result != DAT_SUCCESS) return log.open_result;
  *ia_handle = new FakeObject{&provider->table, provider->log};
  *async_evd = *ia_handle;  // any handle that ends with the IA
  return DAT_SUCCESS;
}

DAT_RETURN ia_close(DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS) {
  FakeLog& log = log_of(handle);
  __atomic_fetch_add(&log.closes, 1, __ATOMIC_RELAXED);
  if (log.close_result == DAT_SUCCESS) delete static_cast<FakeObject*>(handle);
  return log.close_result;
}

/// Like the original's, it does not touch outputs that the mask leaves out.
DAT_RETURN ia_query(DAT_IA_HANDLE handle, DAT_EVD_HANDLE* evd, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR* ia_attr,
                    DAT_PROVIDER_ATTR_MASK mask, DAT_PROVIDER_ATTR* attr) {
  if (ia_mask == DAT_IA_ALL && ia_attr && !attr) {
    ia_attr->extension_supported = log_of(handle).extension;
    return DAT_SUCCESS;
  }
  return Recorder<&DAT_PROVIDER::ia_query_func>::call(handle, evd, ia_mask, ia_attr, mask, attr);
}

DAT_RETURN ia_ha_related(DAT_IA_HANDLE handle, const DAT_NAME_PTR, DAT_BOOLEAN* answer) {
  FakeLog& log = log_of(handle);
  log.in_related();
  *answer = log_of(handle).related;
  return log.slot_result;
}

DAT_RETURN extendedop(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args) {
  if (op & DAT_OPEN_EXTENSION_BASE) {
    Provider* provider = find(static_cast<const char*>(handle));
    if (!provider) return DAT_CLASS_ERROR | DAT_INTERNAL_ERROR;
    provider->log->extension_op = op;
    if (provider->log->slot_result != DAT_SUCCESS) return provider->log->slot_result;
    *va_arg(args, DAT_HANDLE*) = new FakeObject{&provider->table, provider->log};
    return DAT_SUCCESS;
  }
  FakeLog& log = log_of(handle);
  log.extension_op = op;
  if (op & DAT_CLOSE_EXTENSION_BASE) {
    delete static_cast<FakeObject*>(handle);
    return DAT_SUCCESS;
  }
  log.extension_argument = va_arg(args, unsigned long long);
  return log.slot_result;
}

template <auto kSlot>
void set_slot(DAT_PROVIDER& table) {
  table.*kSlot = Recorder<kSlot>::call;
}
template <>
void set_slot<&DAT_PROVIDER::ia_open_func>(DAT_PROVIDER& table) {
  table.ia_open_func = ia_open;
}
template <>
void set_slot<&DAT_PROVIDER::handle_extendedop_func>(DAT_PROVIDER& table) {
  table.handle_extendedop_func = extendedop;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void dat_provider_init(const DAT_PROVIDER_INFO* info,
                                                                         const char* params) {
  FakeLog* log = nullptr;
  if (std::sscanf(params, "%p", reinterpret_cast<void**>(&log)) != 1) std::abort();
  log->variant = FAKE_VARIANT;
  log->inits++;
  log->info = *info;
  log->in_init();
  auto* provider = new Provider{{}, *info, log, providers};
  providers = provider;
#define DAT20_CONSTANT(name, value)
#define DAT20_POINTER(name, value)
#define DAT20_STRING(name, value)
#define DAT20_SIZE(type, size)
#define DAT20_MEMBER(type, member, offset, size)
#define DAT20_FUNCTION(name, args)
#define DAT20_SLOT(slot, args) set_slot<&DAT_PROVIDER::slot>(provider->table);
#include "tests/abi/dat20_facts.inc"
  provider->table.device_name = provider->info.ia_name;
  provider->table.ia_query_func = ia_query;
  provider->table.ia_close_func = ia_close;
  provider->table.ia_ha_related_func = ia_ha_related;
  log->provider = &provider->table;
  if (!log->forget_to_add) dat_registry_add_provider(&provider->table, info);
}

extern "C" __attribute__((visibility("default"))) void dat_provider_fini(const DAT_PROVIDER_INFO* info) {
  for (Provider** at = &providers; *at; at = &(*at)->next) {
    Provider* provider = *at;
    if (std::strcmp(provider->info.ia_name, info->ia_name) != 0) continue;
    provider->log->finis++;
    provider->log->info = *info;
    if (!provider->log->forget_to_remove && dat_registry_remove_provider(&provider->table, info) != DAT_SUCCESS &&
        !provider->log->forget_to_add)
      std::abort();
    *at = provider->next;
    delete provider;
    return;
  }
}

// Built like the original's providers: it uses this function of the registry without linking it.
extern "C" __attribute__((visibility("default"))) DAT_RETURN fake_provider_own_handle(DAT_IA_HANDLE handle,
                                                                                      DAT_IA_HANDLE* other) {
  return dats_get_ia_handle(handle, other);
}
