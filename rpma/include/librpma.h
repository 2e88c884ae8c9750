/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef LIBRPMA_H
#define LIBRPMA_H 1

/*
 * Remote memory access over RDMA: the interface of librpma 1.3.0, compatible in source and binary.
 *
 * The life of a connection:
 *
 *   server                                client
 *   rpma_utils_get_ibv_context(), rpma_peer_new(): the device of an address
 *   rpma_mr_reg(): memory for transfers
 *   rpma_ep_listen()
 *   rpma_ep_next_conn_req()               rpma_conn_req_new()
 *   rpma_conn_req_connect(), on the server with rpma_mr_get_descriptor() of its memory as private data
 *   rpma_conn_next_event(): RPMA_CONN_ESTABLISHED
 *                                         rpma_conn_get_private_data(), rpma_mr_remote_from_descriptor()
 *                                         rpma_write() ..., rpma_flush(): the data is in the server's memory
 *                                         rpma_conn_get_cq(), rpma_cq_wait(), rpma_cq_get_wc(): the flush is complete
 *   rpma_conn_next_event()                rpma_conn_disconnect(), rpma_conn_next_event()
 *   both get RPMA_CONN_CLOSED: rpma_conn_delete(), rpma_mr_dereg(), rpma_mr_remote_delete()
 *   rpma_ep_shutdown(), rpma_peer_delete()
 *
 * Every function that returns int returns 0 or one of the negative RPMA_E_* values, and writes its results on success
 * only, unless its comment says otherwise. A function NAME_new makes an object that belongs to the caller until
 * NAME_delete. NAME_delete takes the address of the caller's pointer, always sets the pointer to NULL, and accepts a
 * pointer to NULL. The result of a _get_ function belongs to the object and lives as long. Delete each object before
 * the object from which it was made. Sizes and offsets are in bytes, times in milliseconds.
 *
 * Threads: a function's comment names its class:
 *   safe        any number of threads may call it at the same time, with the same objects
 *   per object  any number of threads may call it with different objects (connections, configurations, regions)
 *   alone       no other thread may make or delete objects of the same peer at the same time
 * Making and deleting the same object is never safe.
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

/* An error without another code. */
#define RPMA_E_UNKNOWN (-100000)
/* The device, the peer or the region does not support the operation. */
#define RPMA_E_NOSUPP (-100001)
/* libibverbs, librdmacm or the kernel failed; the log has the reason. */
#define RPMA_E_PROVIDER (-100002)
/* There is not enough memory. */
#define RPMA_E_NOMEM (-100003)
/* An argument is wrong. */
#define RPMA_E_INVAL (-100004)
/* No completion waits. */
#define RPMA_E_NO_COMPLETION (-100005)
/* No event waits; only on a non-blocking descriptor. */
#define RPMA_E_NO_EVENT (-100006)
/* The call may succeed if it is repeated. */
#define RPMA_E_AGAIN (-100007)
/* The CQ's events arrive on the connection's shared completion channel. */
#define RPMA_E_SHARED_CHANNEL (-100008)
/* The connection has no shared completion channel. */
#define RPMA_E_NOT_SHARED_CHNL (-100009)

/*
 * Describes an error code in words. Static; "Unknown error" for any other number. Threads: safe.
 */
const char* rpma_err_2str(int ret);

/* ---- devices ---- */

/* The time-out of a connection, unless rpma_conn_cfg_set_timeout() changes it. */
#define RPMA_DEFAULT_TIMEOUT_MS 1000

/* The owner of the address that identifies a device. */
enum rpma_util_ibv_context_type {
  RPMA_UTIL_IBV_CONTEXT_LOCAL, /* one of this machine */
  RPMA_UTIL_IBV_CONTEXT_REMOTE /* a peer's: the device by which it is reached */
};

/*
 * Finds the RDMA device of an address: a name, or a numeric IPv4 or IPv6 address. The context belongs to librdmacm,
 * which keeps it until the process ends. Errors: RPMA_E_INVAL: addr or ibv_ctx_ptr is NULL, type is not in the enum;
 * RPMA_E_PROVIDER: the address or device does not exist, or does not answer within RPMA_DEFAULT_TIMEOUT_MS, or there
 * is not enough memory. Blocks for at most this time, after the name is resolved. Threads: alone.
 */
int rpma_utils_get_ibv_context(const char* addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context** ibv_ctx_ptr);

/*
 * Tells whether the device can register regions without pinning (on-demand paging of reads and writes): 1 or 0. Errors:
 * RPMA_E_INVAL: a pointer is NULL; RPMA_E_PROVIDER: the query failed. Threads: safe.
 */
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context* ibv_ctx, int* is_odp_capable);

/* ---- configuration of a peer ---- */

struct rpma_peer_cfg;

/*
 * Makes a configuration without direct write to persistent memory. Errors: RPMA_E_INVAL: pcfg_ptr is NULL;
 * RPMA_E_NOMEM. Threads: safe.
 */
int rpma_peer_cfg_new(struct rpma_peer_cfg** pcfg_ptr);

/* Errors: RPMA_E_INVAL: pcfg_ptr is NULL. Threads: per object. */
int rpma_peer_cfg_delete(struct rpma_peer_cfg** pcfg_ptr);

/*
 * Declares whether data that is written to this peer goes to persistent memory without stopping in a cache that loses
 * it. Errors: RPMA_E_INVAL: pcfg is NULL. Threads: safe.
 */
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg* pcfg, bool supported);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg* pcfg, bool* supported);

/*
 * Writes the descriptor of the configuration: rpma_peer_cfg_get_descriptor_size() bytes at desc. Errors: RPMA_E_INVAL:
 * a pointer is NULL. Threads: safe.
 */
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg* pcfg, void* desc);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg* pcfg, size_t* desc_size);

/*
 * Makes a configuration from a peer's descriptor: desc_size bytes, of which only the first is used. Errors:
 * RPMA_E_INVAL: a pointer is NULL, desc_size is 0; RPMA_E_NOMEM. Threads: safe.
 */
int rpma_peer_cfg_from_descriptor(const void* desc, size_t desc_size, struct rpma_peer_cfg** pcfg_ptr);

/* ---- peers ---- */

struct rpma_peer;

/*
 * A peer represents this process on one device. It has a protection domain. ibv_ctx must be librdmacm's, from
 * rpma_utils_get_ibv_context(), and must outlive the peer. Errors: RPMA_E_INVAL: a pointer is NULL; RPMA_E_NOMEM;
 * RPMA_E_PROVIDER: the device refuses, or dapple refuses the device, see librpma(7); RPMA_E_UNKNOWN: the device refuses
 * without a reason. Threads: safe.
 */
int rpma_peer_new(struct ibv_context* ibv_ctx, struct rpma_peer** peer_ptr);

/*
 * Delete all objects that were made from the peer first. Errors: RPMA_E_INVAL: peer_ptr is NULL; RPMA_E_PROVIDER: the
 * device refuses. Threads: per object.
 */
int rpma_peer_delete(struct rpma_peer** peer_ptr);

/* ---- memory ---- */

struct rpma_mr_local;
struct rpma_mr_remote;

/* The purposes of a region; may be combined. */
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
 * device cannot pin is registered with on-demand paging, if the device has it. Errors: RPMA_E_INVAL: a pointer is NULL,
 * size is 0, usage is 0 or has another bit; RPMA_E_NOMEM; RPMA_E_PROVIDER: the device refuses. Threads: alone.
 */
int rpma_mr_reg(struct rpma_peer* peer, void* ptr, size_t size, int usage, struct rpma_mr_local** mr_ptr);

/* Errors: RPMA_E_INVAL: mr_ptr is NULL; RPMA_E_PROVIDER: the device refuses. Threads: alone. */
int rpma_mr_dereg(struct rpma_mr_local** mr_ptr);

/*
 * Writes the region's descriptor for a peer: as many bytes at desc as rpma_mr_get_descriptor_size() stores.
 * rpma_mr_get_descriptor(3) has the format. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_mr_get_descriptor(const struct rpma_mr_local* mr, void* desc);

/*
 * Makes a region from a peer's descriptor: desc_size bytes, 21 or more. rpma_mr_remote_delete() frees it. Errors:
 * RPMA_E_INVAL: a pointer is NULL, fewer bytes, no usage; RPMA_E_NOSUPP: the region goes beyond the last address;
 * RPMA_E_NOMEM. Threads: safe.
 */
int rpma_mr_remote_from_descriptor(const void* desc, size_t desc_size, struct rpma_mr_remote** mr_ptr);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_mr_get_descriptor_size(const struct rpma_mr_local* mr, size_t* desc_size);

/* The start of the region. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_mr_get_ptr(const struct rpma_mr_local* mr, void** ptr);

/* The size of the region. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_mr_get_size(const struct rpma_mr_local* mr, size_t* size);

/* The size of the region. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_mr_remote_get_size(const struct rpma_mr_remote* mr, size_t* size);

/*
 * The flushes for which the region was registered: RPMA_MR_USAGE_FLUSH_TYPE_*, both or 0. Errors: RPMA_E_INVAL: a
 * pointer is NULL. Threads: safe.
 */
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote* mr, int* flush_type);

/* Errors: RPMA_E_INVAL: mr_ptr is NULL. Threads: per object. */
int rpma_mr_remote_delete(struct rpma_mr_remote** mr_ptr);

/*
 * Gives the device advice about a part of the region, in pieces of 2 GiB. advice and flags: as for ibv_advise_mr(3).
 * Errors: RPMA_E_INVAL: mr is NULL, the part is not in the region, or advice and flags do not suit the region;
 * RPMA_E_NOSUPP: the device does not support the advice; RPMA_E_PROVIDER: the call failed for another reason. Threads:
 * safe.
 */
int rpma_mr_advise(struct rpma_mr_local* mr, size_t offset, size_t len, int advice, uint32_t flags);

/* ---- shared receive queues ---- */

struct rpma_srq_cfg;
struct rpma_srq;
struct rpma_cq;

/*
 * Makes a configuration with room for 20 receives, and with its own CQ of 20 entries. Errors: RPMA_E_INVAL: cfg_ptr is
 * NULL; RPMA_E_NOMEM. Threads: safe.
 */
int rpma_srq_cfg_new(struct rpma_srq_cfg** cfg_ptr);

/* Errors: RPMA_E_INVAL: cfg_ptr is NULL. Threads: per object. */
int rpma_srq_cfg_delete(struct rpma_srq_cfg** cfg_ptr);

/* The number of receives that may be outstanding. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe. */
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg* cfg, uint32_t rq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg* cfg, uint32_t* rq_size);

/* Entries of the queue's own CQ; 0: no own CQ, and receives complete on their connections' CQs. Errors, threads: as
 * above. */
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg* cfg, uint32_t rcq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg* cfg, uint32_t* rcq_size);

/*
 * Makes a receive queue for any number of connections. cfg: NULL means the defaults; it is not kept. Errors:
 * RPMA_E_INVAL: peer or srq_ptr is NULL; RPMA_E_NOMEM; RPMA_E_PROVIDER: the device refuses. Threads: alone.
 */
int rpma_srq_new(struct rpma_peer* peer, struct rpma_srq_cfg* cfg, struct rpma_srq** srq_ptr);

/*
 * Delete the queue's connections first. Errors: RPMA_E_INVAL: srq_ptr is NULL; RPMA_E_PROVIDER: the device refuses.
 * Threads: alone.
 */
int rpma_srq_delete(struct rpma_srq** srq_ptr);

/*
 * Posts a receive of up to len bytes at offset of dst, or of no bytes if dst is NULL; op_context becomes wr_id. Errors:
 * RPMA_E_INVAL: srq is NULL, dst is NULL and offset or len is not 0, len does not fit into 32 bits; RPMA_E_PROVIDER:
 * the device refuses, for example because the queue is full. Threads: safe.
 */
int rpma_srq_recv(struct rpma_srq* srq, struct rpma_mr_local* dst, size_t offset, size_t len, const void* op_context);

/* The queue's own CQ, NULL if it has none. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_srq_get_rcq(const struct rpma_srq* srq, struct rpma_cq** rcq_ptr);

/* ---- configuration of connections ---- */

struct rpma_conn_cfg;

/*
 * Makes a configuration with a time-out of 1000 ms, queues and CQ of 10 entries, no separate CQ for receives, no shared
 * completion channel, and no shared receive queue. Errors: RPMA_E_INVAL: cfg_ptr is NULL; RPMA_E_NOMEM. Threads: safe.
 */
int rpma_conn_cfg_new(struct rpma_conn_cfg** cfg_ptr);

/* Errors: RPMA_E_INVAL: cfg_ptr is NULL. Threads: per object. */
int rpma_conn_cfg_delete(struct rpma_conn_cfg** cfg_ptr);

/*
 * The time-out, in milliseconds, of each of the two steps of finding the peer. Errors: RPMA_E_INVAL: cfg is NULL,
 * timeout_ms is negative. Threads: safe.
 */
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg* cfg, int timeout_ms);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg* cfg, int* timeout_ms);

/* Entries of the connection's CQ. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe. */
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg* cfg, uint32_t cq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg* cfg, uint32_t* cq_size);

/* Entries of a CQ for receives alone; 0: receives use the other CQ. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe.
 */
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg* cfg, uint32_t rcq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg* cfg, uint32_t* rcq_size);

/* The number of requests that may be outstanding. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe. */
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg* cfg, uint32_t sq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg* cfg, uint32_t* sq_size);

/* The number of receives that may be outstanding. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe. */
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg* cfg, uint32_t rq_size);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg* cfg, uint32_t* rq_size);

/*
 * Selects one shared completion channel for the connection's CQs (rpma_conn_wait(), rpma_conn_get_compl_fd()), or a
 * channel for each CQ (rpma_cq_wait(), rpma_cq_get_fd()). Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe.
 */
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg* cfg, bool shared);

/* Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg* cfg, bool* shared);

/*
 * Connections receive from this queue, or with NULL from their own queues. The queue must outlive the connections. It
 * cannot have its own CQ if the completion channel is shared. Errors: RPMA_E_INVAL: cfg is NULL. Threads: safe.
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

/* Private data that a program sends or gets when it connects: len bytes at ptr. */
struct rpma_conn_private_data {
  void* ptr;
  uint8_t len;
};

/*
 * Listens on an address of this machine. rpma_ep_shutdown() drops requests that were not taken; requests that were
 * taken stay valid. port: a number or a service's name. Errors: RPMA_E_INVAL: a pointer is NULL; RPMA_E_NOMEM;
 * RPMA_E_PROVIDER: the address or port does not exist or is in use, or the kernel refuses. Threads: alone.
 */
int rpma_ep_listen(struct rpma_peer* peer, const char* addr, const char* port, struct rpma_ep** ep_ptr);

/* Errors: RPMA_E_INVAL: ep_ptr is NULL; RPMA_E_PROVIDER: the kernel refuses. Threads: alone. */
int rpma_ep_shutdown(struct rpma_ep** ep_ptr);

/*
 * A descriptor that is readable while a request waits. The caller may poll it and make it non-blocking, and must not
 * close it. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_ep_get_fd(const struct rpma_ep* ep, int* fd);

/*
 * Takes the next request; waits for it unless the descriptor was made non-blocking. cfg, NULL for the defaults, is the
 * configuration of the future connection. Connect the request or delete it, which rejects it. Errors: RPMA_E_INVAL: ep
 * or req_ptr is NULL, the event is not a request, or cfg has a shared channel and an SRQ with its own CQ;
 * RPMA_E_NO_EVENT: no request waits; RPMA_E_NOMEM; RPMA_E_PROVIDER: the kernel or the device refuses, and the request
 * is rejected. Threads: per object.
 */
int rpma_ep_next_conn_req(struct rpma_ep* ep, const struct rpma_conn_cfg* cfg, struct rpma_conn_req** req_ptr);

/*
 * Makes a request to the peer at this address. Resolves the address in two steps, each within the configured time-out,
 * and sends nothing yet. Errors: RPMA_E_INVAL: a pointer other than cfg is NULL, or cfg has a shared channel and an SRQ
 * with its own CQ; RPMA_E_NOMEM; RPMA_E_PROVIDER: no route leads to the address, or the device refuses. Threads: alone.
 */
int rpma_conn_req_new(struct rpma_peer* peer, const char* addr, const char* port, const struct rpma_conn_cfg* cfg,
                      struct rpma_conn_req** req_ptr);

/*
 * Deletes the request; rejects it if a peer made it. Errors: RPMA_E_INVAL: req_ptr is NULL; RPMA_E_PROVIDER: the kernel
 * or the device refuses; the call still frees as much as possible. Threads: alone.
 */
int rpma_conn_req_delete(struct rpma_conn_req** req_ptr);

/*
 * Connects, or accepts. Does not wait: rpma_conn_next_event() reports the result. pdata, NULL for none, is private data
 * for the peer: at most 56 bytes with a request. The call consumes the request and sets *req_ptr to NULL, also after a
 * failure. Errors: RPMA_E_INVAL: req_ptr, *req_ptr or conn_ptr is NULL, or pdata has no bytes; RPMA_E_NOMEM;
 * RPMA_E_PROVIDER: the kernel or the device refuses. Threads: per object.
 */
int rpma_conn_req_connect(struct rpma_conn_req** req_ptr, const struct rpma_conn_private_data* pdata,
                          struct rpma_conn** conn_ptr);

/*
 * Posts a receive before the connection is made, so that the peer can send at once. Like rpma_recv(). Errors:
 * RPMA_E_INVAL: req or dst is NULL, len does not fit into 32 bits; RPMA_E_PROVIDER: the device refuses. Threads: per
 * object.
 */
int rpma_conn_req_recv(struct rpma_conn_req* req, struct rpma_mr_local* dst, size_t offset, size_t len,
                       const void* op_context);

/*
 * The peer's private data; ptr is NULL and len 0 if there is none. Some networks add zeros at the end. It is freed with
 * the request, or with the connection that the request becomes. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_conn_req_get_private_data(const struct rpma_conn_req* req, struct rpma_conn_private_data* pdata);

/* A descriptor that is readable while an event waits, like rpma_ep_get_fd(). */
int rpma_conn_get_event_fd(const struct rpma_conn* conn, int* fd);

/*
 * Takes the connection's next event; waits for it unless the descriptor was made non-blocking. Errors: RPMA_E_INVAL: a
 * pointer is NULL; RPMA_E_NO_EVENT: no event waits; RPMA_E_UNKNOWN: the event is not in the enum, and *event is
 * RPMA_CONN_UNDEFINED; RPMA_E_PROVIDER: the kernel refuses. Threads: per object.
 */
int rpma_conn_next_event(struct rpma_conn* conn, enum rpma_conn_event* event);

/*
 * The peer's private data; ptr is NULL and len 0 if there is none, or not yet. It is freed with the connection. Errors:
 * RPMA_E_INVAL: a pointer is NULL. Threads: per object.
 */
int rpma_conn_get_private_data(const struct rpma_conn* conn, struct rpma_conn_private_data* pdata);

/*
 * Applies the peer's configuration, which rpma_flush() obeys. pcfg is not kept. Errors: RPMA_E_INVAL: a pointer is
 * NULL. Threads: per object.
 */
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn* conn, const struct rpma_peer_cfg* pcfg);

/* The number that identifies this connection in completions of a shared CQ. Errors: RPMA_E_INVAL: a pointer is
 * NULL. Threads: safe. */
int rpma_conn_get_qp_num(const struct rpma_conn* conn, uint32_t* qp_num);

/* The connection's CQ. Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe. */
int rpma_conn_get_cq(const struct rpma_conn* conn, struct rpma_cq** cq_ptr);

/*
 * The connection's CQ for receives; NULL if receives complete on the other CQ, or on an SRQ's own CQ. Errors:
 * RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_conn_get_rcq(const struct rpma_conn* conn, struct rpma_cq** rcq_ptr);

/*
 * Begins to disconnect; both sides get RPMA_CONN_CLOSED. Incomplete requests are flushed. Errors: RPMA_E_INVAL: conn is
 * NULL; RPMA_E_PROVIDER: the kernel refuses. Threads: per object.
 */
int rpma_conn_disconnect(struct rpma_conn* conn);

/*
 * Errors: RPMA_E_INVAL: conn_ptr is NULL; RPMA_E_PROVIDER: the kernel or the device refuses; the call still frees as
 * much as possible. Threads: per object.
 */
int rpma_conn_delete(struct rpma_conn** conn_ptr);

/* ---- data ---- */

/* A request makes a completion only if it fails, or always. One of the two must be given. */
#define RPMA_F_COMPLETION_ON_ERROR (1 << 0)
#define RPMA_F_COMPLETION_ALWAYS (1 << 1 | RPMA_F_COMPLETION_ON_ERROR)

/*
 * All requests: they return once posted; op_context becomes wr_id of the completion. Buffers belong to the device until
 * the completion, or the completion of a later request of the same connection. The device checks offsets and lengths,
 * and answers with a completion with an error. After requests without a completion, post one with a completion before
 * the queue is full. Errors of all: RPMA_E_PROVIDER: the device refuses, for example because the queue is full. Threads
 * of all: per object (the connection).
 */

/*
 * Reads len bytes from the peer's region to the local region. With both NULL, and everything else 0, it moves no data.
 * Errors: RPMA_E_INVAL: conn is NULL, flags is 0, only one region is NULL, both are NULL and an offset or len is not 0,
 * or len does not fit into 32 bits.
 */
int rpma_read(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t dst_offset, const struct rpma_mr_remote* src,
              size_t src_offset, size_t len, int flags, const void* op_context);

/* Writes len bytes from the local region to the peer's. Errors: as rpma_read(). */
int rpma_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, const struct rpma_mr_local* src,
               size_t src_offset, size_t len, int flags, const void* op_context);

/* Like rpma_write(), and the peer gets a completion with imm, in network order. The peer must have posted a
 * receive. */
int rpma_write_with_imm(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
                        const struct rpma_mr_local* src, size_t src_offset, size_t len, int flags, uint32_t imm,
                        const void* op_context);

#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

/*
 * Writes 8 bytes atomically: a reader at the peer sees all or none. The write happens after earlier flushes and reads.
 * The call takes the bytes before it returns. It is native if the device and the peer support it. Otherwise it is an
 * inline Write, which devices store in one piece if the address is a multiple of 8. Errors: RPMA_E_INVAL: conn, dst or
 * src is NULL, dst_offset is not a multiple of 8, or flags is 0.
 */
int rpma_atomic_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, const char src[8],
                      int flags, const void* op_context);

enum rpma_flush_type {
  RPMA_FLUSH_TYPE_PERSISTENT, /* until it survives a loss of power */
  RPMA_FLUSH_TYPE_VISIBILITY  /* until the CPUs and devices of the peer see it */
};

/*
 * Completes when earlier writes to these len bytes are visible or persistent, depending on type. It is native if the
 * device and the peer support it and len is less than 4 GiB. Otherwise it is a Read, which pushes the writes before it.
 * Errors: RPMA_E_INVAL: conn or dst is NULL, type is not in the enum, flags is 0, dst_offset is not in the region, or
 * the device and the peer support native flushes and the bytes are not all in the region; RPMA_E_NOSUPP: the region was
 * not registered for this type; or type is RPMA_FLUSH_TYPE_PERSISTENT, and the peer has not declared
 * (rpma_conn_apply_remote_peer_cfg()) direct writes to persistent memory.
 */
int rpma_flush(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, size_t len,
               enum rpma_flush_type type, int flags, const void* op_context);

/*
 * Sends len bytes, or no bytes if src is NULL. Errors: RPMA_E_INVAL: conn is NULL, flags is 0, src is NULL and offset
 * or len is not 0, len does not fit into 32 bits.
 */
int rpma_send(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len, int flags,
              const void* op_context);

/* Like rpma_send(), with imm in the peer's completion, in network order. */
int rpma_send_with_imm(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len, int flags,
                       uint32_t imm, const void* op_context);

/*
 * Posts a receive of up to len bytes, or of no bytes if dst is NULL. Always makes a completion. Errors: RPMA_E_INVAL:
 * conn is NULL, dst is NULL and offset or len is not 0, len does not fit into 32 bits.
 */
int rpma_recv(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t offset, size_t len, const void* op_context);

/* ---- completions ---- */

/*
 * A descriptor that is readable while an event of the CQ waits: rpma_cq_wait() will not block, and must be called. Like
 * rpma_ep_get_fd(). Errors: RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_cq_get_fd(const struct rpma_cq* cq, int* fd);

/*
 * Waits until the CQ reports completions; then take all completions with rpma_cq_get_wc(). There may be none, if they
 * were taken before. Errors: RPMA_E_INVAL: cq is NULL; RPMA_E_NO_COMPLETION: the descriptor was made non-blocking and
 * no completion waits, or the wait was interrupted; RPMA_E_SHARED_CHANNEL; RPMA_E_PROVIDER: the device refuses.
 * Threads: safe.
 */
int rpma_cq_wait(struct rpma_cq* cq);

/*
 * Takes up to num_entries completions to wc. num_entries_got may be NULL if num_entries is 1. Errors: RPMA_E_INVAL: cq
 * or wc is NULL, num_entries is less than 1, or more than 1 and num_entries_got is NULL; RPMA_E_NO_COMPLETION: no
 * completion waits; RPMA_E_PROVIDER: the device refuses; RPMA_E_UNKNOWN: the device returns too many. Threads: safe.
 */
int rpma_cq_get_wc(struct rpma_cq* cq, int num_entries, struct ibv_wc* wc, int* num_entries_got);

/* A flag of rpma_conn_wait(), which always waits. */
#define RPMA_W_WAIT_FOR_COMPLETION (1)

/* The descriptor of the shared completion channel. Errors: RPMA_E_INVAL: a pointer is NULL; RPMA_E_NOT_SHARED_CHNL.
 * Threads: safe. */
int rpma_conn_get_compl_fd(const struct rpma_conn* conn, int* fd);

/*
 * Like rpma_cq_wait(), on the shared completion channel. It stores the CQ, and, unless is_rcq is NULL, whether it is
 * the CQ for receives. flags: ignored. Errors: RPMA_E_INVAL: conn or cq is NULL; RPMA_E_NOT_SHARED_CHNL;
 * RPMA_E_NO_COMPLETION: as rpma_cq_wait(); RPMA_E_UNKNOWN: the event belongs to neither CQ; RPMA_E_PROVIDER: the device
 * refuses. Threads: safe.
 */
int rpma_conn_wait(struct rpma_conn* conn, int flags, struct rpma_cq** cq, bool* is_rcq);

/* ---- log ---- */

enum rpma_log_level {
  RPMA_LOG_DISABLED = -1, /* as a threshold: nothing */
  RPMA_LOG_LEVEL_FATAL,   /* the library cannot go on */
  RPMA_LOG_LEVEL_ERROR,   /* a call failed */
  RPMA_LOG_LEVEL_WARNING, /* an unexpected condition */
  RPMA_LOG_LEVEL_NOTICE,  /* connections come and go */
  RPMA_LOG_LEVEL_INFO,    /* how operations will be done */
  RPMA_LOG_LEVEL_DEBUG    /* for developers of the library */
};

enum rpma_log_threshold {
  RPMA_LOG_THRESHOLD,     /* no messages beyond it are made; RPMA_LOG_LEVEL_WARNING at first */
  RPMA_LOG_THRESHOLD_AUX, /* the default function also prints messages up to it on stderr; RPMA_LOG_DISABLED at first */
  RPMA_LOG_THRESHOLD_MAX
};

/*
 * Errors: RPMA_E_INVAL: threshold is not one of the first two, or level is not in the enum. Threads: safe.
 */
int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level);

/* Errors: RPMA_E_INVAL: threshold is not one of the first two, or level is NULL. Threads: safe. */
int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level* level);

/*
 * The library calls this function for each message, with its level, its source and its text, with a newline, in the
 * form of printf(3). Each thread calls it for its own messages, so several may call it at the same time. It must not
 * call this library.
 */
typedef void rpma_log_function(enum rpma_log_level level, const char* file_name, const int line_no,
                               const char* function_name, const char* message_format, ...);

/* Writes to syslog(3) as the program has opened it, facility local7, and to stderr by RPMA_LOG_THRESHOLD_AUX. */
#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

/* Cannot fail. Threads: safe. */
int rpma_log_set_function(rpma_log_function* log_function);

/* ---- functions that the original lacks ---- */

/* Defined by headers that have the functions below. */
#define RPMA_HAS_FEATURES 1

/* The features that a program can ask about. Values may be added at the end. */
enum rpma_feature {
  RPMA_FEATURE_NATIVE_ATOMIC_WRITE,     /* rpma_atomic_write() is an RDMA Atomic Write */
  RPMA_FEATURE_NATIVE_FLUSH_VISIBILITY, /* rpma_flush() is an RDMA Flush, of either type */
  RPMA_FEATURE_NATIVE_FLUSH_PERSISTENT,
  RPMA_FEATURE_DIRECT_WRITE_TO_PMEM /* data that a device writes to persistent memory survives a loss of power */
};

/*
 * Tells whether the peer's own machine has a feature. A native operation also needs it on the other side. The call may
 * make and destroy a queue pair to find the features of libibverbs. reason: NULL, or set to the reason in one static,
 * human-readable line. Errors: RPMA_E_INVAL: peer or has is NULL, or feature is not in the enum; RPMA_E_PROVIDER: the
 * queues for the test cannot be made. Threads: safe.
 */
int rpma_peer_has_feature(const struct rpma_peer* peer, enum rpma_feature feature, bool* has, const char** reason);

/*
 * Tells whether a connection has a feature. For a native operation: whether requests for the region mr will be native,
 * or with mr NULL whether this side supports them. For RPMA_FEATURE_DIRECT_WRITE_TO_PMEM: the value that
 * rpma_conn_apply_remote_peer_cfg() has applied. The call moves no data. reason: as above. Errors: RPMA_E_INVAL: conn
 * or has is NULL, or feature is not in the enum. Threads: per object.
 */
int rpma_conn_has_feature(const struct rpma_conn* conn, const struct rpma_mr_remote* mr, enum rpma_feature feature,
                          bool* has, const char** reason);

/*
 * Sets direct_write_to_pmem to the answer of rpma_peer_has_feature(): true only if the machine reports caches that
 * survive a loss of power. To override this answer, call rpma_peer_cfg_set_direct_write_to_pmem() instead. Errors:
 * RPMA_E_INVAL: a pointer is NULL. Threads: safe.
 */
int rpma_peer_cfg_set_from_platform(struct rpma_peer_cfg* pcfg, const struct rpma_peer* peer);

#ifdef __cplusplus
}
#endif

#endif /* LIBRPMA_H */
