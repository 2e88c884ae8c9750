// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/cfg.hpp"

#include <new>

#include "rpma/common/export.hpp"
#include "rpma/common/refusal.hpp"

namespace dapple::rpma {

constinit const rpma_conn_cfg kDefaultConnCfg;
constinit const rpma_srq_cfg kDefaultSrqCfg;

namespace {

// `function` is the caller: the function of librpma.

template <class Cfg>
int make(Cfg** cfg_ptr, const char* function = __builtin_FUNCTION()) {
  if (!cfg_ptr) return refuse_null(function, {NAMED(cfg_ptr)});
  auto* made = new (std::nothrow) Cfg;
  if (!made) return refuse_memory();
  *cfg_ptr = made;
  return 0;
}

template <class Cfg>
int remove(Cfg** cfg_ptr, const char* function = __builtin_FUNCTION()) {
  if (!cfg_ptr) return refuse_null(function, {NAMED(cfg_ptr)});
  delete *cfg_ptr;
  *cfg_ptr = nullptr;
  return 0;
}

template <class Cfg, class Value>
int set(Cfg* cfg, std::atomic<Value> Cfg::*field, Value value, const char* function = __builtin_FUNCTION()) {
  if (!cfg) return refuse_null(function, {NAMED(cfg)});
  cfg->*field = value;
  return 0;
}

// name: that of the argument `out`.
template <class Cfg, class Value>
int get(const Cfg* cfg, std::atomic<Value> Cfg::*field, Value* out, const char* name,
        const char* function = __builtin_FUNCTION()) {
  if (!cfg || !out) return refuse_null(function, {NAMED(cfg), named(name, out)});
  *out = cfg->*field;
  return 0;
}

}  // namespace
}  // namespace dapple::rpma

using namespace dapple::rpma;

RPMA_EXPORT int rpma_conn_cfg_new(rpma_conn_cfg** cfg_ptr) {
  return make(cfg_ptr);
}
RPMA_EXPORT int rpma_conn_cfg_delete(rpma_conn_cfg** cfg_ptr) {
  return remove(cfg_ptr);
}

RPMA_EXPORT int rpma_conn_cfg_set_timeout(rpma_conn_cfg* cfg, int timeout_ms) {
  if (timeout_ms < 0) {
    return refuse(__func__, RPMA_E_INVAL, "timeout_ms is %d.\nPass 0 or more milliseconds.", timeout_ms);
  }
  return set(cfg, &rpma_conn_cfg::timeout_ms, timeout_ms);
}
RPMA_EXPORT int rpma_conn_cfg_get_timeout(const rpma_conn_cfg* cfg, int* timeout_ms) {
  return get(cfg, &rpma_conn_cfg::timeout_ms, timeout_ms, "timeout_ms");
}
RPMA_EXPORT int rpma_conn_cfg_set_cq_size(rpma_conn_cfg* cfg, uint32_t cq_size) {
  return set(cfg, &rpma_conn_cfg::cq_size, cq_size);
}
RPMA_EXPORT int rpma_conn_cfg_get_cq_size(const rpma_conn_cfg* cfg, uint32_t* cq_size) {
  return get(cfg, &rpma_conn_cfg::cq_size, cq_size, "cq_size");
}
RPMA_EXPORT int rpma_conn_cfg_set_rcq_size(rpma_conn_cfg* cfg, uint32_t rcq_size) {
  return set(cfg, &rpma_conn_cfg::rcq_size, rcq_size);
}
RPMA_EXPORT int rpma_conn_cfg_get_rcq_size(const rpma_conn_cfg* cfg, uint32_t* rcq_size) {
  return get(cfg, &rpma_conn_cfg::rcq_size, rcq_size, "rcq_size");
}
RPMA_EXPORT int rpma_conn_cfg_set_sq_size(rpma_conn_cfg* cfg, uint32_t sq_size) {
  return set(cfg, &rpma_conn_cfg::sq_size, sq_size);
}
RPMA_EXPORT int rpma_conn_cfg_get_sq_size(const rpma_conn_cfg* cfg, uint32_t* sq_size) {
  return get(cfg, &rpma_conn_cfg::sq_size, sq_size, "sq_size");
}
RPMA_EXPORT int rpma_conn_cfg_set_rq_size(rpma_conn_cfg* cfg, uint32_t rq_size) {
  return set(cfg, &rpma_conn_cfg::rq_size, rq_size);
}
RPMA_EXPORT int rpma_conn_cfg_get_rq_size(const rpma_conn_cfg* cfg, uint32_t* rq_size) {
  return get(cfg, &rpma_conn_cfg::rq_size, rq_size, "rq_size");
}
RPMA_EXPORT int rpma_conn_cfg_set_compl_channel(rpma_conn_cfg* cfg, bool shared) {
  return set(cfg, &rpma_conn_cfg::shared_channel, shared);
}
RPMA_EXPORT int rpma_conn_cfg_get_compl_channel(const rpma_conn_cfg* cfg, bool* shared) {
  return get(cfg, &rpma_conn_cfg::shared_channel, shared, "shared");
}
RPMA_EXPORT int rpma_conn_cfg_set_srq(rpma_conn_cfg* cfg, rpma_srq* srq) {
  return set(cfg, &rpma_conn_cfg::srq, srq);
}
RPMA_EXPORT int rpma_conn_cfg_get_srq(const rpma_conn_cfg* cfg, rpma_srq** srq_ptr) {
  return get(cfg, &rpma_conn_cfg::srq, srq_ptr, "srq_ptr");
}

RPMA_EXPORT int rpma_srq_cfg_new(rpma_srq_cfg** cfg_ptr) {
  return make(cfg_ptr);
}
RPMA_EXPORT int rpma_srq_cfg_delete(rpma_srq_cfg** cfg_ptr) {
  return remove(cfg_ptr);
}
RPMA_EXPORT int rpma_srq_cfg_set_rq_size(rpma_srq_cfg* cfg, uint32_t rq_size) {
  return set(cfg, &rpma_srq_cfg::rq_size, rq_size);
}
RPMA_EXPORT int rpma_srq_cfg_get_rq_size(const rpma_srq_cfg* cfg, uint32_t* rq_size) {
  return get(cfg, &rpma_srq_cfg::rq_size, rq_size, "rq_size");
}
RPMA_EXPORT int rpma_srq_cfg_set_rcq_size(rpma_srq_cfg* cfg, uint32_t rcq_size) {
  return set(cfg, &rpma_srq_cfg::rcq_size, rcq_size);
}
RPMA_EXPORT int rpma_srq_cfg_get_rcq_size(const rpma_srq_cfg* cfg, uint32_t* rcq_size) {
  return get(cfg, &rpma_srq_cfg::rcq_size, rcq_size, "rcq_size");
}
