/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_INFINIBAND_DAPPLEDV_H
#define DAPPLE_INFINIBAND_DAPPLEDV_H

/*
 * Direct verbs of dapple: what stock verbs does not say about a device and its memory, and the calls that make memory
 * right.
 *
 *   dappledv_query_device(context, &device);    what is true of the device
 *   dappledv_init_region(&device, &region);     memory of the program, as this device sees it
 *   dappledv_override_region(&region, ...);     other memory: not coherent, persistent, of a dma-buf
 *   dappledv_sync_for_device(&region, ...);     before the device reads
 *   dappledv_sync_for_cpu(&region, ...);        after it has written
 *   dappledv_query_range(address, ..., &range); what kind of memory lies there
 *
 * Every function takes an open context of any device of any vendor, not only dapple's own.
 *
 * Functions that return int return 0, or the value of errno that tells the reason; errno itself is left alone.
 *
 * Threads: every function may be called by any number of threads at the same time, dappledv_attach() with a condition.
 * None but those of an attached context blocks on another thread; none keeps a reference to its arguments. Only the
 * queries and those of an attached context allocate memory. The queries, and dappledv_persist_region(), read the
 * environment: like getenv(3) they must not run while another thread changes it.
 *
 * Structures: a later version of this header adds fields at the end, each with a bit in comp_mask. A program sets the
 * bits of the fields it wants before a call that fills the structure, and finds there those that were filled; no other
 * field of that kind is written. No bit is defined yet, so comp_mask is 0. The structures hold values and pointers to
 * static strings only: they may be copied freely, and outlive the context.
 */

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#define DAPPLEDV_NOEXCEPT noexcept
#else
#define DAPPLEDV_NOEXCEPT
#endif

/* The places where CPU and device can disagree about the contents of memory. Values may be added at the end. */
enum dappledv_coherence {
  /* Nothing says. Treated like DAPPLEDV_COHERENCE_NONCOHERENT_CPU. */
  DAPPLEDV_COHERENCE_UNKNOWN = 0,
  /* Nowhere: what one writes the other sees. */
  DAPPLEDV_COHERENCE_COHERENT,
  /* In the CPU's caches, which user space can maintain. */
  DAPPLEDV_COHERENCE_NONCOHERENT_CPU,
  /* Also in a cache on the I/O side, which user space cannot reach. */
  DAPPLEDV_COHERENCE_NONCOHERENT_IO,
  /* Everywhere: the device works on copies of the program's pages, which nobody keeps up to date. No call mends it. */
  DAPPLEDV_COHERENCE_BOUNCED,
};

/* Who decided enum dappledv_coherence. Values may be added at the end. */
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
  /* The firmware's description of the machine: what the kernel believes. */
  DAPPLEDV_REASON_FIRMWARE,
  /* A rule for machines of this architecture. */
  DAPPLEDV_REASON_ARCHITECTURE,
  /* Nothing says: what is likely was taken, or the safe answer. */
  DAPPLEDV_REASON_ASSUMED,
  /* The caller of dappledv_override_region(). */
  DAPPLEDV_REASON_OVERRIDE_REGION,
  /* DAPPLEDV_ATTACH_EMULATE makes it so. */
  DAPPLEDV_REASON_EMULATOR,
  /* The kernel maintains the memory: dappledv_dmabuf_region(). */
  DAPPLEDV_REASON_DMABUF,
};

/* How sure an answer is, surest first. Values may be added at the end. */
enum dappledv_certainty {
  DAPPLEDV_CERTAINTY_NONE = 0,
  /* Somebody said so, who is believed. */
  DAPPLEDV_CERTAINTY_OVERRIDE,
  /* The kernel shows it. */
  DAPPLEDV_CERTAINTY_KERNEL,
  /* The firmware says it, and the kernel believes it. */
  DAPPLEDV_CERTAINTY_FIRMWARE,
  /* So it is on machines of this architecture. */
  DAPPLEDV_CERTAINTY_ARCHITECTURE,
  /* So it mostly is, or so it is safe. */
  DAPPLEDV_CERTAINTY_ASSUMED,
};

/* Of a question that cannot always be answered. */
enum dappledv_answer {
  DAPPLEDV_ANSWER_UNKNOWN = 0,
  DAPPLEDV_ANSWER_NO,
  DAPPLEDV_ANSWER_YES,
};

/* The distance a store has to travel to outlive a power cut. Values may be added at the end. */
enum dappledv_persistence {
  /* Nothing is said. */
  DAPPLEDV_PERSISTENCE_UNSPECIFIED = 0,
  /* Out of the CPU's caches: persist_instruction brings it there. */
  DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER,
  /* Into them (eADR): to wait is enough. */
  DAPPLEDV_PERSISTENCE_CPU_CACHES,
};

/* The kind of memory behind a mapping. Values may be added at the end. */
enum dappledv_memory {
  /* Nothing says. */
  DAPPLEDV_MEMORY_UNKNOWN = 0,
  /* Memory of the program alone: its heap, its stacks. */
  DAPPLEDV_MEMORY_ANONYMOUS,
  /* Pages of a file in the kernel's page cache, those of tmpfs, memfd and hugetlbfs among them. */
  DAPPLEDV_MEMORY_PAGE_CACHE,
  /* A file on persistent memory, without a page cache between (fsdax). */
  DAPPLEDV_MEMORY_DAX_FILE,
  /* A device of such memory (devdax). */
  DAPPLEDV_MEMORY_DAX_DEVICE,
  DAPPLEDV_MEMORY_DMABUF,
  /* Registers or memory of a device. */
  DAPPLEDV_MEMORY_DEVICE,
};

/* The CPU's caching of a mapping. Values may be added at the end. */
enum dappledv_caching {
  /* Nothing says. */
  DAPPLEDV_CACHING_UNKNOWN = 0,
  DAPPLEDV_CACHING_WRITE_BACK,
  /* Not at all; stores wait in buffers of the CPU. */
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
  /* Bytes: what a write-back may touch; buffers should be aligned to it. Never 0, never less than line_size. */
  uint32_t writeback_granule;
  /* 1: dappledv_sync_for_device() has work to do beyond ordering. */
  uint8_t sync_for_device_required;
  /* 1: dappledv_sync_for_cpu() has. DAT's lmr_sync_req is the OR of the two. */
  uint8_t sync_for_cpu_required;
  /* 1: after the calls CPU and device agree. 0: something stays out of reach. */
  uint8_t sync_complete;
  /*
   * 0: the device requires maintenance and nothing that user space may do here is any, so the device must not be used.
   * Else 1, and always on a coherent device.
   */
  uint8_t sync_supported;
  /* 1: memory that is persistent can be synced so that it outlives a power cut: dappledv_persist_region(). */
  uint8_t persist_supported;

  /* These three hold an enum dappledv_answer. */

  /*
   * What is in the CPU's caches survives a loss of power, so that memory which is persistent is so without maintenance.
   * Of the machine, not the device; unknown where the kernel shows no persistent memory.
   */
  uint8_t caches_persistent;
  /* As the PCIe function's Device Control register allows; unknown without the privilege to read it. */
  uint8_t pci_relaxed_ordering;
  uint8_t pci_no_snoop;
  /* 0. */
  uint8_t reserved[4];

  /* Of this CPU, on coherent devices, too: "clwb", "dc cvac"; "none" where user space has none. Static. */
  const char* clean_instruction;
  /* Likewise: "clflushopt", "dc civac". */
  const char* clean_invalidate_instruction;
  /*
   * What brings a line to where it outlives a power cut: "clwb", "dc cvap"; "none" where that is not possible, or where
   * caches_persistent is yes (eADR) and to wait is enough. Static.
   */
  const char* persist_instruction;
  /* The reason in one line for people, without a full stop. Static, never NULL. */
  const char* explanation;
  /* Why this CPU or kernel gives user space no cache maintenance, for people; NULL where it does. Static. */
  const char* refusal;
};

/*
 * The sync calls' knowledge about a piece of memory, as a device sees it. Made by dappledv_init_region(),
 * changed by the functions after it, looked at by the program as it likes.
 */
struct dappledv_region_attr {
  uint64_t comp_mask;
  enum dappledv_coherence coherence;
  enum dappledv_reason reason;
  enum dappledv_certainty certainty;
  /* The domain that the sync calls bring data to; DAPPLEDV_PERSISTENCE_UNSPECIFIED: they do not persist. */
  enum dappledv_persistence persistence;
  /* As in struct dappledv_device_attr. */
  uint8_t sync_for_device_required;
  uint8_t sync_for_cpu_required;
  uint8_t sync_complete;
  uint8_t sync_supported;
  /* 1: memory of the dma-buf dmabuf_fd, which the sync calls ask the kernel to maintain. */
  uint8_t dmabuf;
  /* 0. */
  uint8_t reserved[3];
  int dmabuf_fd;
  /* 0. */
  uint32_t reserved_too;
  /* The reason in one line for people, without a full stop. Static, never NULL. */
  const char* explanation;
};

/*
 * Tells whether CPU and device see the same memory, why that is believed, and what else stock verbs does not say, or
 * says in several places.
 *
 * About coherence, in this order, the first that has an answer decides: the emulator of dappledv_attach();
 * DAPPLE_COHERENCE in the environment; a software device, by its driver; a device whose DMA the kernel bounces; a
 * kernel that registers only memory that is coherent with the device, and has registered a page for this one; the
 * devicetree; the rule of the architecture; what is assumed, of servers with ACPI; else the answer is
 * DAPPLEDV_COHERENCE_UNKNOWN and maintenance is required. Where such a kernel refuses the page nothing that comes later
 * makes the device coherent.
 *
 * DAPPLE_COHERENCE is one word for all devices, "coherent", "cpu" or "io", or a list like "rxe0=cpu,mlx5_0=coherent"
 * of devices by their verbs names. DAPPLE_PERSISTENCE, "memory_controller" or "cpu_cache", stands in place of what the
 * kernel says of persistent memory. Both are ignored in setuid programs. A malformed one is an error, said once on
 * standard error.
 *
 * It reads sysfs and the devicetree, asks the device for its capabilities, and may register and deregister a page of
 * its own: to be called once for a device, not in a loop.
 *
 * context: an open device. attr: caller's memory, comp_mask set by the caller, the rest written on success only.
 * Returns 0, or EINVAL: context, its device or attr is NULL, or a variable of the environment is malformed.
 */
int dappledv_query_device(struct ibv_context* context, struct dappledv_device_attr* attr) DAPPLEDV_NOEXCEPT;

/*
 * Like dappledv_query_device(), with an answer given by a configuration: coherence is "coherent", "cpu", "io", or
 * NULL for none. It comes after the environment in the order above.
 *
 * Returns 0, or EINVAL: as above, or coherence is another word (whatever the environment says).
 */
int dappledv_query_device_override(struct ibv_context* context, const char* coherence,
                                   struct dappledv_device_attr* attr) DAPPLEDV_NOEXCEPT;

/*
 * Makes the attributes of ordinary memory of the program, for the sync calls: as coherent with the device as the device
 * is.
 *
 * device: as a query returned it. region: caller's memory, comp_mask set by the caller, the rest written on success
 * only.
 * Returns 0, or EINVAL: a pointer is NULL.
 */
int dappledv_init_region(const struct dappledv_device_attr* device,
                         struct dappledv_region_attr* region) DAPPLEDV_NOEXCEPT;

/*
 * Says that a piece of memory is more coherent, or less, than the device: memory that hosts share without keeping it
 * coherent, say, on a coherent device; memory of ibv_alloc_buf() on a device whose DMA is bounced.
 *
 * region: as dappledv_init_region() made it; changed on success only. coherence: DAPPLEDV_COHERENCE_COHERENT,
 * _NONCOHERENT_CPU or _NONCOHERENT_IO.
 *
 * Returns 0; EINVAL: region is NULL, or coherence is none of these; EOPNOTSUPP: the memory requires maintenance, and
 * this CPU gives user space no instruction for it.
 */
int dappledv_override_region(struct dappledv_region_attr* region, enum dappledv_coherence coherence) DAPPLEDV_NOEXCEPT;

/*
 * Says that a piece of memory is to outlive a power cut (fsdax, devdax): the sync calls with these attributes end only
 * when what was written to the ranges, by this thread or by the device, has arrived in the persistence domain. To be
 * combined with the other functions on regions, in any order.
 *
 * That the memory is persistent is the caller's to know. A range that was not synced may survive all the same, in any
 * order and in part.
 *
 * region: as dappledv_init_region() made it; changed on success only. domain: where the domain of this memory begins;
 * DAPPLEDV_PERSISTENCE_UNSPECIFIED: where DAPPLE_PERSISTENCE says, else where the kernel says for all persistent memory
 * of the machine. The kernel says nothing of some, as of that which firmware or memmap= sets aside (e820).
 *
 * Returns 0; EINVAL: region is NULL, domain is no such value, or DAPPLE_PERSISTENCE is malformed; EOPNOTSUPP: no
 * instruction is known that is enough.
 */
int dappledv_persist_region(struct dappledv_region_attr* region, enum dappledv_persistence domain) DAPPLEDV_NOEXCEPT;

/*
 * Says that a piece of memory is mapped from a dma-buf, for which the kernel does the maintenance that user space
 * cannot: the sync calls ask for it by DMA_BUF_IOCTL_SYNC, for the whole buffer, whatever the ranges are. The kernel
 * hands the buffer to and fro: dappledv_sync_for_cpu() before the CPU first touches it and after the device has
 * written, dappledv_sync_for_device() before the device reads or writes. How much is done is the exporter's matter.
 *
 * region: as dappledv_init_region() made it; changed on success only. fd: of the dma-buf; it stays the caller's, and
 * must be open as long as region is used.
 *
 * Returns 0, or EINVAL: region is NULL, fd is no dma-buf.
 */
int dappledv_dmabuf_region(struct dappledv_region_attr* region, int fd) DAPPLEDV_NOEXCEPT;

/*
 * Makes what this thread wrote to the ranges visible to the device: to be called after writing, before the device
 * reads (before the work request is posted, or before the peer is told that it may read).
 *
 * Unless region->coherence is DAPPLEDV_COHERENCE_COHERENT each cache line that holds a byte of the ranges is cleaned
 * (written back, partial lines at both ends included), and the call returns when that is complete. On a coherent
 * device it orders earlier stores before later ones towards the device and does not look at the ranges.
 *
 * Memory that is mapped write-combining (a device's, mostly) has no lines: stores wait in buffers of the CPU. The call
 * empties those where it waits for maintenance, and not where it only orders: of such memory on a coherent device make
 * a region with dappledv_override_region(DAPPLEDV_COHERENCE_NONCOHERENT_CPU). The same goes for non-temporal stores.
 *
 * region: as the functions above made it. ranges: num_ranges of them, addresses in bytes, mapped and readable: unmapped
 * memory faults as an access to it would. A length of 0 touches nothing; ranges may be NULL when num_ranges is 0.
 *
 * Returns 0; EINVAL: region is NULL; EOPNOTSUPP: region->sync_supported is 0, and the call was a full barrier and no
 * more; or what DMA_BUF_IOCTL_SYNC fails with.
 */
int dappledv_sync_for_device(const struct dappledv_region_attr* region, const struct iovec* ranges,
                             size_t num_ranges) DAPPLEDV_NOEXCEPT;

/*
 * Makes what the device wrote to the ranges visible to this thread, and readies them for the device to write: to be
 * called before the device may write if the CPU has touched the ranges, and after it has written, before reading or
 * writing them. (Memory of a dma-buf is readied by dappledv_sync_for_device().)
 *
 * Unless region->coherence is DAPPLEDV_COHERENCE_COHERENT each line is cleaned and invalidated, and the call returns
 * when that is complete. On a coherent device it orders earlier loads (that of the completion, say) before later
 * accesses.
 *
 * User space can nowhere discard a dirty line without writing it back: a line that the CPU wrote to while the device
 * wrote to the same line is corrupted, by this call or at any time before it. Keep other data out of such lines:
 * align and pad to writeback_granule.
 *
 * Arguments and return values as for dappledv_sync_for_device().
 */
int dappledv_sync_for_cpu(const struct dappledv_region_attr* region, const struct iovec* ranges,
                          size_t num_ranges) DAPPLEDV_NOEXCEPT;

/* The answer of dappledv_query_range(). */
struct dappledv_range_attr {
  uint64_t comp_mask;
  /* Bytes from the address on for which all of this holds: at least 1, at most as many as were asked about. */
  uint64_t length;
  enum dappledv_memory memory;
  enum dappledv_caching caching;
  /* As the kernel says of the persistent memory behind a DAX mapping; of other memory it says nothing. */
  enum dappledv_persistence persistence;
  /* Yes if memory attached by CXL is behind it, or part of it: an enum dappledv_answer. */
  uint8_t cxl;
  /* 0. */
  uint8_t reserved[3];
  /* The source of that, in one line for people, without a full stop. Static, never NULL. */
  const char* explanation;
};

/*
 * Tells what memory is mapped at an address, as far as the kernel says it to a program (/proc/self, sysfs); what it
 * does not say is unknown. Nothing is touched, and no page is faulted in. It reads files, some of them long: not to be
 * called for each transfer. What another thread maps meanwhile may be seen or not.
 *
 * address, length: a range; length is not 0. attr: caller's memory, comp_mask set by the caller, the rest written on
 * success only. attr->length tells how far the answer reaches; ask again behind that.
 *
 * Returns 0; EINVAL: attr is NULL, or length is 0 or passes the end of the address space; EFAULT: nothing is mapped at
 * address; or what reading /proc/self/smaps failed with.
 */
int dappledv_query_range(const void* address, size_t length, struct dappledv_range_attr* attr) DAPPLEDV_NOEXCEPT;

/* What dappledv_attach() is to do beyond keeping the table. Bits may be added. */
enum dappledv_attach_flags {
  /*
   * Emulate a device that is not coherent: it works on other memory than the program, and only sync calls move lines
   * between the two. Only on rxe.
   */
  DAPPLEDV_ATTACH_EMULATE = 1 << 0,
};

/*
 * Lays an overlay over an open context, until it is closed: from now on its memory regions are known here, which
 * dappledv_sync_mr_for_device() and dappledv_sync_mr_for_cpu() need. The program goes on using the context as before;
 * posting and polling are not touched.
 *
 * This replaces operations in a private table of libibverbs. It is done only after proof that the table is laid out as
 * in a known release of rdma-core, and refused otherwise, with one line on standard error and without a change.
 *
 * Regions that were registered before are not known. To attach again, with the same flags, does nothing. There is no
 * way to detach. No other thread may use the context, or close another one, during the call. A child of fork() has the
 * overlay as it was, and its tables of its own.
 *
 * context: an open device. flags: of enum dappledv_attach_flags.
 * Returns 0, or EINVAL: context or its device is NULL, an unknown flag, a variable is malformed; EBUSY: attached
 * with other flags; EOPNOTSUPP: refused; ENOMEM.
 */
int dappledv_attach(struct ibv_context* context, uint64_t flags) DAPPLEDV_NOEXCEPT;

/*
 * Why dappledv_attach(context, 0) would be refused, in a line for people without a full stop; NULL if it would not be.
 * Nothing is changed or printed. context: an open device, or NULL: then only libibverbs is looked at. Static.
 */
const char* dappledv_attach_obstacle(struct ibv_context* context) DAPPLEDV_NOEXCEPT;

/*
 * Like dappledv_sync_for_device(), of pieces of registered memory as they stand in a work request: addr counts as the
 * device counts, so it is an offset in a zero-based region, and lkey names the region. First all of them are checked;
 * if one is not in its region, or its region is not known, nothing is synced.
 *
 * context: attached. segments: num_segments of them, may be NULL if that is 0; a length of 0 touches nothing, and must
 * be in its region all the same. bad_segment: NULL, or set to the index of the first segment that is wrong, when one
 * is. The device's coherence is what it was at dappledv_attach().
 * Returns 0, or EINVAL: segments is NULL, or a segment is not in a region that was registered, from memory of the
 * program, after dappledv_attach(); EOPNOTSUPP: context is not attached, or this CPU lacks the instructions; ENOMEM.
 *
 * Waits while another thread registers or deregisters memory.
 */
int dappledv_sync_mr_for_device(struct ibv_context* context, const struct ibv_sge* segments, size_t num_segments,
                                size_t* bad_segment) DAPPLEDV_NOEXCEPT;

/* Like dappledv_sync_for_cpu(), with segments as for dappledv_sync_mr_for_device(). */
int dappledv_sync_mr_for_cpu(struct ibv_context* context, const struct ibv_sge* segments, size_t num_segments,
                             size_t* bad_segment) DAPPLEDV_NOEXCEPT;

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
