// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The provider table of DAT 2.0: what every slot answers.
#include <dat2/udat.h>

#include <cstring>
#include <set>
#include <string>

#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/dat20/convert.hpp"
#include "udapl/dat20/provider.hpp"

using namespace dapple;

namespace {

DAT_RETURN fake_open(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*) {
  return DAT_SUCCESS;
}

// Calls a slot with nothing but zeroes.
template <class... Arguments>
DAT_RETURN call(DAT_RETURN (*slot)(Arguments...)) {
  return slot(Arguments{}...);
}

// The slots in the order of the table, each with whether something is behind it.
template <class Visit>
void for_each_slot(const DAT_PROVIDER& t, Visit visit) {
#define BUILT(name) visit(#name, t.name##_func, true)
#define UNBUILT(name) visit(#name, t.name##_func, false)
  BUILT(ia_open);
  BUILT(ia_query);
  BUILT(ia_close);
  BUILT(set_consumer_context);
  BUILT(get_consumer_context);
  BUILT(get_handle_type);
  UNBUILT(cno_create);
  UNBUILT(cno_modify_agent);
  UNBUILT(cno_query);
  UNBUILT(cno_free);
  UNBUILT(cno_wait);
  BUILT(cr_query);
  BUILT(cr_accept);
  BUILT(cr_reject);
  BUILT(cr_handoff);
  BUILT(evd_create);
  BUILT(evd_query);
  UNBUILT(evd_modify_cno);
  UNBUILT(evd_enable);
  UNBUILT(evd_disable);
  BUILT(evd_wait);
  UNBUILT(evd_resize);
  BUILT(evd_post_se);
  BUILT(evd_dequeue);
  BUILT(evd_free);
  BUILT(ep_create);
  BUILT(ep_query);
  BUILT(ep_modify);
  BUILT(ep_connect);
  BUILT(ep_dup_connect);
  BUILT(ep_disconnect);
  BUILT(ep_post_send);
  BUILT(ep_post_recv);
  BUILT(ep_post_rdma_read);
  BUILT(ep_post_rdma_write);
  BUILT(ep_get_status);
  BUILT(ep_free);
  BUILT(lmr_create);
  BUILT(lmr_query);
  BUILT(lmr_free);
  UNBUILT(rmr_create);
  UNBUILT(rmr_query);
  UNBUILT(rmr_bind);
  UNBUILT(rmr_free);
  BUILT(psp_create);
  BUILT(psp_query);
  BUILT(psp_free);
  BUILT(rsp_create);
  BUILT(rsp_query);
  BUILT(rsp_free);
  BUILT(pz_create);
  BUILT(pz_query);
  BUILT(pz_free);
  BUILT(psp_create_any);
  BUILT(ep_reset);
  BUILT(evd_set_unwaitable);
  BUILT(evd_clear_unwaitable);
  BUILT(lmr_sync_rdma_read);
  BUILT(lmr_sync_rdma_write);
  UNBUILT(ep_create_with_srq);
  UNBUILT(ep_recv_query);
  UNBUILT(ep_set_watermark);
  UNBUILT(srq_create);
  UNBUILT(srq_free);
  UNBUILT(srq_post_recv);
  UNBUILT(srq_query);
  UNBUILT(srq_resize);
  UNBUILT(srq_set_lw);
  BUILT(csp_create);
  BUILT(csp_query);
  BUILT(csp_free);
  BUILT(ep_common_connect);
  UNBUILT(rmr_create_for_ep);
  UNBUILT(ep_post_send_with_invalidate);
  UNBUILT(ep_post_rdma_read_to_rmr);
  UNBUILT(cno_fd_create);
  UNBUILT(cno_trigger);
  BUILT(ia_ha_related);
  BUILT(handle_extendedop);
#undef BUILT
#undef UNBUILT
}

void check_words(const DAT_PROVIDER& table) {
  constexpr size_t kDataWords = 2;
  constexpr size_t kSlots = 79;
  static_assert(sizeof table == (kDataWords + kSlots) * sizeof(void*));
  const void* words[kDataWords + kSlots];
  std::memcpy(words, &table, sizeof words);
  for (size_t i = kDataWords; i < kDataWords + kSlots; ++i) CHECK(words[i] != nullptr);
}

void make_table__no_slot_is_empty() {
  const DAT_PROVIDER table = dat20::make_table("name", fake_open);
  check_words(table);
  CHECK_EQUAL(table.device_name, std::string("name"));
  CHECK(table.ia_open_func == fake_open);
  int slots = 0;
  for_each_slot(table, [&slots](const char*, auto slot, bool) {
    ++slots;
    CHECK(slot != nullptr);
  });
  CHECK_EQUAL(slots, 79);
}

void make_table__what_is_not_built_says_so() {
  for_each_slot(dat20::make_table("name", fake_open), [](const char* name, auto slot, bool built) {
    if (built) return;
    const DAT_RETURN status = call(slot);
    if (status != (DAT_CLASS_ERROR | DAT_NOT_IMPLEMENTED)) std::cout << name << std::endl;
    CHECK_EQUAL(status, DAT_CLASS_ERROR | DAT_NOT_IMPLEMENTED);
  });
}

void make_table__each_built_slot_has_a_function_of_its_own() {
  std::set<const void*> seen;
  int built_slots = 0;
  for_each_slot(dat20::make_table("name", fake_open), [&](const char* name, auto slot, bool built) {
    if (!built) return;
    ++built_slots;
    if (!seen.insert(reinterpret_cast<const void*>(slot)).second) std::cout << name << " twice" << std::endl;
  });
  CHECK_EQUAL(seen.size(), built_slots);
}

void make_table__a_null_handle_is_refused() {
  for_each_slot(dat20::make_table("name", fake_open), [](const char* name, auto slot, bool built) {
    const std::string text = name;
    // These have no kind of handle to check: the registry refuses a null one before it gets here.
    const bool any_handle = text == "ia_open" || text.find("_context") != std::string::npos ||
                            text == "get_handle_type" || text == "handle_extendedop";
    if (!built || any_handle) return;
    const DAT_RETURN status = call(slot);
    if (DAT_GET_TYPE(status) != DAT_INVALID_HANDLE) std::cout << name << std::endl;
    CHECK_EQUAL(status & ~DAT_UINT32{0xffff}, DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
  });
}

void dead_table__every_slot_says_invalid_handle() {
  check_words(dat20::dead_table());
  for_each_slot(dat20::dead_table(), [](const char* name, auto slot, bool) {
    const DAT_RETURN status = call(slot);
    if (status != (DAT_CLASS_ERROR | DAT_INVALID_HANDLE)) std::cout << name << std::endl;
    CHECK_EQUAL(status, DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
  });
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(make_table__no_slot_is_empty),
      TEST(make_table__what_is_not_built_says_so),
      TEST(make_table__each_built_slot_has_a_function_of_its_own),
      TEST(make_table__a_null_handle_is_refused),
      TEST(dead_table__every_slot_says_invalid_handle),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
