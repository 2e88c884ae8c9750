/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef LIBRPMA_H
#define LIBRPMA_H 1

/*
 * Remote memory access over RDMA: the interface of librpma 1.3.0, compatible in source and binary.
 *
 * Every function that returns int returns 0 or one of the negative RPMA_E_* values, and writes its results on success
 * only, unless it says otherwise. A function NAME_new makes an object that belongs to the caller until NAME_delete,
 * which takes the address of the caller's pointer, sets it to NULL whatever happens, and accepts a pointer to NULL.
 * What a _get_ function gives belongs to the object and lives as long. Each object must be deleted before the one it
 * was made from. Sizes and offsets are in bytes, times in milliseconds.
 *
 * Threads, of which a function's comment names the class:
 *   safe        may be called by any number of threads at once, on the same objects
 *   per object  by any number of threads, each on an object of its own (a connection, a configuration, a region)
 *   alone       no other thread may make or delete objects of the same peer at the same time
 * Making and deleting is never safe on one and the same object.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---- */

/* Something that has no other name. */
#define RPMA_E_UNKNOWN (-100000)
/* The device, the peer or the region cannot do it. */
#define RPMA_E_NOSUPP (-100001)
/* libibverbs, librdmacm or the kernel failed; the log says how. */
#define RPMA_E_PROVIDER (-100002)
/* There is not enough memory. */
#define RPMA_E_NOMEM (-100003)
/* An argument is wrong. */
#define RPMA_E_INVAL (-100004)
/* There is no completion now. */
#define RPMA_E_NO_COMPLETION (-100005)
/* There is no event now; only on a descriptor that does not block. */
#define RPMA_E_NO_EVENT (-100006)
/* Not now, but perhaps if tried again. */
#define RPMA_E_AGAIN (-100007)
/* The CQ's events arrive on the connection's shared completion channel. */
#define RPMA_E_SHARED_CHANNEL (-100008)
/* The connection has no shared completion channel. */
#define RPMA_E_NOT_SHARED_CHNL (-100009)

/*
 * What an error code means, in words. Static; "Unknown error" for any other number.
 * Threads: safe.
 */
const char* rpma_err_2str(int ret);

/* ---- devices ---- */

/* For how long a connection is tried, unless rpma_conn_cfg_set_timeout() says otherwise. */
#define RPMA_DEFAULT_TIMEOUT_MS 1000

/* Whose address it is by which a device is looked for. */
enum rpma_util_ibv_context_type {
  RPMA_UTIL_IBV_CONTEXT_LOCAL, /* one of this machine */
  RPMA_UTIL_IBV_CONTEXT_REMOTE /* a peer's: the device by which it is reached */
};

/*
 * Finds the RDMA device of an address: a name, or an IPv4 or IPv6 address in numbers. The context belongs to librdmacm,
 * which keeps it for the life of the process.
 * Errors: RPMA_E_INVAL: addr or ibv_ctx_ptr is NULL, type is none of the enum; RPMA_E_NOMEM; RPMA_E_PROVIDER: there is
 * no such address or device, or it does not answer within RPMA_DEFAULT_TIMEOUT_MS. Blocks that long. Threads: alone.
 */
int rpma_utils_get_ibv_context(const char* addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context** ibv_ctx_ptr);

/*
 * Whether regions on this device may be registered without being pinned (on-demand paging of reads and writes): 1 or 0.
 * Errors: RPMA_E_INVAL: a pointer is NULL; RPMA_E_PROVIDER: the device cannot be asked. Threads: safe.
 */
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context* ibv_ctx, int* is_odp_capable);

/* ---- what a peer tells of itself ---- */

struct rpma_peer_cfg;

/*
 * New, with direct write to persistent memory not supported.
 * Errors: RPMA_E_INVAL: pcfg_ptr is NULL; RPMA_E_NOMEM. Threads: safe.
 */
int rpma_peer_cfg_new(struct rpma_peer_cfg** pcfg_ptr);

/* Errors: RPMA_E_INVAL: pcfg_ptr is NULL. Threads: per object. */
int rpma_peer_cfg_delete(struct rpma_peer_cfg** pcfg_ptr);

/*
 * Says whether what this peer is written goes to persistent memory without stopping in a cache that loses it.
 * Errors: RPMA_E_INVAL: pcfg is NULL. Threads: safe.
 */
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg* pcfg, bool supported);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg* pcfg, bool* supported);

/*
 * Writes the configuration for the wire: rpma_peer_cfg_get_descriptor_size() bytes at desc.
 * Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg* pcfg, void* desc);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg* pcfg, size_t* desc_size);

/*
 * Makes a configuration of what a peer sent: desc_size bytes, of which those beyond the first are ignored.
 * Errors: RPMA_E_INVAL: a pointer is NULL, desc_size is 0; RPMA_E_NOMEM. Threads: safe.
 */
int rpma_peer_cfg_from_descriptor(const void* desc, size_t desc_size, struct rpma_peer_cfg** pcfg_ptr);

/* ---- peers ---- */

struct rpma_peer;

/*
 * A peer is this process as others on the network see it, on one device. It takes a protection domain. ibv_ctx must be
 * librdmacm's, as rpma_utils_get_ibv_context() gives it, and outlive the peer.
 * Errors: RPMA_E_INVAL: a pointer is NULL; RPMA_E_NOMEM; RPMA_E_PROVIDER: the device refuses, or is one that dapple
 * refuses (docs/rpma.md); RPMA_E_UNKNOWN: the device refuses without saying why. Threads: safe.
 */
int rpma_peer_new(struct ibv_context* ibv_ctx, struct rpma_peer** peer_ptr);

/*
 * Everything made from the peer must have been deleted before.
 * Errors: RPMA_E_INVAL: peer_ptr is NULL; RPMA_E_PROVIDER: the device refuses. Threads: per object.
 */
int rpma_peer_delete(struct rpma_peer** peer_ptr);

/* ---- memory ---- */

struct rpma_mr_local;
struct rpma_mr_remote;

/* What a region is for; any of them together. */
#define RPMA_MR_USAGE_READ_SRC (1 << 0)
#define RPMA_MR_USAGE_READ_DST (1 << 1)
#define RPMA_MR_USAGE_WRITE_SRC (1 << 2)
#define RPMA_MR_USAGE_WRITE_DST (1 << 3)
#define RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY (1 << 4)
#define RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT (1 << 5)
#define RPMA_MR_USAGE_SEND (1 << 6)
#define RPMA_MR_USAGE_RECV (1 << 7)

/*
 * Registers size bytes at ptr, which must stay mapped until rpma_mr_dereg(). usage: of RPMA_MR_USAGE_*. Memory that the
 * device cannot pin is registered with on-demand paging where it has that.
 * Errors: RPMA_E_INVAL: a pointer is NULL, size is 0, usage is 0 or has another bit; RPMA_E_NOMEM; RPMA_E_PROVIDER: the
 * device refuses. Threads: alone.
 */
int rpma_mr_reg(struct rpma_peer* peer, void* ptr, size_t size, int usage, struct rpma_mr_local** mr_ptr);

/* Errors: RPMA_E_INVAL: mr_ptr is NULL; RPMA_E_PROVIDER: the device refuses. Threads: alone. */
int rpma_mr_dereg(struct rpma_mr_local** mr_ptr);

/*
 * Writes what a peer needs to reach the region: rpma_mr_get_descriptor_size() bytes at desc. docs/rpma.md has the
 * format. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_mr_get_descriptor(const struct rpma_mr_local* mr, void* desc);

/*
 * Makes a region of what a peer sent: desc_size bytes, 21 or more. rpma_mr_remote_delete() frees it.
 * Errors: RPMA_E_INVAL: a pointer is NULL, fewer bytes, no usage; RPMA_E_NOSUPP: the region goes beyond the last
 * address; RPMA_E_NOMEM. Threads: safe.
 */
int rpma_mr_remote_from_descriptor(const void* desc, size_t desc_size, struct rpma_mr_remote** mr_ptr);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_mr_get_descriptor_size(const struct rpma_mr_local* mr, size_t* desc_size);

/* Where the region begins. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_mr_get_ptr(const struct rpma_mr_local* mr, void** ptr);

/* How many bytes it has. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_mr_get_size(const struct rpma_mr_local* mr, size_t* size);

/* How many bytes it has. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_mr_remote_get_size(const struct rpma_mr_remote* mr, size_t* size);

/*
 * Which flushes the region was registered for: RPMA_MR_USAGE_FLUSH_TYPE_*, both or 0.
 * Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote* mr, int* flush_type);

/* Errors: RPMA_E_INVAL: mr_ptr is NULL. Threads: per object. */
int rpma_mr_remote_delete(struct rpma_mr_remote** mr_ptr);

/*
 * Tells the device what will be done with a part of the region, in pieces of 2 GiB. advice and flags: as for
 * ibv_advise_mr(3).
 * Errors: RPMA_E_INVAL: mr is NULL, the part is not in the region, or advice and flags do not suit it; RPMA_E_NOSUPP:
 * the device takes no such advice; RPMA_E_PROVIDER: it failed otherwise. Threads: safe.
 */
int rpma_mr_advise(struct rpma_mr_local* mr, size_t offset, size_t len, int advice, uint32_t flags);

/* ---- shared receive queues ---- */

struct rpma_srq_cfg;
struct rpma_srq;
struct rpma_cq;

/*
 * New: room for 20 receives, and a CQ of its own of 20 entries.
 * Errors: RPMA_E_INVAL: cfg_ptr is NULL; RPMA_E_NOMEM. Threads: safe.
 */
int rpma_srq_cfg_new(struct rpma_srq_cfg** cfg_ptr);

/* Errors: RPMA_E_INVAL: cfg_ptr is NULL. Threads: per object. */
int rpma_srq_cfg_delete(struct rpma_srq_cfg** cfg_ptr);

/* How many receives may be posted at a time. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe. */
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg* cfg, uint32_t rq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg* cfg, uint32_t* rq_size);

/* Entries of the queue's own CQ; 0: it has none, and receives complete on their connections' CQs. Errors, threads: as
 * above. */
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg* cfg, uint32_t rcq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg* cfg, uint32_t* rcq_size);

/*
 * A receive queue for any number of connections. cfg: NULL stands for the defaults; it is not kept.
 * Errors: RPMA_E_INVAL: peer or srq_ptr is NULL; RPMA_E_NOMEM; RPMA_E_PROVIDER: the device refuses. Threads: alone.
 */
int rpma_srq_new(struct rpma_peer* peer, struct rpma_srq_cfg* cfg, struct rpma_srq** srq_ptr);

/*
 * Its connections must have been deleted before.
 * Errors: RPMA_E_INVAL: srq_ptr is NULL; RPMA_E_PROVIDER: the device refuses. Threads: alone.
 */
int rpma_srq_delete(struct rpma_srq** srq_ptr);

/*
 * Posts a receive of up to len bytes to offset of dst, or of none with dst NULL; op_context becomes wr_id.
 * Errors: RPMA_E_INVAL: srq is NULL, dst is NULL and offset or len is not 0, len does not fit into 32 bits;
 * RPMA_E_PROVIDER: the device refuses, a full queue included. Threads: safe.
 */
int rpma_srq_recv(struct rpma_srq* srq, struct rpma_mr_local* dst, size_t offset, size_t len, const void* op_context);

/* The queue's own CQ, NULL if it has none. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_srq_get_rcq(const struct rpma_srq* srq, struct rpma_cq** rcq_ptr);

/* ---- configuration of connections ---- */

struct rpma_conn_cfg;

/*
 * New: a time-out of 1000 ms, queues and CQ of 10 entries, no CQ of its own for receives, no shared completion channel,
 * no shared receive queue.
 * Errors: RPMA_E_INVAL: cfg_ptr is NULL; RPMA_E_NOMEM. Threads: safe.
 */
int rpma_conn_cfg_new(struct rpma_conn_cfg** cfg_ptr);

/* Errors: RPMA_E_INVAL: cfg_ptr is NULL. Threads: per object. */
int rpma_conn_cfg_delete(struct rpma_conn_cfg** cfg_ptr);

/*
 * How long, in milliseconds, each of the two steps of finding the peer may take.
 * Errors: RPMA_E_INVAL: cfg is NULL, timeout_ms is negative. Threads: safe.
 */
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg* cfg, int timeout_ms);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg* cfg, int* timeout_ms);

/* Entries of the connection's CQ. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe. */
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg* cfg, uint32_t cq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg* cfg, uint32_t* cq_size);

/* Entries of a CQ for receives alone; 0: they share the other. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe. */
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg* cfg, uint32_t rcq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg* cfg, uint32_t* rcq_size);

/* How many requests may be posted at a time. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe. */
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg* cfg, uint32_t sq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg* cfg, uint32_t* sq_size);

/* How many receives may be posted at a time. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe. */
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg* cfg, uint32_t rq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg* cfg, uint32_t* rq_size);

/*
 * Whether the connection's CQs tell of completions on one channel (rpma_conn_wait(), rpma_conn_get_compl_fd()) or each
 * on its own (rpma_cq_wait(), rpma_cq_get_fd()). Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe.
 */
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg* cfg, bool shared);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg* cfg, bool* shared);

/*
 * Connections receive from this queue instead of one of their own; NULL: from their own. It must outlive them, and
 * cannot have a CQ of its own where the completion channel is shared. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe.
 */
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg* cfg, struct rpma_srq* srq);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg* cfg, struct rpma_srq** srq_ptr);

/* ---- connections ---- */

struct rpma_conn;
struct rpma_conn_req;
struct rpma_ep;

enum rpma_conn_event {
  RPMA_CONN_UNDEFINED = -1, /* none of the others */
  RPMA_CONN_ESTABLISHED,    /* data may flow */
  RPMA_CONN_CLOSED,         /* one side has disconnected */
  RPMA_CONN_LOST,           /* an error, or the device is gone */
  RPMA_CONN_REJECTED,       /* the peer does not want it, or nobody listens */
  RPMA_CONN_UNREACHABLE     /* there is no answer */
};

/* The event in words. Static; "Unsupported connection event" for any other number. Threads: safe. */
const char* rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

/* What a program sends along while connecting, and what it got: len bytes at ptr. */
struct rpma_conn_private_data {
  void* ptr;
  uint8_t len;
};

/*
 * Listens on an address of this machine. Requests that were not taken are lost at rpma_ep_shutdown(), and those that
 * were taken must have been connected or deleted before. port: a number or a service's name. Errors: RPMA_E_INVAL: a
 * pointer is NULL; RPMA_E_NOMEM; RPMA_E_PROVIDER: there is no such address or port, it is taken, or the kernel refuses.
 * Threads: alone.
 */
int rpma_ep_listen(struct rpma_peer* peer, const char* addr, const char* port, struct rpma_ep** ep_ptr);

/* Errors: RPMA_E_INVAL: ep_ptr is NULL; RPMA_E_PROVIDER: the kernel refuses. Threads: alone. */
int rpma_ep_shutdown(struct rpma_ep** ep_ptr);

/*
 * A descriptor that is readable while there is a request. The caller may poll it and make it non-blocking, and must not
 * close it. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_ep_get_fd(const struct rpma_ep* ep, int* fd);

/*
 * Takes the next request; waits for it unless the descriptor was made non-blocking. cfg, NULL for the defaults, is that
 * of the connection it will become. The request must be connected or deleted, which rejects it.
 * Errors: RPMA_E_INVAL: ep or req_ptr is NULL, the event is no request, or cfg asks for a shared channel and has an SRQ
 * with a CQ of its own; RPMA_E_NO_EVENT: there is none; RPMA_E_NOMEM; RPMA_E_PROVIDER: the kernel or the device
 * refuses; the request is rejected then. Threads: per object.
 */
int rpma_ep_next_conn_req(struct rpma_ep* ep, const struct rpma_conn_cfg* cfg, struct rpma_conn_req** req_ptr);

/*
 * A request to the peer at this address. Looks for it, twice within the configured time-out, and sends nothing yet.
 * Errors: RPMA_E_INVAL: a pointer but cfg is NULL, or cfg asks for a shared channel and has an SRQ with a CQ of its
 * own; RPMA_E_NOMEM; RPMA_E_PROVIDER: there is no way to the address, or the device refuses. Threads: alone.
 */
int rpma_conn_req_new(struct rpma_peer* peer, const char* addr, const char* port, const struct rpma_conn_cfg* cfg,
                      struct rpma_conn_req** req_ptr);

/*
 * Gives the request up; one that a peer made is rejected.
 * Errors: RPMA_E_INVAL: req_ptr is NULL; RPMA_E_PROVIDER: the kernel or the device refuses; everything is freed that
 * can be. Threads: alone.
 */
int rpma_conn_req_delete(struct rpma_conn_req** req_ptr);

/*
 * Connects, or accepts. Does not wait: rpma_conn_next_event() tells the outcome. pdata, NULL for none, is what the peer
 * gets: at most 56 bytes of a request. The request is gone and *req_ptr NULL afterwards, also after a failure. Errors:
 * RPMA_E_INVAL: req_ptr, *req_ptr or conn_ptr is NULL, or pdata has no bytes; RPMA_E_NOMEM; RPMA_E_PROVIDER: the kernel
 * or the device refuses. Threads: per object.
 */
int rpma_conn_req_connect(struct rpma_conn_req** req_ptr, const struct rpma_conn_private_data* pdata,
                          struct rpma_conn** conn_ptr);

/*
 * Posts a receive before there is a connection, so that it is there when the peer sends at once. Like rpma_recv().
 * Errors: RPMA_E_INVAL: req or dst is NULL, len does not fit into 32 bits; RPMA_E_PROVIDER: the device refuses.
 * Threads: per object.
 */
int rpma_conn_req_recv(struct rpma_conn_req* req, struct rpma_mr_local* dst, size_t offset, size_t len,
                       const void* op_context);

/*
 * What the peer sent along; ptr NULL and len 0 if nothing. Some networks add zeros at the end. It is freed with the
 * request. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_conn_req_get_private_data(const struct rpma_conn_req* req, struct rpma_conn_private_data* pdata);

/* A descriptor that is readable while there is an event, like rpma_ep_get_fd(). */
int rpma_conn_get_event_fd(const struct rpma_conn* conn, int* fd);

/*
 * Takes the connection's next event; waits for it unless the descriptor was made non-blocking.
 * Errors: RPMA_E_INVAL: a pointer is NULL; RPMA_E_NO_EVENT: there is none; RPMA_E_UNKNOWN: it is none of the enum, and
 * *event is RPMA_CONN_UNDEFINED; RPMA_E_NOMEM; RPMA_E_PROVIDER: the kernel refuses. Threads: per object.
 */
int rpma_conn_next_event(struct rpma_conn* conn, enum rpma_conn_event* event);

/*
 * What the peer sent along; ptr NULL and len 0 if nothing, or not yet. It is freed with the connection.
 * Errors: RPMA_E_INVAL: a pointer is NULL. Threads: per object.
 */
int rpma_conn_get_private_data(const struct rpma_conn* conn, struct rpma_conn_private_data* pdata);

/*
 * Takes over what the peer told of itself, which rpma_flush() goes by. pcfg is not kept.
 * Errors: RPMA_E_INVAL: a pointer is NULL. Threads: per object.
 */
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn* conn, const struct rpma_peer_cfg* pcfg);

/* The number by which a completion in a CQ of several connections names this one. Errors: RPMA_E_INVAL: a pointer is
 * NULL. Threads: safe. */
int rpma_conn_get_qp_num(const struct rpma_conn* conn, uint32_t* qp_num);

/* The connection's CQ. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_get_cq(const struct rpma_conn* conn, struct rpma_cq** cq_ptr);

/*
 * The connection's CQ for receives; NULL where they complete on the other, or on an SRQ's own.
 * Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_conn_get_rcq(const struct rpma_conn* conn, struct rpma_cq** rcq_ptr);

/*
 * Begins to disconnect; RPMA_CONN_CLOSED tells both sides. What was posted and is not complete is flushed.
 * Errors: RPMA_E_INVAL: conn is NULL; RPMA_E_PROVIDER: the kernel refuses. Threads: per object.
 */
int rpma_conn_disconnect(struct rpma_conn* conn);

/*
 * Errors: RPMA_E_INVAL: conn_ptr is NULL; RPMA_E_PROVIDER: the kernel or the device refuses; everything is freed that
 * can be. Threads: per object.
 */
int rpma_conn_delete(struct rpma_conn** conn_ptr);

/* ---- data ---- */

/* When a request makes a completion: if it fails, or in any case. One of the two must be given. */
#define RPMA_F_COMPLETION_ON_ERROR (1 << 0)
#define RPMA_F_COMPLETION_ALWAYS (1 << 1 | RPMA_F_COMPLETION_ON_ERROR)

/*
 * Of all requests: they return once posted; op_context becomes wr_id of the completion. Buffers belong to the device
 * until the completion, or that of a later request of the same connection. Offsets and lengths are checked by the
 * device, whose answer is a completion with an error. A request that cannot make a completion must be followed by one
 * that does before the queue is full. Errors of all: RPMA_E_PROVIDER: the device refuses, a full queue included.
 * Threads of all: per object (the connection).
 */

/*
 * Reads len bytes from the peer's region to the local one. Both NULL, with everything else 0: nothing is moved.
 * Errors: RPMA_E_INVAL: conn is NULL, flags is 0, one region only is NULL, both are and an offset or len is not 0, len
 * does not fit into 32 bits.
 */
int rpma_read(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t dst_offset, const struct rpma_mr_remote* src,
              size_t src_offset, size_t len, int flags, const void* op_context);

/* Writes len bytes from the local region to the peer's. Errors: as rpma_read(). */
int rpma_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, const struct rpma_mr_local* src,
               size_t src_offset, size_t len, int flags, const void* op_context);

/* Like rpma_write(), and the peer gets a completion with imm, in network order, for which it must have posted a
 * receive. */
int rpma_write_with_imm(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
                        const struct rpma_mr_local* src, size_t src_offset, size_t len, int flags, uint32_t imm,
                        const void* op_context);

#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

/*
 * Writes 8 bytes such that whoever reads them at the peer sees all or none, and after what was flushed and read before.
 * The bytes are taken before it returns. Natively where the device and the peer can, and else as an inline Write, which
 * devices store in one piece where the address is a multiple of 8. Errors: RPMA_E_INVAL: conn, dst or src is NULL,
 * dst_offset is no multiple of 8, flags is 0.
 */
int rpma_atomic_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, const char src[8],
                      int flags, const void* op_context);

enum rpma_flush_type {
  RPMA_FLUSH_TYPE_PERSISTENT, /* until it survives a loss of power */
  RPMA_FLUSH_TYPE_VISIBILITY  /* until everybody at the peer sees it */
};

/*
 * Completes once what was written before to these len bytes has got as far as type says. Natively where the device and
 * the peer can, and else by a Read, which pushes writes before it. Errors: RPMA_E_INVAL: conn or dst is NULL, type is
 * none of the enum, flags is 0, dst_offset is not in the region, or the flush is native and the bytes are not all in
 * the region; RPMA_E_NOSUPP: the region was not registered for this type; or it is RPMA_FLUSH_TYPE_PERSISTENT, and the
 * peer has not said (rpma_conn_apply_remote_peer_cfg()) that it writes to persistent memory directly.
 */
int rpma_flush(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, size_t len,
               enum rpma_flush_type type, int flags, const void* op_context);

/*
 * Sends len bytes, or none with src NULL.
 * Errors: RPMA_E_INVAL: conn is NULL, flags is 0, src is NULL and offset or len is not 0, len does not fit into 32
 * bits.
 */
int rpma_send(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len, int flags,
              const void* op_context);

/* Like rpma_send(), with imm in the peer's completion, in network order. */
int rpma_send_with_imm(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len, int flags,
                       uint32_t imm, const void* op_context);

/*
 * Posts a receive of up to len bytes, or of none with dst NULL. Always makes a completion.
 * Errors: RPMA_E_INVAL: conn is NULL, dst is NULL and offset or len is not 0, len does not fit into 32 bits.
 */
int rpma_recv(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t offset, size_t len, const void* op_context);

/* ---- completions ---- */

/*
 * A descriptor that is readable while the CQ has something to tell: rpma_cq_wait() will not block, and must be called.
 * Like rpma_ep_get_fd(). Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_cq_get_fd(const struct rpma_cq* cq, int* fd);

/*
 * Waits until the CQ tells of completions; then take all there are with rpma_cq_get_wc(). It may find none: they may
 * have been taken before. Errors: RPMA_E_INVAL: cq is NULL; RPMA_E_NO_COMPLETION: the descriptor was made non-blocking
 * and there is nothing, or the wait was interrupted; RPMA_E_SHARED_CHANNEL; RPMA_E_PROVIDER: the device refuses.
 * Threads: safe.
 */
int rpma_cq_wait(struct rpma_cq* cq);

/*
 * Takes up to num_entries completions to wc. num_entries_got may be NULL if num_entries is 1.
 * Errors: RPMA_E_INVAL: cq or wc is NULL, num_entries is less than 1, or more and num_entries_got is NULL;
 * RPMA_E_NO_COMPLETION: there is none; RPMA_E_PROVIDER: the device refuses; RPMA_E_UNKNOWN: its answer makes no sense.
 * Threads: safe.
 */
int rpma_cq_get_wc(struct rpma_cq* cq, int num_entries, struct ibv_wc* wc, int* num_entries_got);

/* A flag of rpma_conn_wait(), which always waits. */
#define RPMA_W_WAIT_FOR_COMPLETION (1)

/* The descriptor of the shared completion channel. Errors: RPMA_E_INVAL: a pointer is NULL; RPMA_E_NOT_SHARED_CHNL.
 * Threads: safe. */
int rpma_conn_get_compl_fd(const struct rpma_conn* conn, int* fd);

/*
 * Like rpma_cq_wait(), on the shared completion channel; tells which of the connection's CQs it was, and, unless is_rcq
 * is NULL, whether it is that for receives. flags: ignored. Errors: RPMA_E_INVAL: conn or cq is NULL;
 * RPMA_E_NOT_SHARED_CHNL; RPMA_E_NO_COMPLETION: as rpma_cq_wait(); RPMA_E_UNKNOWN: it is neither CQ; RPMA_E_PROVIDER:
 * the device refuses. Threads: safe.
 */
int rpma_conn_wait(struct rpma_conn* conn, int flags, struct rpma_cq** cq, bool* is_rcq);

/* ---- log ---- */

enum rpma_log_level {
  RPMA_LOG_DISABLED = -1, /* as a threshold: nothing */
  RPMA_LOG_LEVEL_FATAL,   /* the library cannot go on */
  RPMA_LOG_LEVEL_ERROR,   /* a call failed */
  RPMA_LOG_LEVEL_WARNING, /* something is strange */
  RPMA_LOG_LEVEL_NOTICE,  /* connections come and go */
  RPMA_LOG_LEVEL_INFO,    /* how things will be done */
  RPMA_LOG_LEVEL_DEBUG    /* for developers of the library */
};

enum rpma_log_threshold {
  RPMA_LOG_THRESHOLD,     /* messages beyond it are not made; RPMA_LOG_LEVEL_WARNING at first */
  RPMA_LOG_THRESHOLD_AUX, /* of these, what the default function also prints on stderr; RPMA_LOG_DISABLED at first */
  RPMA_LOG_THRESHOLD_MAX
};

/*
 * Errors: RPMA_E_INVAL: threshold is none of the first two, level none of the enum. Threads: safe.
 */
int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level);

/* Errors: RPMA_E_INVAL: threshold is none of the first two, level is NULL. Threads: safe. */
int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level* level);

/*
 * What is called for each message: its level, where it comes from, and what to print, with its newline, in printf(3)'s
 * way. It is called by whichever thread has something to say, also by several at once, and must not call this library.
 */
typedef void rpma_log_function(enum rpma_log_level level, const char* file_name, const int line_no,
                               const char* function_name, const char* message_format, ...);

/* Writes to syslog(3) as the program has it opened, facility local7, and to stderr as RPMA_LOG_THRESHOLD_AUX says. */
#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

/* Cannot fail. Threads: safe. */
int rpma_log_set_function(rpma_log_function* log_function);

/* ---- what the original lacks ---- */

/* Defined where the functions below are. */
#define RPMA_HAS_FEATURES 1

/* The features that a program can ask about. Values may be added at the end. */
enum rpma_feature {
  RPMA_FEATURE_NATIVE_ATOMIC_WRITE,     /* rpma_atomic_write() is an RDMA Atomic Write */
  RPMA_FEATURE_NATIVE_FLUSH_VISIBILITY, /* rpma_flush() is an RDMA Flush, of either type */
  RPMA_FEATURE_NATIVE_FLUSH_PERSISTENT,
  RPMA_FEATURE_DIRECT_WRITE_TO_PMEM /* what a device writes to persistent memory survives a loss of power */
};

/*
 * Tells if the peer's own machine has a feature. A native operation then takes a peer that has it as well. To find out
 * what libibverbs can do it may make a queue pair and destroy it. reason: NULL, or set to why, in a line for people;
 * static. Errors: RPMA_E_INVAL: peer or has is NULL, or feature is none of the enum; RPMA_E_PROVIDER: the queues for
 * that cannot be made. Threads: safe.
 */
int rpma_peer_has_feature(const struct rpma_peer* peer, enum rpma_feature feature, bool* has, const char** reason);

/*
 * Tells if a connection has a feature: for a native operation, whether requests for the region mr will be native, and
 * with mr NULL whether this side can do them; for RPMA_FEATURE_DIRECT_WRITE_TO_PMEM, what
 * rpma_conn_apply_remote_peer_cfg() took over. It moves nothing. reason: as above. Errors: RPMA_E_INVAL: conn or has is
 * NULL, or feature is none of the enum. Threads: per object.
 */
int rpma_conn_has_feature(const struct rpma_conn* conn, const struct rpma_mr_remote* mr, enum rpma_feature feature,
                          bool* has, const char** reason);

/*
 * Sets direct_write_to_pmem as rpma_peer_has_feature() answers: true only where the machine says so, which is with
 * caches that survive a loss of power. Whoever knows better calls rpma_peer_cfg_set_direct_write_to_pmem() instead.
 * Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_peer_cfg_set_from_platform(struct rpma_peer_cfg* pcfg, const struct rpma_peer* peer);

#ifdef __cplusplus
}
#endif

#endif /* LIBRPMA_H */
