/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The functions of dat.h as entries of a provider's table: their types, and macros that call them directly, without the
 * library. The macros check nothing.
 */
#ifndef DAPPLE_DAT_DAT_REDIRECTION_H
#define DAPPLE_DAT_DAT_REDIRECTION_H

#include <dat/dat.h>

typedef struct dat_provider DAT_PROVIDER;

/* Every handle points to an object whose first word points to its provider's table. */
#ifndef DAT_HANDLE_TO_PROVIDER
#define DAT_HANDLE_TO_PROVIDER(handle) (*(DAT_PROVIDER**)(handle))
#endif

/*
 * A provider opens by name alone: version and thread safety are those of the table. The registry removes the prefix
 * RO_AWARE_ from the name; ro_aware tells whether the prefix was there.
 */
typedef DAT_RETURN(DAT_API* DAT_IA_OPEN_FUNC)(const DAT_NAME_PTR name, DAT_COUNT async_evd_qlen,
                                              DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia_handle,
                                              DAT_BOOLEAN ro_aware);
typedef __typeof__(dat_ia_openv)* DAT_IA_OPENV_FUNC;

typedef __typeof__(dat_ia_query)* DAT_IA_QUERY_FUNC;
typedef __typeof__(dat_ia_close)* DAT_IA_CLOSE_FUNC;
typedef __typeof__(dat_set_consumer_context)* DAT_SET_CONSUMER_CONTEXT_FUNC;
typedef __typeof__(dat_get_consumer_context)* DAT_GET_CONSUMER_CONTEXT_FUNC;
typedef __typeof__(dat_get_handle_type)* DAT_GET_HANDLE_TYPE_FUNC;

typedef __typeof__(dat_pz_create)* DAT_PZ_CREATE_FUNC;
typedef __typeof__(dat_pz_query)* DAT_PZ_QUERY_FUNC;
typedef __typeof__(dat_pz_free)* DAT_PZ_FREE_FUNC;

typedef __typeof__(dat_lmr_free)* DAT_LMR_FREE_FUNC;
typedef __typeof__(dat_lmr_sync_rdma_read)* DAT_LMR_SYNC_RDMA_READ_FUNC;
typedef __typeof__(dat_lmr_sync_rdma_write)* DAT_LMR_SYNC_RDMA_WRITE_FUNC;
typedef __typeof__(dat_rmr_create)* DAT_RMR_CREATE_FUNC;
typedef __typeof__(dat_rmr_query)* DAT_RMR_QUERY_FUNC;
typedef __typeof__(dat_rmr_bind)* DAT_RMR_BIND_FUNC;
typedef __typeof__(dat_rmr_free)* DAT_RMR_FREE_FUNC;

typedef __typeof__(dat_srq_create)* DAT_SRQ_CREATE_FUNC;
typedef __typeof__(dat_srq_query)* DAT_SRQ_QUERY_FUNC;
typedef __typeof__(dat_srq_resize)* DAT_SRQ_RESIZE_FUNC;
typedef __typeof__(dat_srq_set_lw)* DAT_SRQ_SET_LW_FUNC;
typedef __typeof__(dat_srq_post_recv)* DAT_SRQ_POST_RECV_FUNC;
typedef __typeof__(dat_srq_free)* DAT_SRQ_FREE_FUNC;

typedef __typeof__(dat_ep_create)* DAT_EP_CREATE_FUNC;
typedef __typeof__(dat_ep_create_with_srq)* DAT_EP_CREATE_WITH_SRQ_FUNC;
typedef __typeof__(dat_ep_query)* DAT_EP_QUERY_FUNC;
typedef __typeof__(dat_ep_modify)* DAT_EP_MODIFY_FUNC;
typedef __typeof__(dat_ep_get_status)* DAT_EP_GET_STATUS_FUNC;
typedef __typeof__(dat_ep_recv_query)* DAT_EP_RECV_QUERY_FUNC;
typedef __typeof__(dat_ep_set_watermark)* DAT_EP_SET_WATERMARK_FUNC;
typedef __typeof__(dat_ep_reset)* DAT_EP_RESET_FUNC;
typedef __typeof__(dat_ep_free)* DAT_EP_FREE_FUNC;
typedef __typeof__(dat_ep_connect)* DAT_EP_CONNECT_FUNC;
typedef __typeof__(dat_ep_dup_connect)* DAT_EP_DUP_CONNECT_FUNC;
typedef __typeof__(dat_ep_disconnect)* DAT_EP_DISCONNECT_FUNC;
typedef __typeof__(dat_ep_post_send)* DAT_EP_POST_SEND_FUNC;
typedef __typeof__(dat_ep_post_recv)* DAT_EP_POST_RECV_FUNC;
typedef __typeof__(dat_ep_post_rdma_read)* DAT_EP_POST_RDMA_READ_FUNC;
typedef __typeof__(dat_ep_post_rdma_write)* DAT_EP_POST_RDMA_WRITE_FUNC;

typedef __typeof__(dat_psp_create)* DAT_PSP_CREATE_FUNC;
typedef __typeof__(dat_psp_create_any)* DAT_PSP_CREATE_ANY_FUNC;
typedef __typeof__(dat_psp_query)* DAT_PSP_QUERY_FUNC;
typedef __typeof__(dat_psp_free)* DAT_PSP_FREE_FUNC;
typedef __typeof__(dat_rsp_create)* DAT_RSP_CREATE_FUNC;
typedef __typeof__(dat_rsp_query)* DAT_RSP_QUERY_FUNC;
typedef __typeof__(dat_rsp_free)* DAT_RSP_FREE_FUNC;
typedef __typeof__(dat_cr_query)* DAT_CR_QUERY_FUNC;
typedef __typeof__(dat_cr_accept)* DAT_CR_ACCEPT_FUNC;
typedef __typeof__(dat_cr_reject)* DAT_CR_REJECT_FUNC;
typedef __typeof__(dat_cr_handoff)* DAT_CR_HANDOFF_FUNC;

typedef __typeof__(dat_evd_dequeue)* DAT_EVD_DEQUEUE_FUNC;
typedef __typeof__(dat_evd_post_se)* DAT_EVD_POST_SE_FUNC;
typedef __typeof__(dat_evd_query)* DAT_EVD_QUERY_FUNC;
typedef __typeof__(dat_evd_resize)* DAT_EVD_RESIZE_FUNC;
typedef __typeof__(dat_evd_free)* DAT_EVD_FREE_FUNC;

#define DAT_IA_QUERY(ia, evd, ia_mask, ia_attr, provider_mask, provider_attr) \
  (*DAT_HANDLE_TO_PROVIDER(ia)->ia_query_func)((ia), (evd), (ia_mask), (ia_attr), (provider_mask), (provider_attr))
#define DAT_SET_CONSUMER_CONTEXT(handle, context) \
  (*DAT_HANDLE_TO_PROVIDER(handle)->set_consumer_context_func)((handle), (context))
#define DAT_GET_CONSUMER_CONTEXT(handle, context) \
  (*DAT_HANDLE_TO_PROVIDER(handle)->get_consumer_context_func)((handle), (context))
#define DAT_GET_HANDLE_TYPE(handle, type) (*DAT_HANDLE_TO_PROVIDER(handle)->get_handle_type_func)((handle), (type))

#define DAT_PZ_CREATE(ia, pz) (*DAT_HANDLE_TO_PROVIDER(ia)->pz_create_func)((ia), (pz))
#define DAT_PZ_QUERY(pz, mask, param) (*DAT_HANDLE_TO_PROVIDER(pz)->pz_query_func)((pz), (mask), (param))
#define DAT_PZ_FREE(pz) (*DAT_HANDLE_TO_PROVIDER(pz)->pz_free_func)((pz))

#define DAT_LMR_FREE(lmr) (*DAT_HANDLE_TO_PROVIDER(lmr)->lmr_free_func)((lmr))
#define DAT_LMR_SYNC_RDMA_READ(ia, segments, count) \
  (*DAT_HANDLE_TO_PROVIDER(ia)->lmr_sync_rdma_read_func)((ia), (segments), (count))
#define DAT_LMR_SYNC_RDMA_WRITE(ia, segments, count) \
  (*DAT_HANDLE_TO_PROVIDER(ia)->lmr_sync_rdma_write_func)((ia), (segments), (count))
#define DAT_RMR_CREATE(pz, rmr) (*DAT_HANDLE_TO_PROVIDER(pz)->rmr_create_func)((pz), (rmr))
#define DAT_RMR_QUERY(rmr, mask, param) (*DAT_HANDLE_TO_PROVIDER(rmr)->rmr_query_func)((rmr), (mask), (param))
#define DAT_RMR_BIND(rmr, triplet, priv, ep, cookie, flags, context) \
  (*DAT_HANDLE_TO_PROVIDER(rmr)->rmr_bind_func)((rmr), (triplet), (priv), (ep), (cookie), (flags), (context))
#define DAT_RMR_FREE(rmr) (*DAT_HANDLE_TO_PROVIDER(rmr)->rmr_free_func)((rmr))

#define DAT_SRQ_CREATE(ia, pz, attr, srq) (*DAT_HANDLE_TO_PROVIDER(ia)->srq_create_func)((ia), (pz), (attr), (srq))
#define DAT_SRQ_QUERY(srq, mask, param) (*DAT_HANDLE_TO_PROVIDER(srq)->srq_query_func)((srq), (mask), (param))
#define DAT_SRQ_RESIZE(srq, max_dtos) (*DAT_HANDLE_TO_PROVIDER(srq)->srq_resize_func)((srq), (max_dtos))
#define DAT_SRQ_SET_LW(srq, low_watermark) (*DAT_HANDLE_TO_PROVIDER(srq)->srq_set_lw_func)((srq), (low_watermark))
#define DAT_SRQ_POST_RECV(srq, count, iov, cookie) \
  (*DAT_HANDLE_TO_PROVIDER(srq)->srq_post_recv_func)((srq), (count), (iov), (cookie))
#define DAT_SRQ_FREE(srq) (*DAT_HANDLE_TO_PROVIDER(srq)->srq_free_func)((srq))

#define DAT_EP_CREATE(ia, pz, recv_evd, request_evd, connect_evd, attr, ep) \
  (*DAT_HANDLE_TO_PROVIDER(ia)->ep_create_func)((ia), (pz), (recv_evd), (request_evd), (connect_evd), (attr), (ep))
#define DAT_EP_CREATE_WITH_SRQ(ia, pz, recv_evd, request_evd, connect_evd, srq, attr, ep)                             \
  (*DAT_HANDLE_TO_PROVIDER(ia)->ep_create_with_srq_func)((ia), (pz), (recv_evd), (request_evd), (connect_evd), (srq), \
                                                         (attr), (ep))
#define DAT_EP_QUERY(ep, mask, param) (*DAT_HANDLE_TO_PROVIDER(ep)->ep_query_func)((ep), (mask), (param))
#define DAT_EP_MODIFY(ep, mask, param) (*DAT_HANDLE_TO_PROVIDER(ep)->ep_modify_func)((ep), (mask), (param))
#define DAT_EP_GET_STATUS(ep, state, recv_idle, request_idle) \
  (*DAT_HANDLE_TO_PROVIDER(ep)->ep_get_status_func)((ep), (state), (recv_idle), (request_idle))
#define DAT_EP_RECV_QUERY(ep, buffers, span) (*DAT_HANDLE_TO_PROVIDER(ep)->ep_recv_query_func)((ep), (buffers), (span))
#define DAT_EP_SET_WATERMARK(ep, soft, hard) (*DAT_HANDLE_TO_PROVIDER(ep)->ep_set_watermark_func)((ep), (soft), (hard))
#define DAT_EP_RESET(ep) (*DAT_HANDLE_TO_PROVIDER(ep)->ep_reset_func)((ep))
#define DAT_EP_FREE(ep) (*DAT_HANDLE_TO_PROVIDER(ep)->ep_free_func)((ep))
#define DAT_EP_CONNECT(ep, address, conn_qual, timeout, size, data, qos, flags)                                  \
  (*DAT_HANDLE_TO_PROVIDER(ep)->ep_connect_func)((ep), (address), (conn_qual), (timeout), (size), (data), (qos), \
                                                 (flags))
#define DAT_EP_DUP_CONNECT(ep, dup, timeout, size, data, qos) \
  (*DAT_HANDLE_TO_PROVIDER(ep)->ep_dup_connect_func)((ep), (dup), (timeout), (size), (data), (qos))
#define DAT_EP_DISCONNECT(ep, flags) (*DAT_HANDLE_TO_PROVIDER(ep)->ep_disconnect_func)((ep), (flags))
#define DAT_EP_POST_SEND(ep, count, iov, cookie, flags) \
  (*DAT_HANDLE_TO_PROVIDER(ep)->ep_post_send_func)((ep), (count), (iov), (cookie), (flags))
#define DAT_EP_POST_RECV(ep, count, iov, cookie, flags) \
  (*DAT_HANDLE_TO_PROVIDER(ep)->ep_post_recv_func)((ep), (count), (iov), (cookie), (flags))
#define DAT_EP_POST_RDMA_READ(ep, count, iov, cookie, remote, flags) \
  (*DAT_HANDLE_TO_PROVIDER(ep)->ep_post_rdma_read_func)((ep), (count), (iov), (cookie), (remote), (flags))
#define DAT_EP_POST_RDMA_WRITE(ep, count, iov, cookie, remote, flags) \
  (*DAT_HANDLE_TO_PROVIDER(ep)->ep_post_rdma_write_func)((ep), (count), (iov), (cookie), (remote), (flags))

#define DAT_PSP_CREATE(ia, conn_qual, evd, flags, psp) \
  (*DAT_HANDLE_TO_PROVIDER(ia)->psp_create_func)((ia), (conn_qual), (evd), (flags), (psp))
#define DAT_PSP_CREATE_ANY(ia, conn_qual, evd, flags, psp) \
  (*DAT_HANDLE_TO_PROVIDER(ia)->psp_create_any_func)((ia), (conn_qual), (evd), (flags), (psp))
#define DAT_PSP_QUERY(psp, mask, param) (*DAT_HANDLE_TO_PROVIDER(psp)->psp_query_func)((psp), (mask), (param))
#define DAT_PSP_FREE(psp) (*DAT_HANDLE_TO_PROVIDER(psp)->psp_free_func)((psp))
#define DAT_RSP_CREATE(ia, conn_qual, ep, evd, rsp) \
  (*DAT_HANDLE_TO_PROVIDER(ia)->rsp_create_func)((ia), (conn_qual), (ep), (evd), (rsp))
#define DAT_RSP_QUERY(rsp, mask, param) (*DAT_HANDLE_TO_PROVIDER(rsp)->rsp_query_func)((rsp), (mask), (param))
#define DAT_RSP_FREE(rsp) (*DAT_HANDLE_TO_PROVIDER(rsp)->rsp_free_func)((rsp))
#define DAT_CR_QUERY(cr, mask, param) (*DAT_HANDLE_TO_PROVIDER(cr)->cr_query_func)((cr), (mask), (param))
#define DAT_CR_ACCEPT(cr, ep, size, data) (*DAT_HANDLE_TO_PROVIDER(cr)->cr_accept_func)((cr), (ep), (size), (data))
#define DAT_CR_REJECT(cr) (*DAT_HANDLE_TO_PROVIDER(cr)->cr_reject_func)((cr))
#define DAT_CR_HANDOFF(cr, conn_qual) (*DAT_HANDLE_TO_PROVIDER(cr)->cr_handoff_func)((cr), (conn_qual))

#define DAT_EVD_DEQUEUE(evd, event) (*DAT_HANDLE_TO_PROVIDER(evd)->evd_dequeue_func)((evd), (event))
#define DAT_EVD_POST_SE(evd, event) (*DAT_HANDLE_TO_PROVIDER(evd)->evd_post_se_func)((evd), (event))
#define DAT_EVD_QUERY(evd, mask, param) (*DAT_HANDLE_TO_PROVIDER(evd)->evd_query_func)((evd), (mask), (param))
#define DAT_EVD_RESIZE(evd, qlen) (*DAT_HANDLE_TO_PROVIDER(evd)->evd_resize_func)((evd), (qlen))
#define DAT_EVD_FREE(evd) (*DAT_HANDLE_TO_PROVIDER(evd)->evd_free_func)((evd))

#endif
