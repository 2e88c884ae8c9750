// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// Every function that goes through the provider's table, and the macros that go there directly: the right slot gets the
// unchanged arguments, and the caller its result; an impossible handle reaches no slot.
#include <dat2/dat_ib_extensions.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>
#include <tuple>
#include <type_traits>

#include "tests/unit/udapl-registry/checks.hpp"
#include "tests/unit/udapl-registry/fake_provider.hpp"

namespace {

enum HandleKind { kObject, kIa, kAny };

constexpr DAT_RETURN kResult = DAT_CLASS_ERROR | DAT_LENGTH_ERROR;
char kIaName[] = "fake";

FakeLog fake;
FakeObject object;
DAT_IA_HANDLE ia;
std::set<std::size_t> slots_seen;

/// An argument that differs from its neighbours, if its type allows that.
template <class T>
T sample(int number) {
  T value{};
  if constexpr (std::is_enum_v<T>)
    value = static_cast<T>(1);
  else
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the pointer itself
    std::memset(static_cast<void*>(&value), number + 0x11, sizeof(T));
  return value;
}

template <auto kSlot, class... Args>
void check_reaches(const char* name, DAT_HANDLE handle, DAT_RETURN (*function)(DAT_HANDLE, Args...)) {
  [[maybe_unused]] auto next = [number = 0]() mutable { return number++; };
  std::tuple<Args...> arguments{sample<Args>(next())...};
  fake.slot = 0;
  fake.argument_count = 0;
  const DAT_RETURN status = std::apply([&](Args... args) { return function(handle, args...); }, arguments);
  check_equal(status, kResult, name, __FILE__, __LINE__);
  check_equal(fake.slot, slot_offset<kSlot>(), name, __FILE__, __LINE__);
  check_equal(fake.argument_count, sizeof...(Args), name, __FILE__, __LINE__);
  std::size_t index = 0;
  const auto compare = [&]<class Argument>(const Argument& argument) {
    const void* const sent = &argument;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the pointer itself
    check(std::memcmp(fake.arguments[index++], sent, sizeof(Argument)) == 0, name, __FILE__, __LINE__);
  };
  std::apply([&](const auto&... args) { (compare(args), ...); }, arguments);
}

template <class... Args>
void check_refuses(const char* name, DAT_RETURN_SUBTYPE subtype, std::uintptr_t handle,
                   DAT_RETURN (*function)(DAT_HANDLE, Args...)) {
  fake.slot = 0;
  const DAT_RETURN status = function(reinterpret_cast<DAT_HANDLE>(handle), sample<Args>(0)...);
  check_equal(status, DAT_CLASS_ERROR | DAT_INVALID_HANDLE | subtype, name, __FILE__, __LINE__);
  check_equal(fake.slot, 0U, name, __FILE__, __LINE__);
}

template <auto kSlot, class... Args>
void check_dispatch(HandleKind kind, DAT_RETURN_SUBTYPE subtype, const char* name,
                    DAT_RETURN (*function)(DAT_HANDLE, Args...),
                    std::type_identity_t<DAT_RETURN (*)(DAT_HANDLE, Args...)> macro) {
  slots_seen.insert(slot_offset<kSlot>());
  if (kind != kObject) check_reaches<kSlot>(name, ia, function);
  if (kind != kIa) check_reaches<kSlot>(name, &object, function);
  check_reaches<kSlot>(name, &object, macro);

  const auto open = reinterpret_cast<std::uintptr_t>(ia);
  for (const std::uintptr_t handle : {std::uintptr_t{0}, open + 1, std::uintptr_t{4095}})
    check_refuses(name, subtype, handle, function);
  if (kind == kObject) check_refuses(name, subtype, open, function);
}

// NOLINTBEGIN(bugprone-macro-parentheses): PARAMS has its own
#define DISPATCHES(KIND, SUBTYPE, NAME, PARAMS, CALL) \
  check_dispatch<&DAT_PROVIDER::NAME##_func>(KIND, SUBTYPE, "dat_" #NAME, dat_##NAME, [] PARAMS { return (CALL); });
// NOLINTEND(bugprone-macro-parentheses)

void dispatch__every_slot() {
  fake.slot_result = kResult;
  object = {fake.provider, &fake};
  // clang-format off
  DISPATCHES(kAny, DAT_INVALID_HANDLE1, set_consumer_context, (auto a, auto b), DAT_SET_CONSUMER_CONTEXT(a, b))
  DISPATCHES(kAny, DAT_INVALID_HANDLE1, get_consumer_context, (auto a, auto b), DAT_GET_CONSUMER_CONTEXT(a, b))
  DISPATCHES(kAny, DAT_INVALID_HANDLE1, get_handle_type, (auto a, auto b), DAT_GET_HANDLE_TYPE(a, b))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, ia_query, (auto a, auto b, auto c, auto d, auto e, auto f), DAT_IA_QUERY(a, b, c, d, e, f))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, pz_create, (auto a, auto b), DAT_PZ_CREATE(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_PZ, pz_query, (auto a, auto b, auto c), DAT_PZ_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_PZ, pz_free, (auto a), DAT_PZ_FREE(a))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, lmr_create, (auto a, auto b, auto c, auto d, auto e, auto f, auto g, auto h, auto i, auto j, auto k, auto l), DAT_LMR_CREATE(a, b, c, d, e, f, g, h, i, j, k, l))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_LMR, lmr_query, (auto a, auto b, auto c), DAT_LMR_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_LMR, lmr_free, (auto a), DAT_LMR_FREE(a))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, lmr_sync_rdma_read, (auto a, auto b, auto c), DAT_LMR_SYNC_RDMA_READ(a, b, c))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, lmr_sync_rdma_write, (auto a, auto b, auto c), DAT_LMR_SYNC_RDMA_WRITE(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_PZ, rmr_create, (auto a, auto b), DAT_RMR_CREATE(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_PZ, rmr_create_for_ep, (auto a, auto b), DAT_RMR_CREATE_FOR_EP(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_RMR, rmr_query, (auto a, auto b, auto c), DAT_RMR_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_RMR, rmr_bind, (auto a, auto b, auto c, auto d, auto e, auto f, auto g, auto h, auto i), DAT_RMR_BIND(a, b, c, d, e, f, g, h, i))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_RMR, rmr_free, (auto a), DAT_RMR_FREE(a))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, srq_create, (auto a, auto b, auto c, auto d), DAT_SRQ_CREATE(a, b, c, d))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_SRQ, srq_query, (auto a, auto b, auto c), DAT_SRQ_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_SRQ, srq_resize, (auto a, auto b), DAT_SRQ_RESIZE(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_SRQ, srq_set_lw, (auto a, auto b), DAT_SRQ_SET_LW(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_SRQ, srq_post_recv, (auto a, auto b, auto c, auto d), DAT_SRQ_POST_RECV(a, b, c, d))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_SRQ, srq_free, (auto a), DAT_SRQ_FREE(a))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, ep_create, (auto a, auto b, auto c, auto d, auto e, auto f, auto g), DAT_EP_CREATE(a, b, c, d, e, f, g))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, ep_create_with_srq, (auto a, auto b, auto c, auto d, auto e, auto f, auto g, auto h), DAT_EP_CREATE_WITH_SRQ(a, b, c, d, e, f, g, h))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_query, (auto a, auto b, auto c), DAT_EP_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_modify, (auto a, auto b, auto c), DAT_EP_MODIFY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_get_status, (auto a, auto b, auto c, auto d), DAT_EP_GET_STATUS(a, b, c, d))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_recv_query, (auto a, auto b, auto c), DAT_EP_RECV_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_set_watermark, (auto a, auto b, auto c), DAT_EP_SET_WATERMARK(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_reset, (auto a), DAT_EP_RESET(a))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_free, (auto a), DAT_EP_FREE(a))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_connect, (auto a, auto b, auto c, auto d, auto e, auto f, auto g, auto h), DAT_EP_CONNECT(a, b, c, d, e, f, g, h))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_dup_connect, (auto a, auto b, auto c, auto d, auto e, auto f), DAT_EP_DUP_CONNECT(a, b, c, d, e, f))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_common_connect, (auto a, auto b, auto c, auto d, auto e), DAT_EP_COMMON_CONNECT(a, b, c, d, e))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_disconnect, (auto a, auto b), DAT_EP_DISCONNECT(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_post_send, (auto a, auto b, auto c, auto d, auto e), DAT_EP_POST_SEND(a, b, c, d, e))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_post_send_with_invalidate, (auto a, auto b, auto c, auto d, auto e, auto f, auto g), DAT_EP_POST_SEND_WITH_INVALIDATE(a, b, c, d, e, f, g))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_post_recv, (auto a, auto b, auto c, auto d, auto e), DAT_EP_POST_RECV(a, b, c, d, e))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_post_rdma_read, (auto a, auto b, auto c, auto d, auto e, auto f), DAT_EP_POST_RDMA_READ(a, b, c, d, e, f))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_post_rdma_read_to_rmr, (auto a, auto b, auto c, auto d, auto e), DAT_EP_POST_RDMA_READ_TO_RMR(a, b, c, d, e))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EP, ep_post_rdma_write, (auto a, auto b, auto c, auto d, auto e, auto f), DAT_EP_POST_RDMA_WRITE(a, b, c, d, e, f))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, psp_create, (auto a, auto b, auto c, auto d, auto e), DAT_PSP_CREATE(a, b, c, d, e))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, psp_create_any, (auto a, auto b, auto c, auto d, auto e), DAT_PSP_CREATE_ANY(a, b, c, d, e))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_PSP, psp_query, (auto a, auto b, auto c), DAT_PSP_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_PSP, psp_free, (auto a), DAT_PSP_FREE(a))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, rsp_create, (auto a, auto b, auto c, auto d, auto e), DAT_RSP_CREATE(a, b, c, d, e))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_RSP, rsp_query, (auto a, auto b, auto c), DAT_RSP_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_RSP, rsp_free, (auto a), DAT_RSP_FREE(a))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, csp_create, (auto a, auto b, auto c, auto d, auto e), DAT_CSP_CREATE(a, b, c, d, e))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_CSP, csp_query, (auto a, auto b, auto c), DAT_CSP_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_CSP, csp_free, (auto a), DAT_CSP_FREE(a))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_CR, cr_query, (auto a, auto b, auto c), DAT_CR_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_CR, cr_accept, (auto a, auto b, auto c, auto d), DAT_CR_ACCEPT(a, b, c, d))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_CR, cr_reject, (auto a, auto b, auto c), DAT_CR_REJECT(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_CR, cr_handoff, (auto a, auto b), DAT_CR_HANDOFF(a, b))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, evd_create, (auto a, auto b, auto c, auto d, auto e), DAT_EVD_CREATE(a, b, c, d, e))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EVD_REQUEST, evd_query, (auto a, auto b, auto c), DAT_EVD_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EVD_REQUEST, evd_modify_cno, (auto a, auto b), DAT_EVD_MODIFY_CNO(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EVD_REQUEST, evd_resize, (auto a, auto b), DAT_EVD_RESIZE(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EVD_REQUEST, evd_enable, (auto a), DAT_EVD_ENABLE(a))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EVD_REQUEST, evd_disable, (auto a), DAT_EVD_DISABLE(a))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EVD_REQUEST, evd_wait, (auto a, auto b, auto c, auto d, auto e), DAT_EVD_WAIT(a, b, c, d, e))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EVD_REQUEST, evd_dequeue, (auto a, auto b), DAT_EVD_DEQUEUE(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EVD_REQUEST, evd_post_se, (auto a, auto b), DAT_EVD_POST_SE(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EVD_REQUEST, evd_set_unwaitable, (auto a), DAT_EVD_SET_UNWAITABLE(a))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EVD_REQUEST, evd_clear_unwaitable, (auto a), DAT_EVD_CLEAR_UNWAITABLE(a))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_EVD_REQUEST, evd_free, (auto a), DAT_EVD_FREE(a))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, cno_create, (auto a, auto b, auto c), DAT_CNO_CREATE(a, b, c))
  DISPATCHES(kIa, DAT_INVALID_HANDLE_IA, cno_fd_create, (auto a, auto b, auto c), DAT_CNO_FD_CREATE(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_CNO, cno_modify_agent, (auto a, auto b), DAT_CNO_MODIFY_AGENT(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_CNO, cno_query, (auto a, auto b, auto c), DAT_CNO_QUERY(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_CNO, cno_wait, (auto a, auto b, auto c), DAT_CNO_WAIT(a, b, c))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_CNO, cno_trigger, (auto a, auto b), DAT_CNO_TRIGGER(a, b))
  DISPATCHES(kObject, DAT_INVALID_HANDLE_CNO, cno_free, (auto a), DAT_CNO_FREE(a))
  // clang-format on
  // No function is forgotten. The registry handles the SLOTs itself.
#define SLOT(SUBTYPE, NAME)
#define FUNCTION(SUBTYPE, NAME, ...) \
  check(slots_seen.contains(slot_offset<&DAT_PROVIDER::NAME##_func>()), "dat_" #NAME, __FILE__, __LINE__);
#include "udapl/api/functions.def"
}

void dispatch__provider_handle_is_no_ia_handle() {
  DAT_IA_HANDLE provider_ia = nullptr;
  CHECK_EQUAL(dats_get_ia_handle(ia, &provider_ia), DAT_RETURN{DAT_SUCCESS});
  DAT_PZ_HANDLE pz = nullptr;
  CHECK_EQUAL(dat_pz_create(provider_ia, &pz), DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
}

void dats_get_ia_handle__both_directions() {
  DAT_IA_HANDLE provider_ia = nullptr;
  DAT_IA_HANDLE back = nullptr;
  const DAT_RETURN refused = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA;
  CHECK_EQUAL(dats_get_ia_handle(ia, &provider_ia), DAT_RETURN{DAT_SUCCESS});
  CHECK(static_cast<FakeObject*>(provider_ia)->log == &fake);
  CHECK_EQUAL(dats_get_ia_handle(provider_ia, &back), DAT_RETURN{DAT_SUCCESS});
  CHECK_EQUAL(back, ia);
  CHECK_EQUAL(dats_get_ia_handle(nullptr, &back), refused);
  CHECK_EQUAL(dats_get_ia_handle(ia, nullptr),
              (DAT_RETURN{DAT_CLASS_ERROR} | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2));
  CHECK_EQUAL(dats_get_ia_handle(&object, &back), refused);
  CHECK_EQUAL(dats_get_ia_handle(DAT_UL_TO_IA_HANDLE(4095), &back), refused);
  CHECK_EQUAL(back, ia);
}

void dat_extension_op__on_ia_and_on_object() {
  fake.slot_result = kResult;
  for (const DAT_HANDLE handle : {ia, static_cast<DAT_HANDLE>(&object)}) {
    fake.extension_op = 0;
    CHECK_EQUAL(dat_extension_op(handle, 7, 0x123456789abcULL), kResult);
    CHECK_EQUAL(fake.extension_op, 7);
    CHECK_EQUAL(fake.extension_argument, 0x123456789abcULL);
  }
  const DAT_RETURN refused = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1;
  CHECK_EQUAL(dat_extension_op(nullptr, 7, 0ULL), refused);
  CHECK_EQUAL(dat_extension_op(DAT_UL_TO_IA_HANDLE(4095), 7, 0ULL), refused);
}

void dat_extension_op__open_query_by_name() {
  fake.slot_result = DAT_SUCCESS;
  const int opens = fake.opens;
  DAT_HANDLE query = nullptr;
  DAT_IA_ATTR ia_attr;
  DAT_PROVIDER_ATTR provider_attr = {};
  CHECK_EQUAL(dat_ib_open_query(kIaName, &query, DAT_IA_ALL, &ia_attr, DAT_PROVIDER_FIELD_ALL, &provider_attr),
              DAT_RETURN{DAT_SUCCESS});
  CHECK_EQUAL(fake.extension_op, DAT_IB_OPEN_QUERY_OP);
  CHECK_EQUAL(dat_ib_close_query(query), DAT_RETURN{DAT_SUCCESS});
  CHECK_EQUAL(fake.extension_op, DAT_IB_CLOSE_QUERY_OP);
  CHECK_EQUAL(fake.opens, opens);

  CHECK_EQUAL(dat_ib_open_query("nobody", &query, 0, &ia_attr, 0, &provider_attr),
              DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED);
  CHECK_EQUAL(dat_ib_open_query(nullptr, &query, 0, &ia_attr, 0, &provider_attr),
              DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
  CHECK_EQUAL(dat_ib_close_query(nullptr), DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1);
  fake.slot_result = kResult;
  CHECK_EQUAL(dat_ib_open_query(kIaName, &query, 0, &ia_attr, 0, &provider_attr), kResult);
}

void dat_extension_op__macros_send_their_operation() {
  fake.slot_result = DAT_SUCCESS;
  DAT_HANDLE handle = &object;
  DAT_CONTEXT context = {};
  DAT_UINT64 clock = 0;
#define SENDS(op, call)                       \
  CHECK_EQUAL(call, DAT_RETURN{DAT_SUCCESS}); \
  CHECK_EQUAL(fake.extension_op, DAT_IB_##op##_OP)
  SENDS(FETCH_AND_ADD, dat_ib_post_fetch_and_add(handle, 1, nullptr, context, nullptr, 0));
  SENDS(CMP_AND_SWAP, dat_ib_post_cmp_and_swap(handle, 1, 2, nullptr, context, nullptr, 0));
  SENDS(RDMA_WRITE_IMMED, dat_ib_post_rdma_write_immed(handle, 0, nullptr, context, nullptr, 1, 0));
  SENDS(UD_SEND, dat_ib_post_send_ud(handle, 0, nullptr, nullptr, context, 0));
  SENDS(UD_CM_FREE, dat_ib_ud_cm_free(handle, context));
  SENDS(UD_AH_FREE, dat_ib_ud_ah_free(handle, nullptr));
  SENDS(QUERY_COUNTERS, dat_ib_query_counters(handle, 0, nullptr, 0));
  SENDS(QUERY_COUNTERS, dat_query_counters(handle, 0, nullptr, 0));
  SENDS(PRINT_COUNTERS, dat_ib_print_counters(handle, 0, 0));
  SENDS(START_COUNTERS, dat_ib_start_counter(handle, DCNT_IA_CM));
  SENDS(STOP_COUNTERS, dat_ib_stop_counter(handle, DCNT_IA_CM));
  SENDS(COLLECTIVE_CREATE_MEMBER, dat_ib_collective_create_member(handle, nullptr, nullptr, nullptr));
  SENDS(COLLECTIVE_FREE_MEMBER, dat_ib_collective_free_member(handle, nullptr));
  SENDS(COLLECTIVE_CREATE_GROUP, dat_ib_collective_create_group(nullptr, 0, 0, 0, nullptr, handle, nullptr, context));
  SENDS(COLLECTIVE_FREE_GROUP, dat_ib_collective_free_group(handle));
  SENDS(COLLECTIVE_SET_CLOCK, dat_ib_collective_set_clock(handle, 1, context));
  SENDS(COLLECTIVE_READ_CLOCK, dat_ib_collective_read_clock(handle, &clock));
  SENDS(COLLECTIVE_SCATTER, dat_ib_collective_scatter(handle, nullptr, 0, nullptr, 0, 0, context, 0));
  SENDS(COLLECTIVE_SCATTERV, dat_ib_collective_scatterv(handle, nullptr, nullptr, nullptr, nullptr, 0, 0, context, 0));
  SENDS(COLLECTIVE_GATHER, dat_ib_collective_gather(handle, nullptr, 0, nullptr, 0, 0, context, 0));
  SENDS(COLLECTIVE_GATHERV, dat_ib_collective_gatherv(handle, nullptr, 0, nullptr, nullptr, nullptr, 0, context, 0));
  SENDS(COLLECTIVE_ALLGATHER, dat_ib_collective_allgather(handle, nullptr, 0, nullptr, 0, context, 0));
  SENDS(COLLECTIVE_ALLGATHERV, dat_ib_collective_allgatherv(handle, nullptr, 0, nullptr, nullptr, nullptr, context, 0));
  SENDS(COLLECTIVE_ALLTOALL, dat_ib_collective_alltoall(handle, nullptr, 0, nullptr, 0, context, 0));
  SENDS(COLLECTIVE_ALLTOALLV,
        dat_ib_collective_alltoallv(handle, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, context, 0));
  SENDS(COLLECTIVE_REDUCE, dat_ib_collective_reduce(handle, nullptr, 0, nullptr, 0, 0, 0, 0, context, 0));
  SENDS(COLLECTIVE_ALLREDUCE, dat_ib_collective_allreduce(handle, nullptr, 0, nullptr, 0, 0, 0, context, 0));
  SENDS(COLLECTIVE_REDUCE_SCATTER,
        dat_ib_collective_reduce_scatter(handle, nullptr, 0, nullptr, nullptr, 0, 0, context, 0));
  SENDS(COLLECTIVE_SCAN, dat_ib_collective_scan(handle, nullptr, 0, nullptr, 0, 0, 0, context, 0));
  SENDS(COLLECTIVE_BROADCAST, dat_ib_collective_broadcast(handle, nullptr, 0, 0, context, 0));
  SENDS(COLLECTIVE_BARRIER, dat_ib_collective_barrier(handle, context, 0));
}

void stale_ia_handle__is_refused_everywhere() {
  CHECK_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_RETURN{DAT_SUCCESS});
  const DAT_RETURN refused = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA;
  DAT_PZ_HANDLE pz = nullptr;
  DAT_CONTEXT context = {};
  CHECK_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), refused);
  CHECK_EQUAL(dat_pz_create(ia, &pz), refused);
  CHECK_EQUAL(dat_set_consumer_context(ia, context), DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1);
  CHECK_EQUAL(dat_extension_op(ia, 7, 0ULL), DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1);
}

/// A provider that the program itself brings, so that no file is needed.
int open_fake(void**) {
  void* library = ::dlopen(FAKE_PROVIDER_A, RTLD_NOW);
  if (!library) {
    std::puts(::dlerror());
    return 1;
  }
  const auto init = reinterpret_cast<DAT_PROVIDER_INIT_FUNC>(::dlsym(library, DAT_PROVIDER_INIT_FUNC_STR));
  DAT_PROVIDER_INFO info = {"fake", 2, 0, DAT_FALSE};
  char params[32];
  std::snprintf(params, sizeof params, "%p", static_cast<void*>(&fake));
  fake.extension = DAT_EXTENSION_IB;
  init(&info, params);
  DAT_EVD_HANDLE evd = nullptr;
  return dat_ia_open(kIaName, 1, &evd, &ia) == DAT_SUCCESS ? 0 : 1;
}

}  // namespace

int main() {
  ::setenv("DAT_OVERRIDE", "/dev/null", 1);
  const CMUnitTest tests[] = {
      TEST(dispatch__every_slot),
      TEST(dispatch__provider_handle_is_no_ia_handle),
      TEST(dats_get_ia_handle__both_directions),
      TEST(dat_extension_op__on_ia_and_on_object),
      TEST(dat_extension_op__open_query_by_name),
      TEST(dat_extension_op__macros_send_their_operation),
      TEST(stale_ia_handle__is_refused_everywhere),
  };
  return cmocka_run_group_tests(tests, open_fake, nullptr);
}
