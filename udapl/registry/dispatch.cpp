// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// One line for each function; the headers describe the functions.
#include "udapl/registry/dispatch.hpp"

// clang-format off
ANY(set_consumer_context, (DAT_HANDLE handle, DAT_CONTEXT context), handle, context)
ANY(get_consumer_context, (DAT_HANDLE handle, DAT_CONTEXT* context), handle, context)
ANY(get_handle_type, (DAT_HANDLE handle, DAT_HANDLE_TYPE* type), handle, type)

IA(ia_query, (DAT_IA_HANDLE ia, DAT_EVD_HANDLE* evd, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR* ia_attr, DAT_PROVIDER_ATTR_MASK mask, DAT_PROVIDER_ATTR* attr), ia, evd, ia_mask, ia_attr, mask, attr)

IA(pz_create, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE* pz), ia, pz)
OBJECT(PZ, pz_query, (DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* param), pz, mask, param)
OBJECT(PZ, pz_free, (DAT_PZ_HANDLE pz), pz)

OBJECT(LMR, lmr_query, (DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* param), lmr, mask, param)
OBJECT(LMR, lmr_free, (DAT_LMR_HANDLE lmr), lmr)
IA(lmr_sync_rdma_read, (DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET* segments, DAT_VLEN count), ia, segments, count)
IA(lmr_sync_rdma_write, (DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET* segments, DAT_VLEN count), ia, segments, count)

OBJECT(PZ, rmr_create, (DAT_PZ_HANDLE pz, DAT_RMR_HANDLE* rmr), pz, rmr)
OBJECT(RMR, rmr_query, (DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM* param), rmr, mask, param)
OBJECT(RMR, rmr_free, (DAT_RMR_HANDLE rmr), rmr)

IA(srq_create, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR* attr, DAT_SRQ_HANDLE* srq), ia, pz, attr, srq)
OBJECT(SRQ, srq_query, (DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM* param), srq, mask, param)
OBJECT(SRQ, srq_resize, (DAT_SRQ_HANDLE srq, DAT_COUNT max_dtos), srq, max_dtos)
OBJECT(SRQ, srq_set_lw, (DAT_SRQ_HANDLE srq, DAT_COUNT low_watermark), srq, low_watermark)
OBJECT(SRQ, srq_post_recv, (DAT_SRQ_HANDLE srq, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie), srq, count, iov, cookie)
OBJECT(SRQ, srq_free, (DAT_SRQ_HANDLE srq), srq)

IA(ep_create, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd, const DAT_EP_ATTR* attr, DAT_EP_HANDLE* ep),
   ia, pz, recv_evd, request_evd, connect_evd, attr, ep)
IA(ep_create_with_srq, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR* attr, DAT_EP_HANDLE* ep),
   ia, pz, recv_evd, request_evd, connect_evd, srq, attr, ep)
OBJECT(EP, ep_query, (DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM* param), ep, mask, param)
OBJECT(EP, ep_modify, (DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM* param), ep, mask, param)
OBJECT(EP, ep_get_status, (DAT_EP_HANDLE ep, DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle, DAT_BOOLEAN* request_idle), ep, state, recv_idle, request_idle)
OBJECT(EP, ep_recv_query, (DAT_EP_HANDLE ep, DAT_COUNT* buffers, DAT_COUNT* span), ep, buffers, span)
OBJECT(EP, ep_set_watermark, (DAT_EP_HANDLE ep, DAT_COUNT soft, DAT_COUNT hard), ep, soft, hard)
OBJECT(EP, ep_reset, (DAT_EP_HANDLE ep), ep)
OBJECT(EP, ep_free, (DAT_EP_HANDLE ep), ep)
OBJECT(EP, ep_connect, (DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL conn_qual, DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags), ep, address, conn_qual, timeout, size, data, qos, flags)
OBJECT(EP, ep_dup_connect, (DAT_EP_HANDLE ep, DAT_EP_HANDLE dup, DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos), ep, dup, timeout, size, data, qos)
OBJECT(EP, ep_disconnect, (DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags), ep, flags)
OBJECT(EP, ep_post_send, (DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags), ep, count, iov, cookie, flags)
OBJECT(EP, ep_post_recv, (DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags), ep, count, iov, cookie, flags)
OBJECT(EP, ep_post_rdma_read, (DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags), ep, count, iov, cookie, remote, flags)
OBJECT(EP, ep_post_rdma_write, (DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags), ep, count, iov, cookie, remote, flags)

IA(psp_create, (DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags, DAT_PSP_HANDLE* psp), ia, conn_qual, evd, flags, psp)
IA(psp_create_any, (DAT_IA_HANDLE ia, DAT_CONN_QUAL* conn_qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags, DAT_PSP_HANDLE* psp), ia, conn_qual, evd, flags, psp)
OBJECT(PSP, psp_query, (DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM* param), psp, mask, param)
OBJECT(PSP, psp_free, (DAT_PSP_HANDLE psp), psp)
IA(rsp_create, (DAT_IA_HANDLE ia, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd, DAT_RSP_HANDLE* rsp), ia, conn_qual, ep, evd, rsp)
OBJECT(RSP, rsp_query, (DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* param), rsp, mask, param)
OBJECT(RSP, rsp_free, (DAT_RSP_HANDLE rsp), rsp)
OBJECT(CR, cr_query, (DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM* param), cr, mask, param)
OBJECT(CR, cr_accept, (DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size, const DAT_PVOID data), cr, ep, size, data)
OBJECT(CR, cr_handoff, (DAT_CR_HANDLE cr, DAT_CONN_QUAL handoff), cr, handoff)

IA(evd_create, (DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE* evd), ia, qlen, cno, flags, evd)
OBJECT(EVD_REQUEST, evd_query, (DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM* param), evd, mask, param)
OBJECT(EVD_REQUEST, evd_modify_cno, (DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno), evd, cno)
OBJECT(EVD_REQUEST, evd_resize, (DAT_EVD_HANDLE evd, DAT_COUNT qlen), evd, qlen)
OBJECT(EVD_REQUEST, evd_enable, (DAT_EVD_HANDLE evd), evd)
OBJECT(EVD_REQUEST, evd_disable, (DAT_EVD_HANDLE evd), evd)
OBJECT(EVD_REQUEST, evd_wait, (DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* event, DAT_COUNT* nmore), evd, timeout, threshold, event, nmore)
OBJECT(EVD_REQUEST, evd_dequeue, (DAT_EVD_HANDLE evd, DAT_EVENT* event), evd, event)
OBJECT(EVD_REQUEST, evd_post_se, (DAT_EVD_HANDLE evd, const DAT_EVENT* event), evd, event)
OBJECT(EVD_REQUEST, evd_set_unwaitable, (DAT_EVD_HANDLE evd), evd)
OBJECT(EVD_REQUEST, evd_clear_unwaitable, (DAT_EVD_HANDLE evd), evd)
OBJECT(EVD_REQUEST, evd_free, (DAT_EVD_HANDLE evd), evd)

IA(cno_create, (DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno), ia, agent, cno)
OBJECT(CNO, cno_modify_agent, (DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent), cno, agent)
OBJECT(CNO, cno_query, (DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param), cno, mask, param)
OBJECT(CNO, cno_wait, (DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd), cno, timeout, evd)
OBJECT(CNO, cno_free, (DAT_CNO_HANDLE cno), cno)
// clang-format on
