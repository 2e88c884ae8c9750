/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * uDAPL 1.2, the header that programs include: dat.h and the parts for user space only (attributes, memory
 * registration, waiting). The rules on ownership, threads and errors are in dat.h.
 */
#ifndef DAPPLE_DAT_UDAT_H
#define DAPPLE_DAT_UDAT_H

#include <dat/dat.h>
#include <dat/udat_vendor_specific.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef DAT_HANDLE DAT_CNO_HANDLE;

/* ---- Interface adapter: attributes ---- */

/* Sizes in bytes. The pointers belong to the provider and live until dat_ia_close(). */
struct dat_ia_attr {
  char adapter_name[DAT_NAME_MAX_LENGTH];
  char vendor_name[DAT_NAME_MAX_LENGTH];
  DAT_UINT32 hardware_version_major;
  DAT_UINT32 hardware_version_minor;
  DAT_UINT32 firmware_version_major;
  DAT_UINT32 firmware_version_minor;
  DAT_IA_ADDRESS_PTR ia_address_ptr;
  DAT_COUNT max_eps;
  DAT_COUNT max_dto_per_ep;
  DAT_COUNT max_rdma_read_per_ep_in;
  DAT_COUNT max_rdma_read_per_ep_out;
  DAT_COUNT max_evds;
  DAT_COUNT max_evd_qlen;
  DAT_COUNT max_iov_segments_per_dto;
  DAT_COUNT max_lmrs;
  DAT_VLEN max_lmr_block_size;
  DAT_VADDR max_lmr_virtual_address;
  DAT_COUNT max_pzs;
  DAT_VLEN max_message_size;
  DAT_VLEN max_rdma_size;
  DAT_COUNT max_rmrs;
  DAT_VADDR max_rmr_target_address;
  DAT_COUNT max_srqs;
  DAT_COUNT max_ep_per_srq;
  DAT_COUNT max_recv_per_srq;
  DAT_COUNT max_iov_segments_per_rdma_read;
  DAT_COUNT max_iov_segments_per_rdma_write;
  DAT_COUNT max_rdma_read_in;
  DAT_COUNT max_rdma_read_out;
  DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
  DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
  DAT_COUNT num_transport_attr;
  DAT_NAMED_ATTR* transport_attr;
  DAT_COUNT num_vendor_attr;
  DAT_NAMED_ATTR* vendor_attr;
};

/* The lower masks are in dat.h. */
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR UINT64_C(0x80000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR UINT64_C(0x200000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR UINT64_C(0x400000000)
#define DAT_IA_FIELD_ALL UINT64_C(0x7ffffffff)

typedef enum dat_mem_type {
  DAT_MEM_TYPE_VIRTUAL = 0,
  DAT_MEM_TYPE_LMR = 1,
  DAT_MEM_TYPE_SHARED_VIRTUAL = 2,
  /* Like VIRTUAL, but always strongly ordered. */
  DAT_MEM_TYPE_SO_VIRTUAL = 3
} DAT_MEM_TYPE;

typedef enum dat_pz_support { DAT_PZ_UNIQUE, DAT_PZ_SAME, DAT_PZ_SHAREABLE } DAT_PZ_SUPPORT;

/* optimal_buffer_alignment is in bytes. lmr_sync_req tells whether dat_lmr_sync_rdma_read/_write are needed. */
struct dat_provider_attr {
  char provider_name[DAT_NAME_MAX_LENGTH];
  DAT_UINT32 provider_version_major;
  DAT_UINT32 provider_version_minor;
  DAT_UINT32 dapl_version_major;
  DAT_UINT32 dapl_version_minor;
  DAT_MEM_TYPE lmr_mem_types_supported;
  DAT_IOV_OWNERSHIP iov_ownership_on_return;
  DAT_QOS dat_qos_supported;
  DAT_COMPLETION_FLAGS completion_flags_supported;
  DAT_BOOLEAN is_thread_safe;
  DAT_COUNT max_private_data_size;
  DAT_BOOLEAN supports_multipath;
  DAT_EP_CREATOR_FOR_PSP ep_creator;
  DAT_PZ_SUPPORT pz_support;
  DAT_UINT32 optimal_buffer_alignment;
  const DAT_BOOLEAN evd_stream_merging_supported[6][6];
  DAT_BOOLEAN srq_supported;
  DAT_COUNT srq_watermarks_supported;
  DAT_BOOLEAN srq_ep_pz_difference_supported;
  DAT_COUNT srq_info_supported;
  DAT_COUNT ep_recv_info_supported;
  DAT_BOOLEAN lmr_sync_req;
  DAT_BOOLEAN dto_async_return_guaranteed;
  DAT_BOOLEAN rdma_write_for_rdma_read_req;
  DAT_COUNT num_provider_specific_attr;
  DAT_NAMED_ATTR* provider_specific_attr;
};

#define DAT_PROVIDER_FIELD_NONE UINT64_C(0)
#define DAT_PROVIDER_FIELD_PROVIDER_NAME UINT64_C(0x1)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR UINT64_C(0x2)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR UINT64_C(0x4)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR UINT64_C(0x8)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR UINT64_C(0x10)
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED UINT64_C(0x20)
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP UINT64_C(0x40)
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED UINT64_C(0x80)
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED UINT64_C(0x100)
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE UINT64_C(0x200)
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE UINT64_C(0x400)
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH UINT64_C(0x800)
#define DAT_PROVIDER_FIELD_EP_CREATOR UINT64_C(0x1000)
#define DAT_PROVIDER_FIELD_PZ_SUPPORT UINT64_C(0x2000)
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT UINT64_C(0x4000)
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED UINT64_C(0x8000)
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED UINT64_C(0x10000)
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED UINT64_C(0x20000)
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED UINT64_C(0x40000)
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED UINT64_C(0x80000)
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED UINT64_C(0x100000)
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ UINT64_C(0x200000)
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED UINT64_C(0x400000)
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ UINT64_C(0x800000)
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR UINT64_C(0x1000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR UINT64_C(0x2000000)
#define DAT_PROVIDER_FIELD_ALL UINT64_C(0x3ffffff)

/* Values of *async_evd at dat_ia_open() that are not an EVD of the caller. */
#define DAT_EVD_ASYNC_EXISTS ((DAT_EVD_HANDLE)0x1)
#define DAT_EVD_OUT_OF_SCOPE ((DAT_EVD_HANDLE)0x2)

/* ---- Local memory region ---- */

/* Names memory that several processes or registrations share; the bytes are the consumer's choice. */
#define DAT_LMR_COOKIE_SIZE 40
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE];

typedef struct dat_shared_memory {
  DAT_PVOID virtual_address;
  DAT_LMR_COOKIE shared_memory_id;
} DAT_SHARED_MEMORY;

/* DAT_MEM_TYPE selects the member: for_va is of VIRTUAL and SO_VIRTUAL. */
typedef union dat_region_description {
  DAT_PVOID for_va;
  DAT_LMR_HANDLE for_lmr_handle;
  DAT_SHARED_MEMORY for_shared_memory;
} DAT_REGION_DESCRIPTION;

struct dat_lmr_param {
  DAT_IA_HANDLE ia_handle;
  DAT_MEM_TYPE mem_type;
  DAT_REGION_DESCRIPTION region_desc;
  DAT_VLEN length;
  DAT_PZ_HANDLE pz_handle;
  DAT_MEM_PRIV_FLAGS mem_priv;
  DAT_LMR_CONTEXT lmr_context;
  DAT_RMR_CONTEXT rmr_context;
  DAT_VLEN registered_size;
  DAT_VADDR registered_address;
};

/*
 * Pins the memory; may block. The memory belongs to the caller and must stay mapped until dat_lmr_free(). Outputs other
 * than lmr_handle may be NULL. A VIRTUAL region is strongly ordered like a SO_VIRTUAL one, unless the IA was opened
 * under a name with the prefix RO_AWARE_. In that case the device may order its accesses to the region as it likes.
 */
extern DAT_RETURN DAT_API dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
                                         DAT_REGION_DESCRIPTION region_desc, DAT_VLEN length, DAT_PZ_HANDLE pz_handle,
                                         DAT_MEM_PRIV_FLAGS mem_priv, DAT_LMR_HANDLE* lmr_handle,
                                         DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context,
                                         DAT_VLEN* registered_size, DAT_VADDR* registered_address);
extern DAT_RETURN DAT_API dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* param);

/* ---- Consumer notification object ---- */

/* Called with no lock held, on a thread of the provider, once per notification. */
typedef void(DAT_API* DAT_AGENT_FUNC)(DAT_PVOID instance_data, DAT_EVD_HANDLE evd_handle);

typedef struct dat_os_wait_proxy_agent {
  DAT_PVOID instance_data;
  DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;

#ifdef __cplusplus
#define DAT_OS_WAIT_PROXY_AGENT_NULL (DAT_OS_WAIT_PROXY_AGENT())
#else
#define DAT_OS_WAIT_PROXY_AGENT_NULL ((DAT_OS_WAIT_PROXY_AGENT){NULL, NULL})
#endif

typedef struct dat_cno_param {
  DAT_IA_HANDLE ia_handle;
  DAT_OS_WAIT_PROXY_AGENT agent;
} DAT_CNO_PARAM;

typedef enum dat_cno_param_mask {
  DAT_CNO_FIELD_IA_HANDLE = 0x1,
  DAT_CNO_FIELD_AGENT = 0x2,
  DAT_CNO_FIELD_ALL = 0x3
} DAT_CNO_PARAM_MASK;

extern DAT_RETURN DAT_API dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
                                         DAT_CNO_HANDLE* cno_handle);
extern DAT_RETURN DAT_API dat_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent);
extern DAT_RETURN DAT_API dat_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param);
/*
 * Blocks for at most `timeout` microseconds, then DAT_QUEUE_EMPTY. *evd_handle is a hint: other EVDs may have
 * triggered, too. It is DAT_HANDLE_NULL when the IA is closed or the last EVD of the CNO is freed.
 */
extern DAT_RETURN DAT_API dat_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd_handle);
extern DAT_RETURN DAT_API dat_cno_free(DAT_CNO_HANDLE cno_handle);

/* ---- Event dispatcher: making and waiting ---- */

typedef enum dat_evd_state {
  DAT_EVD_STATE_ENABLED = 0x01,
  DAT_EVD_STATE_DISABLED = 0x02,
  DAT_EVD_STATE_WAITABLE = 0x04,
  DAT_EVD_STATE_UNWAITABLE = 0x08,
  DAT_EVD_STATE_CONFIG_NOTIFY = 0x10,
  DAT_EVD_STATE_CONFIG_SOLICITED = 0x20,
  DAT_EVD_STATE_CONFIG_THRESHOLD = 0x30
} DAT_EVD_STATE;

struct dat_evd_param {
  DAT_IA_HANDLE ia_handle;
  DAT_COUNT evd_qlen;
  DAT_EVD_STATE evd_state;
  DAT_CNO_HANDLE cno_handle;
  DAT_EVD_FLAGS evd_flags;
};

extern DAT_RETURN DAT_API dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen, DAT_CNO_HANDLE cno_handle,
                                         DAT_EVD_FLAGS flags, DAT_EVD_HANDLE* evd_handle);
extern DAT_RETURN DAT_API dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle);
extern DAT_RETURN DAT_API dat_evd_enable(DAT_EVD_HANDLE evd_handle);
extern DAT_RETURN DAT_API dat_evd_disable(DAT_EVD_HANDLE evd_handle);

/*
 * Blocks until `threshold` events wait or `timeout` microseconds have passed, and takes one event. *nmore is the number
 * of remaining events, also on DAT_TIMEOUT_EXPIRED. One waiter at a time: DAT_INVALID_STATE for a second waiter.
 */
extern DAT_RETURN DAT_API dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
                                       DAT_EVENT* event, DAT_COUNT* nmore);
/* Ends a wait in progress and refuses new ones, until cleared. */
extern DAT_RETURN DAT_API dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle);
extern DAT_RETURN DAT_API dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle);

#ifdef __cplusplus
}
#endif

#endif
