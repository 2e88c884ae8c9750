/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The functions that replace libibverbs', librdmacm's and the C library's. verbs.h calls some of them through the open
 * context: these are replaced in the context when we first see it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/softroce/inject/inject.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port

#define EXPORT __attribute__((visibility("default")))
#define HIT(name) inject_hit(CALL_##name, __builtin_return_address(0))
#define REAL(name) ((__typeof__(&name))real(CALL_##name))

static void* real(enum inject_call call) {
  static _Atomic(void*) found[CALLS];
  void* function = atomic_load(&found[call]);
  if (function) return function;
  function = dlsym(RTLD_NEXT, inject_name(call));
  if (!function) {
    fprintf(stderr, "inject: there is no %s\n", inject_name(call));
    abort();
  }
  atomic_store(&found[call], function);
  return function;
}

/* ---- functions of the most frequent shape ---- */

#define NULLS(name, type, parameters, arguments, kind, change, ...) \
  EXPORT type name parameters {                                     \
    const int error = HIT(name);                                    \
    type made = NULL;                                               \
    if (error > 0) {                                                \
      errno = error;                                                \
      return NULL;                                                  \
    }                                                               \
    made = REAL(name) arguments;                                    \
    if (error == 0 && made) inject_change(kind, change);            \
    return made;                                                    \
  }
#define MINUS(name, parameters, arguments, kind, change, ...)   \
  EXPORT int name parameters {                                  \
    const int error = HIT(name);                                \
    int result = 0;                                             \
    if (error > 0) {                                            \
      errno = error;                                            \
      return -1;                                                \
    }                                                           \
    result = REAL(name) arguments;                              \
    if (error == 0 && result == 0) inject_change(kind, change); \
    return result;                                              \
  }
#define GIVES(name, parameters, arguments, kind, change, ...)   \
  EXPORT int name parameters {                                  \
    const int error = HIT(name);                                \
    int result = 0;                                             \
    if (error > 0) {                                            \
      errno = error;                                            \
      return error;                                             \
    }                                                           \
    result = REAL(name) arguments;                              \
    if (error == 0 && result == 0) inject_change(kind, change); \
    return result;                                              \
  }
#define INLINE(name, ...)
#define BY_HAND(name, ...)
#define NEVER(name)
#include "tests/softroce/inject/calls.def"

/* ---- through the context ---- */

static struct ibv_context_ops real_ops;
static __typeof__(((struct verbs_context*)0)->query_port) real_query_port;

static int op_query_port(struct ibv_context* context, uint8_t port, struct ibv_port_attr* attr, size_t size) {
  const int error = HIT(ibv_query_port);
  return error > 0 ? error : real_query_port(context, port, attr, size);
}
static int op_poll_cq(struct ibv_cq* cq, int capacity, struct ibv_wc* completions) {
  return HIT(ibv_poll_cq) > 0 ? -1 : real_ops.poll_cq(cq, capacity, completions);
}
static int op_req_notify_cq(struct ibv_cq* cq, int solicited_only) {
  const int error = HIT(ibv_req_notify_cq);
  return error > 0 ? error : real_ops.req_notify_cq(cq, solicited_only);
}
static int op_post_send(struct ibv_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad) {
  const int error = HIT(ibv_post_send);
  if (error > 0) *bad = wr;
  return error > 0 ? error : real_ops.post_send(qp, wr, bad);
}
static int op_post_recv(struct ibv_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad) {
  const int error = HIT(ibv_post_recv);
  if (error > 0) *bad = wr;
  return error > 0 ? error : real_ops.post_recv(qp, wr, bad);
}
static int op_post_srq_recv(struct ibv_srq* srq, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad) {
  const int error = HIT(ibv_post_srq_recv);
  if (error > 0) *bad = wr;
  return error > 0 ? error : real_ops.post_srq_recv(srq, wr, bad);
}
static struct ibv_mw* op_alloc_mw(struct ibv_pd* pd, enum ibv_mw_type type) {
  const int error = HIT(ibv_alloc_mw);
  struct ibv_mw* mw = NULL;
  if (error > 0) {
    errno = error;
    return NULL;
  }
  mw = real_ops.alloc_mw(pd, type);
  if (error == 0 && mw) inject_change(MW, 1);
  return mw;
}
static int op_bind_mw(struct ibv_qp* qp, struct ibv_mw* mw, struct ibv_mw_bind* bind) {
  const int error = HIT(ibv_bind_mw);
  return error > 0 ? error : real_ops.bind_mw(qp, mw, bind);
}
static int op_dealloc_mw(struct ibv_mw* mw) {
  const int error = HIT(ibv_dealloc_mw);
  const int result = error > 0 ? error : real_ops.dealloc_mw(mw);
  if (error == 0 && result == 0) inject_change(MW, -1);
  return result;
}

/* All contexts belong to one device, so one set of originals is enough. */
static void replace_operations(struct ibv_context* context) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  struct verbs_context* extended = verbs_get_ctx(context);
  pthread_mutex_lock(&mutex);
  if (context->ops.poll_cq != op_poll_cq) {
    if (!extended || (real_ops.poll_cq && real_ops.poll_cq != context->ops.poll_cq)) {
      fprintf(stderr, "inject: devices of more than one kind\n");
      abort();
    }
    real_ops = context->ops;
    real_query_port = extended->query_port;
    extended->query_port = op_query_port;
    context->ops.poll_cq = op_poll_cq;
    context->ops.req_notify_cq = op_req_notify_cq;
    context->ops.post_send = op_post_send;
    context->ops.post_recv = op_post_recv;
    context->ops.post_srq_recv = op_post_srq_recv;
    context->ops.alloc_mw = op_alloc_mw;
    context->ops.bind_mw = op_bind_mw;
    context->ops.dealloc_mw = op_dealloc_mw;
  }
  pthread_mutex_unlock(&mutex);
}

/* ---- verbs and rdma_cm of other shapes ---- */

#define FAIL_IF(name, value)   \
  const int error = HIT(name); \
  do {                         \
    if (error > 0) {           \
      errno = error;           \
      return value;            \
    }                          \
  } while (0)

EXPORT int rdma_bind_addr(struct rdma_cm_id* id, struct sockaddr* address) {
  FAIL_IF(rdma_bind_addr, -1);
  const int result = REAL(rdma_bind_addr)(id, address);
  if (error == 0 && result == 0 && id->verbs) replace_operations(id->verbs);
  return result;
}

EXPORT struct rdma_event_channel* rdma_create_event_channel(void) {
  FAIL_IF(rdma_create_event_channel, NULL);
  struct rdma_event_channel* channel = REAL(rdma_create_event_channel)();
  if (error == 0 && channel) inject_change(EVENT_CHANNEL, 1);
  return channel;
}

EXPORT void rdma_destroy_event_channel(struct rdma_event_channel* channel) {
  const int ours = HIT(rdma_destroy_event_channel);
  REAL(rdma_destroy_event_channel)(channel);
  if (ours == 0) inject_change(EVENT_CHANNEL, -1);
}

EXPORT int rdma_get_cm_event(struct rdma_event_channel* channel, struct rdma_cm_event** event) {
  FAIL_IF(rdma_get_cm_event, -1);
  const int result = REAL(rdma_get_cm_event)(channel, event);
  if (error == 0 && result == 0 && (*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST) inject_change(CM_ID, 1);
  return result;
}

EXPORT int rdma_destroy_id(struct rdma_cm_id* id) {
  const int ours = HIT(rdma_destroy_id);
  const int result = REAL(rdma_destroy_id)(id);
  if (ours == 0 && result == 0) inject_change(CM_ID, -1);
  return result;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel* channel) {
  const int ours = HIT(ibv_destroy_comp_channel);
  const int result = REAL(ibv_destroy_comp_channel)(channel);
  if (ours == 0 && result == 0) inject_change(CHANNEL, -1);
  return result;
}

EXPORT int ibv_get_async_event(struct ibv_context* context, struct ibv_async_event* event) {
  FAIL_IF(ibv_get_async_event, -1);
  return REAL(ibv_get_async_event)(context, event);
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel* channel, struct ibv_cq** cq, void** context) {
  FAIL_IF(ibv_get_cq_event, -1);
  return REAL(ibv_get_cq_event)(channel, cq, context);
}

/* ---- system calls ---- */

EXPORT int eventfd(unsigned int value, int flags) {
  FAIL_IF(eventfd, -1);
  return REAL(eventfd)(value, flags);
}

EXPORT int epoll_create1(int flags) {
  FAIL_IF(epoll_create1, -1);
  return REAL(epoll_create1)(flags);
}

/* An entry in the set can always be removed. */
EXPORT int epoll_ctl(int set, int operation, int fd, struct epoll_event* event) {
  if (operation == EPOLL_CTL_DEL) return REAL(epoll_ctl)(set, operation, fd, event);
  FAIL_IF(epoll_ctl, -1);
  return REAL(epoll_ctl)(set, operation, fd, event);
}

EXPORT int epoll_wait(int set, struct epoll_event* events, int capacity, int timeout) {
  FAIL_IF(epoll_wait, -1);
  return REAL(epoll_wait)(set, events, capacity, timeout);
}

EXPORT int poll(struct pollfd* fds, nfds_t count, int timeout) {
  FAIL_IF(poll, -1);
  return REAL(poll)(fds, count, timeout);
}

EXPORT int ppoll(struct pollfd* fds, nfds_t count, const struct timespec* timeout, const sigset_t* mask) {
  FAIL_IF(ppoll, -1);
  return REAL(ppoll)(fds, count, timeout, mask);
}

EXPORT ssize_t read(int fd, void* buffer, size_t size) {
  FAIL_IF(read, -1);
  return REAL(read)(fd, buffer, size);
}

EXPORT int open(const char* path, int flags, ...) {
  va_list args;
  mode_t mode = 0;
  va_start(args, flags);
  if (flags & (O_CREAT | __O_TMPFILE)) mode = va_arg(args, mode_t);
  va_end(args);
  FAIL_IF(open, -1);
  return REAL(open)(path, flags, mode);
}

/* Every command's argument is an int or a pointer; both fit. */
EXPORT int fcntl(int fd, int command, ...) {
  va_list args;
  void* argument = NULL;
  va_start(args, command);
  argument = va_arg(args, void*);
  va_end(args);
  FAIL_IF(fcntl, -1);
  return REAL(fcntl)(fd, command, argument);
}

EXPORT int getifaddrs(struct ifaddrs** list) {
  FAIL_IF(getifaddrs, -1);
  return REAL(getifaddrs)(list);
}

EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*function)(void*), void* argument) {
  const int error = HIT(pthread_create);
  return error > 0 ? error : REAL(pthread_create)(thread, attr, function, argument);
}
