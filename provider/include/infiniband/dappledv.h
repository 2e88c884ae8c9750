/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_INFINIBAND_DAPPLEDV_H
#define DAPPLE_INFINIBAND_DAPPLEDV_H

/*
 * Direct verbs of dapple: properties of a device and its memory that stock verbs does not report, and calls that sync
 * memory. infiniband/dappledv_fault.h has its faults for unit tests.
 *
 * A buffer that the program fills, the device sends, and a peer overwrites by an RDMA Write:
 *
 *   struct dappledv_device_attr device = {0};
 *   struct dappledv_region_attr region = {0};
 *   struct iovec range = {buffer, size};
 *   if (dappledv_query_device(context, &device) != 0 || dappledv_init_region(&device, &region) != 0) return -1;
 *   if (!device.sync_supported) return -1;           // no instruction: this device must not be used
 *   fill(buffer, size);
 *   dappledv_sync_for_device(&region, &range, 1);    // before ibv_post_send()
 *   send_and_await_the_answer();
 *   dappledv_sync_for_cpu(&region, &range, 1);       // after the completion of the peer's message
 *   use(buffer, size);
 *
 * The functions:
 *
 *   dappledv_query_device(context, &device);    properties of the device
 *   dappledv_init_region(&device, &region);     memory of the program, as this device sees it
 *   dappledv_override_region(&region, ...);     ... with another coherence than the device
 *   dappledv_persist_region(&region, ...);      ... that must survive a loss of power
 *   dappledv_dmabuf_region(&region, ...);       ... that is mapped from a dma-buf
 *   dappledv_sync_for_device(&region, ...);     before the device reads
 *   dappledv_sync_for_cpu(&region, ...);        after it has written
 *   dappledv_query_range(address, ..., &range); the kind of memory at an address
 *   dappledv_mark_free(block, size);            a block of the program's own memory pool, for dapple-run --check
 *
 * Every function of a context takes an open context of any device of any vendor, not only dapple's own.
 *
 * Functions that return int return 0, or the value of errno for the reason. They do not change errno itself.
 *
 * Threads: any number of threads may call every function at the same time, dappledv_attach() with a condition. Only
 * functions of an attached context block on another thread. No function keeps a reference to its arguments. Only the
 * queries, dappledv_attach(), dappledv_persist_region() and the functions of an attached context allocate memory. The
 * queries, dappledv_attach() and dappledv_persist_region() read the environment: like getenv(3) they must not run while
 * another thread changes it.
 *
 * Structures: a later version of this header adds fields at the end, each with a bit in comp_mask. A program sets the
 * bits of the wanted fields before a call that fills the structure. The call fills these fields if it knows them,
 * writes no other such field, and leaves the bits of the filled fields. No bit is defined yet, so comp_mask is 0. The
 * structures hold values and pointers to static strings only: they may be copied freely, and outlive the context.
 */

#include <infiniband/dappledv_fault.h>
#include <infiniband/dappledv_refusal.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The places where CPU and device can disagree about the contents of memory. Values may be added at the end. */
enum dappledv_coherence {
  /* No source has an answer. Treated like DAPPLEDV_COHERENCE_NONCOHERENT_CPU. */
  DAPPLEDV_COHERENCE_UNKNOWN = 0,
  /* Nowhere: CPU and device see each other's writes. */
  DAPPLEDV_COHERENCE_COHERENT,
  /* In the CPU's caches, which user space can maintain. */
  DAPPLEDV_COHERENCE_NONCOHERENT_CPU,
  /* Also in a cache on the I/O side, which user space cannot reach. */
  DAPPLEDV_COHERENCE_NONCOHERENT_IO,
  /* Everywhere: the device works on copies of the program's pages, which are not kept up to date. No call helps. */
  DAPPLEDV_COHERENCE_BOUNCED,
};

/* The source of enum dappledv_coherence. Values may be added at the end. */
enum dappledv_reason {
  DAPPLEDV_REASON_NONE = 0,
  /* DAPPLE_COHERENCE in the environment. */
  DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT,
  /* The argument of dappledv_query_device_override(). */
  DAPPLEDV_REASON_OVERRIDE_PARAMETER,
  /* The device is a program: the CPU does its copying. */
  DAPPLEDV_REASON_SOFTWARE_DEVICE,
  /* The kernel's answer: a flag of the device, or the result of a registration. */
  DAPPLEDV_REASON_KERNEL,
  /* The firmware's description of the machine, which the kernel believes. */
  DAPPLEDV_REASON_FIRMWARE,
  /* A rule for machines of this architecture. */
  DAPPLEDV_REASON_ARCHITECTURE,
  /* No source has an answer: this is the likely answer, or the safe one. */
  DAPPLEDV_REASON_ASSUMED,
  /* The caller of dappledv_override_region(). */
  DAPPLEDV_REASON_OVERRIDE_REGION,
  /* DAPPLEDV_ATTACH_EMULATE. */
  DAPPLEDV_REASON_EMULATOR,
  /* The kernel maintains the memory: dappledv_dmabuf_region(). */
  DAPPLEDV_REASON_DMABUF,
};

/* The certainty of an answer, the highest first. Values may be added at the end. */
enum dappledv_certainty {
  DAPPLEDV_CERTAINTY_NONE = 0,
  /* An override. */
  DAPPLEDV_CERTAINTY_OVERRIDE,
  /* The kernel shows it. */
  DAPPLEDV_CERTAINTY_KERNEL,
  /* The firmware reports it, and the kernel believes it. */
  DAPPLEDV_CERTAINTY_FIRMWARE,
  /* All machines of this architecture have it. */
  DAPPLEDV_CERTAINTY_ARCHITECTURE,
  /* The usual answer, or the safe one. */
  DAPPLEDV_CERTAINTY_ASSUMED,
};

/* An answer, which may be unknown. */
enum dappledv_answer {
  DAPPLEDV_ANSWER_UNKNOWN = 0,
  DAPPLEDV_ANSWER_NO,
  DAPPLEDV_ANSWER_YES,
};

/* The place that a store must reach to survive a loss of power. Values may be added at the end. */
enum dappledv_persistence {
  /* Not specified. */
  DAPPLEDV_PERSISTENCE_UNSPECIFIED = 0,
  /* Outside of the CPU's caches: persist_instruction brings data there. */
  DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER,
  /* The CPU's caches (eADR): a wait is sufficient. */
  DAPPLEDV_PERSISTENCE_CPU_CACHES,
};

/* The kind of memory behind a mapping. Values may be added at the end. */
enum dappledv_memory {
  /* The kernel reports no kind. */
  DAPPLEDV_MEMORY_UNKNOWN = 0,
  /* Memory of the program alone: its heap, its stacks. */
  DAPPLEDV_MEMORY_ANONYMOUS,
  /* Pages of a file in the kernel's page cache, also of tmpfs, memfd and hugetlbfs. */
  DAPPLEDV_MEMORY_PAGE_CACHE,
  /* A file on persistent memory, without a page cache (fsdax). */
  DAPPLEDV_MEMORY_DAX_FILE,
  /* A device of persistent memory (devdax). */
  DAPPLEDV_MEMORY_DAX_DEVICE,
  DAPPLEDV_MEMORY_DMABUF,
  /* Registers or memory of a device. */
  DAPPLEDV_MEMORY_DEVICE,
};

/* The CPU's caching of a mapping. Values may be added at the end. */
enum dappledv_caching {
  /* The kernel does not report it. */
  DAPPLEDV_CACHING_UNKNOWN = 0,
  DAPPLEDV_CACHING_WRITE_BACK,
  /* No caching; stores wait in buffers of the CPU. */
  DAPPLEDV_CACHING_WRITE_COMBINING,
  DAPPLEDV_CACHING_UNCACHED,
};

/* The answer of dappledv_query_device(). */
struct dappledv_device_attr {
  uint64_t comp_mask;
  enum dappledv_coherence coherence;
  enum dappledv_reason reason;
  /* The certainty of the coherence. */
  enum dappledv_certainty certainty;
  /* Bytes: the CPU's cache line, the stride of maintenance. Never 0. */
  uint32_t line_size;
  /* Bytes: the unit that a write-back may touch; align buffers to it. Never 0, never less than line_size. */
  uint32_t writeback_granule;
  /* 1: dappledv_sync_for_device() has work to do beyond ordering. */
  uint8_t sync_for_device_required;
  /* 1: dappledv_sync_for_cpu() has work to do beyond ordering. DAT's lmr_sync_req is the OR of the two. */
  uint8_t sync_for_cpu_required;
  /* 1: after the calls CPU and device agree. 0: there is a cache that the calls cannot reach. */
  uint8_t sync_complete;
  /*
   * 0: the device requires maintenance, but user space has no instruction for it, so the device must not be used. 1:
   * otherwise, and always on a coherent device.
   */
  uint8_t sync_supported;
  /* 1: the sync calls can make data in persistent memory survive a loss of power: dappledv_persist_region(). */
  uint8_t persist_supported;

  /* These three hold an enum dappledv_answer. */

  /*
   * Data in the CPU's caches survives a loss of power, so persistent memory needs no maintenance. A property of the
   * machine, not of the device; unknown if the kernel reports no persistent memory, or no domain for a part of it.
   */
  uint8_t caches_persistent;
  /*
   * Tell whether the Device Control register of the PCIe function allows these. Unknown without the privilege to read
   * the register.
   */
  uint8_t pci_relaxed_ordering;
  uint8_t pci_no_snoop;
  /* 0. */
  uint8_t reserved[4];

  /* This CPU's instruction, on coherent devices, too: "clwb", "dc cvac"; "none" if user space has none. Static. */
  const char* clean_instruction;
  /* The same: "clflushopt", "dc civac". */
  const char* clean_invalidate_instruction;
  /*
   * The instruction that makes a line survive a loss of power: "clwb", "dc cvap"; "none" if no instruction does, or if
   * caches_persistent is yes (eADR) and a wait is sufficient. Static.
   */
  const char* persist_instruction;
  /* The reason in one human-readable line without a full stop. Static, never NULL. */
  const char* explanation;
  /* The reason why this CPU or kernel gives user space no cache maintenance, in one line; NULL if it does. Static. */
  const char* refusal;
};

/*
 * The attributes of a piece of memory for a device, for the sync calls. dappledv_init_region() makes them, and the
 * functions after it change them. The program may read them.
 */
struct dappledv_region_attr {
  uint64_t comp_mask;
  enum dappledv_coherence coherence;
  enum dappledv_reason reason;
  enum dappledv_certainty certainty;
  /* The domain to which the sync calls bring data; DAPPLEDV_PERSISTENCE_UNSPECIFIED: they do not persist data. */
  enum dappledv_persistence persistence;
  /* As in struct dappledv_device_attr. */
  uint8_t sync_for_device_required;
  uint8_t sync_for_cpu_required;
  uint8_t sync_complete;
  uint8_t sync_supported;
  /* 1: memory of the dma-buf dmabuf_fd; the sync calls ask the kernel to maintain it. */
  uint8_t dmabuf;
  /* 0. */
  uint8_t reserved[3];
  int dmabuf_fd;
  /* 0. */
  uint32_t reserved_too;
  /* The reason in one human-readable line without a full stop. Static, never NULL. */
  const char* explanation;
};

/*
 * Queries whether the CPU and the device see each other's writes, with the reason, and other properties that stock
 * verbs does not report.
 *
 * The first of these with an answer decides about coherence: the emulator of dappledv_attach(); DAPPLE_COHERENCE in the
 * environment; a software device, by its driver; a device whose DMA the kernel bounces; a kernel that registers only
 * memory that is coherent with the device, and has registered a page for this device; the devicetree; the rule of the
 * architecture; an assumption about servers with ACPI. Otherwise the answer is DAPPLEDV_COHERENCE_UNKNOWN, and
 * maintenance is required. If such a kernel refuses the page, no later step makes the device coherent.
 *
 * DAPPLE_COHERENCE is one word for all devices, "coherent", "cpu" or "io", or a list like "rxe0=cpu,mlx5_0=coherent" of
 * devices by their verbs names. DAPPLE_PERSISTENCE, "memory_controller" or "cpu_cache", replaces the kernel's report
 * about persistent memory. Setuid programs ignore both variables. A malformed value is an error, with one line on
 * standard error.
 *
 * The call reads sysfs and the devicetree, asks the device for its capabilities, and may register and deregister its
 * own page: call it once for a device, not in a loop.
 *
 * context: an open device. attr: caller's memory, comp_mask set by the caller, the rest written on success only.
 *
 * Returns 0, or:
 *   EINVAL  context, its device or attr is NULL, or a variable of the environment is malformed
 */
int dappledv_query_device(struct ibv_context* context, struct dappledv_device_attr* attr) DAPPLEDV_NOEXCEPT;

/*
 * Like dappledv_query_device(), with an answer from a configuration. coherence is "coherent", "cpu" or "io", or NULL
 * for no answer. In the order above, this answer follows DAPPLE_COHERENCE.
 *
 * Returns 0, or:
 *   EINVAL  as above, or coherence is another word, even if DAPPLE_COHERENCE decides
 */
int dappledv_query_device_override(struct ibv_context* context, const char* coherence,
                                   struct dappledv_device_attr* attr) DAPPLEDV_NOEXCEPT;

/*
 * Makes the attributes of ordinary memory of the program, for the sync calls. The memory has the coherence of the
 * device.
 *
 * device: the answer of a query. region: caller's memory, comp_mask set by the caller, the rest written on success
 * only.
 *
 * Returns 0, or:
 *   EINVAL  a pointer is NULL
 */
int dappledv_init_region(const struct dappledv_device_attr* device,
                         struct dappledv_region_attr* region) DAPPLEDV_NOEXCEPT;

/*
 * Marks a piece of memory as more or less coherent than the device. Examples: memory that hosts share without keeping
 * it coherent, on a coherent device; memory from ibv_alloc_buf() on a device whose DMA is bounced.
 *
 * region: the result of dappledv_init_region(); changed on success only. coherence: DAPPLEDV_COHERENCE_COHERENT,
 * _NONCOHERENT_CPU or _NONCOHERENT_IO.
 *
 * Returns 0, or:
 *   EINVAL      region is NULL, or coherence is none of these
 *   EOPNOTSUPP  the memory requires maintenance, and this CPU gives user space no instruction for it
 */
int dappledv_override_region(struct dappledv_region_attr* region, enum dappledv_coherence coherence) DAPPLEDV_NOEXCEPT;

/*
 * Marks a piece of memory that must survive a loss of power (fsdax, devdax). The sync calls with these attributes
 * return only when the data that this thread or the device has written to the ranges is in the persistence domain. The
 * other functions for regions may be called for the same region, before or after this one.
 *
 * The caller must know that the memory is persistent. A range without a sync may also survive, in any order and in
 * part.
 *
 * region: the result of dappledv_init_region(); changed on success only. domain: where the domain of this memory
 * begins; DAPPLEDV_PERSISTENCE_UNSPECIFIED: the domain from DAPPLE_PERSISTENCE, or else from the kernel for all
 * persistent memory of the machine. The kernel reports no domain for some memory, such as memory that firmware or
 * memmap= reserves (e820).
 *
 * Returns 0, or:
 *   EINVAL      region is NULL, domain is not such a value, or DAPPLE_PERSISTENCE is malformed
 *   EOPNOTSUPP  no known instruction is sufficient
 */
int dappledv_persist_region(struct dappledv_region_attr* region, enum dappledv_persistence domain) DAPPLEDV_NOEXCEPT;

/*
 * Marks a piece of memory as mapped from a dma-buf, for which the kernel does maintenance that user space cannot do.
 * The sync calls request it by DMA_BUF_IOCTL_SYNC, for the whole buffer, and ignore the ranges. Call
 * dappledv_sync_for_cpu() before the CPU first touches the buffer and after the device has written, and
 * dappledv_sync_for_device() before the device reads or writes. The exporting driver decides the extent of the
 * maintenance.
 *
 * region: the result of dappledv_init_region(); changed on success only. fd: the descriptor of the dma-buf; it belongs
 * to the caller, and must stay open while region is in use.
 *
 * Returns 0, or:
 *   EINVAL  region is NULL, or fd is not a dma-buf
 */
int dappledv_dmabuf_region(struct dappledv_region_attr* region, int fd) DAPPLEDV_NOEXCEPT;

/*
 * Makes this thread's writes to the ranges visible to the device. Call it after writing and before the device reads,
 * that is, before you post the work request, or before you tell the peer that it may read.
 *
 * Unless region->coherence is DAPPLEDV_COHERENCE_COHERENT, the call cleans each cache line with a byte of the ranges
 * (writes it back, partial lines at both ends included), and returns when that is complete. On a coherent device it
 * orders earlier stores before later stores towards the device, and does not look at the ranges.
 *
 * Memory that is mapped write-combining (mostly device memory) has no lines: stores wait in buffers of the CPU. The
 * call empties these buffers if it waits for maintenance, but not if it only orders accesses. For such memory on a
 * coherent device make a region with dappledv_override_region(DAPPLEDV_COHERENCE_NONCOHERENT_CPU). The same holds for
 * non-temporal stores.
 *
 * region: the result of the functions above. ranges: num_ranges pieces of mapped and readable memory; unmapped memory
 * faults as an access to it would. A length of 0 touches nothing; ranges may be NULL if num_ranges is 0.
 *
 * Returns 0, an error of DMA_BUF_IOCTL_SYNC, or:
 *   EINVAL      region is NULL
 *   EOPNOTSUPP  region->sync_supported is 0, and the call was only a full barrier
 */
int dappledv_sync_for_device(const struct dappledv_region_attr* region, const struct iovec* ranges,
                             size_t num_ranges) DAPPLEDV_NOEXCEPT;

/*
 * Makes the device's writes to the ranges visible to this thread, and prepares the ranges for writes of the device.
 * Call it before the device may write, if the CPU has touched the ranges, and after the device has written, before you
 * read or write the ranges. (dappledv_sync_for_device() prepares memory of a dma-buf.)
 *
 * Unless region->coherence is DAPPLEDV_COHERENCE_COHERENT, the call cleans and invalidates each line, and returns when
 * that is complete. On a coherent device it orders earlier loads, such as the load of the completion, before later
 * accesses.
 *
 * User space cannot discard a dirty line without writing it back, on any architecture. A line that the CPU and the
 * device write at the same time is corrupted, by this call or at any time before it. Keep other data out of such lines:
 * align and pad to writeback_granule.
 *
 * Arguments and return values as for dappledv_sync_for_device().
 */
int dappledv_sync_for_cpu(const struct dappledv_region_attr* region, const struct iovec* ranges,
                          size_t num_ranges) DAPPLEDV_NOEXCEPT;

/* The answer of dappledv_query_range(). */
struct dappledv_range_attr {
  uint64_t comp_mask;
  /* The number of bytes from the address on that the answer covers: at least 1, at most the requested length. */
  uint64_t length;
  enum dappledv_memory memory;
  enum dappledv_caching caching;
  /* The kernel's report for the persistent memory of a DAX mapping; other memory and private mappings have none. */
  enum dappledv_persistence persistence;
  /* Yes if memory attached by CXL holds the range, or a part of its mapping: an enum dappledv_answer. */
  uint8_t cxl;
  /* 0. */
  uint8_t reserved[3];
  /* The source of the answer, in one human-readable line without a full stop. Static, never NULL. */
  const char* explanation;
};

/*
 * Describes the memory that is mapped at an address, as far as the kernel reports it to a program (/proc/self, sysfs);
 * other properties are unknown. The call touches no memory and faults no page in. It reads files, some of them long: do
 * not call it for each transfer. It may or may not see mappings that another thread makes during the call.
 *
 * address, length: a range; length is not 0. attr: caller's memory, comp_mask set by the caller, the rest written on
 * success only. attr->length is the length that the answer covers; query the rest with another call.
 *
 * Returns 0, an error of reading /proc/self/smaps, or:
 *   EINVAL  attr is NULL, or length is 0 or passes the end of the address space
 *   EFAULT  nothing is mapped at address
 */
int dappledv_query_range(const void* address, size_t length, struct dappledv_range_attr* attr) DAPPLEDV_NOEXCEPT;

/* Options of dappledv_attach(). Bits may be added. */
enum dappledv_attach_flags {
  /*
   * Emulate a device that is not coherent: the device and the program work on different memory, and only sync calls
   * move lines between them. Needs a device that honours a region's IOVA, such as rxe.
   */
  DAPPLEDV_ATTACH_EMULATE = 1 << 0,
};

/*
 * Attaches an overlay to an open context, until the context is closed. From now on dapple records its memory regions,
 * which dappledv_sync_mr_for_device() and dappledv_sync_mr_for_cpu() need. The program uses the context as before;
 * posting and polling do not change.
 *
 * The call replaces operations in a private table of libibverbs. It first verifies that the table has the layout of a
 * known release of rdma-core. Otherwise it refuses, with one line on standard error and without a change.
 *
 * Regions that were registered before the call are unknown. A second call with the same flags does nothing. The overlay
 * cannot be detached. No other thread may use the context, or close another context, during the call. A child of fork()
 * has a copy of the overlay with its own tables.
 *
 * context: an open device. flags: of enum dappledv_attach_flags.
 *
 * Returns 0, or:
 *   EINVAL      context or its device is NULL, a flag is unknown, or a variable is malformed
 *   EBUSY       the context is attached with other flags
 *   EOPNOTSUPP  the table of libibverbs has an unknown layout, or the device cannot be emulated
 *   ENOMEM      no memory
 */
int dappledv_attach(struct ibv_context* context, uint64_t flags) DAPPLEDV_NOEXCEPT;

/*
 * The reason why dappledv_attach(context, 0) would be refused, in one human-readable line without a full stop; NULL if
 * it would not be refused. The call changes and prints nothing. context: an open device, or NULL to check only
 * libibverbs. Static.
 */
const char* dappledv_attach_obstacle(struct ibv_context* context) DAPPLEDV_NOEXCEPT;

/*
 * Like dappledv_sync_for_device(), for pieces of registered memory in the form of a work request: addr is the device's
 * address, so it is an offset in a zero-based region, and lkey identifies the region. The call first checks all
 * segments. If a segment is not in its region, or its region is unknown, nothing is synced.
 *
 * context: attached. segments: num_segments pieces, may be NULL if that is 0; a segment with a length of 0 touches
 * nothing, but must also be in its region. bad_segment: NULL, or the place for the index of the first wrong segment,
 * written only if a segment is wrong. The call uses the device's coherence at dappledv_attach(). It waits while another
 * thread registers or deregisters memory.
 *
 * Returns 0, or:
 *   EINVAL      segments is NULL, or a segment is not in a region that was registered, from memory of the program,
 *               after dappledv_attach()
 *   EOPNOTSUPP  context is not attached, or this CPU lacks the instructions
 *   ENOMEM      no memory
 */
int dappledv_sync_mr_for_device(struct ibv_context* context, const struct ibv_sge* segments, size_t num_segments,
                                size_t* bad_segment) DAPPLEDV_NOEXCEPT;

/* Like dappledv_sync_for_cpu(), with segments as for dappledv_sync_mr_for_device(). */
int dappledv_sync_mr_for_cpu(struct ibv_context* context, const struct ibv_sge* segments, size_t num_segments,
                             size_t* bad_segment) DAPPLEDV_NOEXCEPT;

/*
 * For a program with a memory pool of its own, under dapple-run --check: the block is free from now on, like one that
 * the program has given to free(). A request or a peer that uses the block gets the report freed-memory of
 * dapple-check(1), and a request that uses the block already gets memory-in-use. The function does nothing without
 * --check, and in a program with a sanitizer: AddressSanitizer has ASAN_POISON_MEMORY_REGION.
 *
 * block, size: memory that is registered. A registration makes all of its memory used, so mark the blocks after it. The
 * call allocates memory and takes locks. It waits for no other thread for long.
 */
void dappledv_mark_free(const void* block, size_t size) DAPPLEDV_NOEXCEPT;

/* The block is used from now on, like one that malloc() has returned. Call it before the block is handed out. */
void dappledv_mark_used(const void* block, size_t size) DAPPLEDV_NOEXCEPT;

/* The value in words, e.g. "non-coherent (CPU caches)". Static; "invalid" for a value this library does not know. */
const char* dappledv_coherence_str(enum dappledv_coherence coherence) DAPPLEDV_NOEXCEPT;

/* The value in words, e.g. "software device". Static; "invalid" for a value this library does not know. */
const char* dappledv_reason_str(enum dappledv_reason reason) DAPPLEDV_NOEXCEPT;

/* The value in words, e.g. "firmware". Static; "invalid" for a value this library does not know. */
const char* dappledv_certainty_str(enum dappledv_certainty certainty) DAPPLEDV_NOEXCEPT;

/* "yes", "no" or "unknown". Static; "invalid" for a value this library does not know. */
const char* dappledv_answer_str(enum dappledv_answer answer) DAPPLEDV_NOEXCEPT;

/* The value in words, e.g. "page cache". Static; "invalid" for a value this library does not know. */
const char* dappledv_memory_str(enum dappledv_memory memory) DAPPLEDV_NOEXCEPT;

/* The value in words, e.g. "write-back". Static; "invalid" for a value this library does not know. */
const char* dappledv_caching_str(enum dappledv_caching caching) DAPPLEDV_NOEXCEPT;

/* The kernel's word, e.g. "cpu_cache", or "unspecified". Static; "invalid" for a value this library does not know. */
const char* dappledv_persistence_str(enum dappledv_persistence persistence) DAPPLEDV_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* DAPPLE_INFINIBAND_DAPPLEDV_H */
