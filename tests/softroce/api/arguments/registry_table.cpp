// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Opening, the registry, and dat_strerror.
#include "tests/softroce/api/arguments/table.hpp"

namespace arguments {
namespace {

constexpr const char* kOnlyNotThreadSafe = "by-address";

char too_long[DAT_NAME_MAX_LENGTH + 8];
DAT_EVD_HANDLE async_evd;
DAT_EVD_HANDLE wild_evd;
DAT_EVD_HANDLE freed_evd;
DAT_EVD_HANDLE no_evd;
DAT_EVD_HANDLE deaf_evd;
DAT_IA_HANDLE ia;
DAT_COUNT entries;
DAT_PROVIDER_INFO listed[4];
DAT_PROVIDER_INFO* list[4] = {&listed[0], &listed[1], &listed[2], &listed[3]};
DAT_PROVIDER_INFO* list_with_hole[4] = {nullptr, &listed[1], &listed[2], &listed[3]};
DAT_PROVIDER provider;
DAT_PROVIDER_INFO info = {"a provider of the test", DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_FALSE};
DAT_PROVIDER_INFO unknown_info = {"another one", DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_FALSE};
DAT_PROVIDER_INFO open_info = {IA_NAME, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_FALSE};
DAT_PROVIDER_INFO endless_info;
ONLY_20(DAT_HA_RELATIONSHIP related; DAT_IA_HANDLE translated;)
ONLY_12(char aware_and_too_long[DAT_NAME_MAX_LENGTH + 8];)
const char* major;
const char* minor;

}  // namespace

void add_registry(Table& t) {
  const DAT_RETURN no_name = status(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
  const DAT_RETURN no_async = handle_error(DAT_INVALID_HANDLE_EVD_ASYNC);
  std::memset(too_long, 'x', sizeof too_long - 1);
  // The limit counts the prefix.
  ONLY_12(std::memset(aware_and_too_long, 'x', DAT_NAME_MAX_LENGTH); std::memcpy(aware_and_too_long, "RO_AWARE_", 9);)
  std::memset(endless_info.ia_name, 'x', sizeof endless_info.ia_name);
  wild_evd = &async_evd;
  freed_evd = t.w.freed[kEvd];
  no_evd = t.w.good[kPz];
  deaf_evd = t.w.plain_evd;

  t.add(FUNCTION(
      dat_ia_openv,
      {good(kOnlyNotThreadSafe)
           .also("NULL", nullptr)
           .also("too long", too_long)
           .also("empty", "", no_name)
           .also("unknown", "ofa-v2-nobody", no_name)
               ONLY_12(.also("the prefix alone", "RO_AWARE_", no_name)
                           .also("too long with its prefix", aware_and_too_long)
                           .also("unknown without its prefix", "RO_AWARE_ofa-v2-nobody", no_name))
           .also("of an absent device", "no-netdev", status(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED)),
       good(8)
           .also("0", 0)
           .also("negative", -1)
           .also("huge", INT32_MAX, status(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD)),
       needed(&async_evd)
           .also("a pointer to no object", &wild_evd, no_async)
           .also("a freed EVD", &freed_evd, no_async)
           .also("of another kind", &no_evd, no_async)
           .also("an EVD without the asynchronous stream", &deaf_evd, no_async),
       needed(&ia, handle_error(DAT_INVALID_HANDLE_IA)),
       good(DAT_VERSION_MAJOR)
           .also("the other", 3 - DAT_VERSION_MAJOR, status(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND))
           .also("huge", UINT32_MAX, status(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND)),
       good(DAT_VERSION_MINOR)
           .also("a later one", DAT_VERSION_MINOR + 1, status(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND))
           .also("huge", UINT32_MAX, status(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND)),
       good(DAT_FALSE)
           .also("which the entry is not", DAT_TRUE, status(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND))
           .also("out of range", 9, status(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND))}));
  t.add(FUNCTION(dat_registry_list_providers,
                 {good(4).also("0", 0).also("negative", -5), needed(&entries),
                  good(&list[0]).also("NULL", nullptr).also("a hole in it", &list_with_hole[0])}));
  t.add(FUNCTION(dat_registry_add_provider,
                 {needed(&provider), needed(&info)
                                         .also("a name without end", &endless_info)
                                         .also("registered", &open_info, status(DAT_PROVIDER_ALREADY_REGISTERED))}));
  t.add(FUNCTION(dat_registry_remove_provider,
                 {needed(&provider), needed(&info)
                                         .also("a name without end", &endless_info)
                                         .also("unknown", &unknown_info, no_name)
                                         .also("in use", &open_info, status(DAT_PROVIDER_IN_USE))}));
#if DAPPLE_DAT_MAJOR != 1
  t.add(
      FUNCTION(dat_registry_providers_related,
               {good(IA_NAME).also("NULL", nullptr).also("too long", too_long).also("unknown", "nobody", no_name),
                good(IPV6_IA_NAME).also("NULL", nullptr).also("too long", too_long).also("unknown", "nobody", no_name),
                needed(&related)}));
  t.add(FUNCTION(dats_get_ia_handle,
                 {good(t.w.f.ia)
                      .also("NULL", nullptr, handle_error(DAT_INVALID_HANDLE_IA))
                      .also("a small integer", 4001, handle_error(DAT_INVALID_HANDLE_IA))
                      .also("closed", t.w.freed[kIa], handle_error(DAT_INVALID_HANDLE_IA))
                      .also("a pointer to no object", &translated, handle_error(DAT_INVALID_HANDLE_IA))
                      .also("of kind EP", t.w.good[kEp], handle_error(DAT_INVALID_HANDLE_IA)),
                  needed(&translated)}));
#endif
  t.add(FUNCTION(
      dat_strerror,
      {good(status(DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE))
           .also("no such type", status(static_cast<DAT_RETURN_TYPE>(0x00180000)))
           .also("no such subtype", status(DAT_ABORT, static_cast<DAT_RETURN_SUBTYPE>(ONLY_20(0x68) ONLY_12(0x67)))),
       optional(&major), optional(&minor)}));
}

}  // namespace arguments
