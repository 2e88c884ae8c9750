/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Data transfers between two endpoints of this process. Run twice: as the device is, and with DAPPLE_COHERENCE=cpu,
 * where the provider maintains the caches for every local buffer.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/softroce/api/api.h"
#if !FOR_DAT_12
#include <dat2/dat_ib_extensions.h>
#endif

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG
enum { kMaxIov = 4, kMaxDtos = 16 }; /* for an EP that asks for nothing */

enum operation { kSend, kWrite, kRead, kOperations };

/* Splits length bytes from offset on into count segments with a gap of 5 bytes between them. */
static void split(const struct fixture* f, size_t offset, size_t length, DAT_COUNT count, DAT_LMR_TRIPLET* out) {
  for (DAT_COUNT i = 0; i < count; ++i) {
    const size_t part =
        i + 1 < count ? length / (size_t)count : length - (size_t)(count - 1) * (length / (size_t)count);
    out[i] = local(f, offset, part);
    offset += part + 5;
  }
}

static void fill_segments(const DAT_LMR_TRIPLET* segments, DAT_COUNT count, unsigned int seed) {
  unsigned char* data = malloc(1 << 20);
  size_t length = 0;
  for (DAT_COUNT i = 0; i < count; ++i) length += segments[i].segment_length;
  fill(data, length, seed);
  for (DAT_COUNT i = 0; i < count; ++i) {
    memcpy((void*)(uintptr_t)segments[i].virtual_address, data, segments[i].segment_length);
    memmove(data, data + segments[i].segment_length, length - segments[i].segment_length);
    length -= segments[i].segment_length;
  }
  free(data);
}

static bool segments_filled(const DAT_LMR_TRIPLET* segments, DAT_COUNT count, unsigned int seed) {
  unsigned char* data = malloc(1 << 20);
  size_t length = 0;
  bool good;
  for (DAT_COUNT i = 0; i < count; ++i) {
    memcpy(data + length, (void*)(uintptr_t)segments[i].virtual_address, segments[i].segment_length);
    length += segments[i].segment_length;
  }
  good = is_filled(data, length, seed);
  free(data);
  return good;
}

static void expect_broken(const struct fixture* f) {
  expect_end(&f->active);
  expect_end(&f->passive);
}

/*
 * The completion of a request that the peer's device refuses. Its status reports that, unless the peer's end noticed
 * first and its disconnect arrived before the device's answer: then the request is flushed. Returns the status.
 */
static DAT_DTO_COMPLETION_STATUS expect_refused(const struct fixture* f, DAT_DTOS operation) {
  DAT_EVENT event;
  DAT_COUNT more;
  const DAT_DTO_COMPLETION_EVENT_DATA* const dto = &event.event_data.dto_completion_event_data;
  assert_ok(dat_evd_wait(f->active.request, WAIT_US, 1, &event, &more));
  assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
  assert_int_equal(dto->user_cookie.as_64, 1);
  ONLY_20(assert_int_equal(dto->operation, operation);)
  (void)operation;
  assert_int_equal(dto->transfered_length, 0);
  assert_true(dto->status == DAT_DTO_ERR_REMOTE_ACCESS || dto->status == DAT_DTO_ERR_FLUSHED);
  return dto->status;
}

static void expect_broken_by(const struct fixture* f, DAT_DTO_COMPLETION_STATUS status) {
  if (status == DAT_DTO_ERR_FLUSHED && !on_iwarp()) {
    expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_event(f->passive.connect, DAT_CONNECTION_EVENT_BROKEN);
  } else {
    expect_broken(f);
  }
}

/*
 * One transfer of length bytes: a Send into a receive, or an RDMA Write or Read of a remote buffer in one piece. Checks
 * completions, lengths, operations and data, and that nothing around the buffer has changed.
 */
static void transfer(struct fixture* f, enum operation operation, DAT_COUNT here, DAT_COUNT there, size_t length,
                     unsigned int seed) {
  static const DAT_DTOS names[] = {DAT_DTO_SEND, DAT_DTO_RDMA_WRITE, DAT_DTO_RDMA_READ};
  DAT_LMR_TRIPLET near[kMaxIov];
  DAT_LMR_TRIPLET far[kMaxIov];
  const DAT_RMR_TRIPLET far_buffer = remote(f, HALF + 100, length);
  DAT_LMR_TRIPLET* const source = operation == kRead ? far : near;
  DAT_LMR_TRIPLET* const sink = operation == kRead ? near : far;
  DAT_DTO_COMPLETION_EVENT_DATA done;
  split(f, 100, length, here, near);
  split(f, HALF + 100, length, operation == kSend ? there : 1, far);
  if (operation != kSend) there = 1;
  memset(f->memory + (operation == kRead ? 0 : HALF), 0xee, length + 200);
  fill_segments(source, operation == kRead ? there : here, seed);
  if (operation == kSend) {
    assert_ok(dat_ep_post_recv(f->passive.ep, there, far, cookie(seed + 1), DEFAULT));
    assert_ok(dat_ep_post_send(f->active.ep, here, near, cookie(seed), DEFAULT));
    done = expect_dto(f->passive.recv, seed + 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
    assert_int_equal(done.transfered_length, length);
    assert_ptr_equal(done.ep_handle, f->passive.ep);
  } else if (operation == kWrite) {
    sync_for_write(f, HALF, length + 200);
    assert_ok(dat_ep_post_rdma_write(f->active.ep, here, near, cookie(seed), &far_buffer, DEFAULT));
  } else {
    sync_for_read(f, HALF + 100, length);
    assert_ok(dat_ep_post_rdma_read(f->active.ep, here, near, cookie(seed), &far_buffer, DEFAULT));
  }
  done = operation == kWrite ? expect_written(f, seed)
                             : expect_dto(f->active.request, seed, names[operation], DAT_DTO_SUCCESS);
  assert_int_equal(done.transfered_length, length);
  assert_ptr_equal(done.ep_handle, f->active.ep);
  if (operation == kWrite) sync_for_write(f, HALF, length + 200);
  assert_true(segments_filled(sink, operation == kRead ? here : there, seed));
  assert_true(is_all((unsigned char*)(uintptr_t)sink[0].virtual_address - 100, 100, 0xee));
  assert_true(is_all(f->memory + (operation == kRead ? 0 : HALF) + 100 + length + (kMaxIov - 1) * 5, 50, 0xee));
}

static void post__1_to_max_segments(void** state) {
  struct fixture* f = *state;
  unsigned int seed = 0;
  for (enum operation operation = kSend; operation < kOperations; ++operation) {
    /* On iWARP an RDMA Read has one segment. */
    const DAT_COUNT most = operation == kRead && on_iwarp() ? f->attr.max_iov_segments_per_rdma_read : kMaxIov;
    for (DAT_COUNT here = 1; here <= most; ++here) {
      for (DAT_COUNT there = 1; there <= (operation == kSend ? kMaxIov : 1); ++there) {
        transfer(f, operation, here, there, 999, seed += 2);
      }
    }
  }
}

static void post__sizes_around_the_mtu_and_the_inline_limit(void** state) {
  static const size_t sizes[] = {1,    2,    3,    4,    5,    63,   64,   65,   255,  256,   257,   1023,  1024,
                                 1025, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8193, 12289, 65535, 65536, 65537};
  struct fixture* f = *state;
  unsigned int seed = 1000;
  for (enum operation operation = kSend; operation < kOperations; ++operation) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) transfer(f, operation, 1, 1, sizes[i], seed += 2);
  }
}

static void post__the_largest_message(void** state) {
  struct fixture* f = *state;
  /* rxe sends 8 MB at once. */
  const size_t size = f->attr.max_message_size < 16U << 20 ? f->attr.max_message_size : 16U << 20;
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_TRIPLET segments[2];
  DAT_RMR_TRIPLET buffers[2];
  DAT_LMR_HANDLE lmr;
  unsigned char* memory = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  region.for_va = memory;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 2 * size, f->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
                           &lmr, &segments[0].lmr_context, &buffers[0].rmr_context, NULL, NULL));
  for (size_t i = 0; i < 2; ++i) {
    segments[i] = lmr_triplet((uintptr_t)memory + i * size, size, segments[0].lmr_context);
    buffers[i] = rmr_triplet((uintptr_t)memory + i * size, size, buffers[0].rmr_context);
  }
  fill(memory, size, 5);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &segments[0], cookie(1), &buffers[1], DEFAULT));
  assert_int_equal(expect_written(f, 1).transfered_length, size);
  assert_ok(dat_lmr_sync_rdma_write(f->ia, &segments[1], 1));
  assert_memory_equal(memory, memory + size, size);
  memset(memory, 0, size);
  assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &segments[0], cookie(2), &buffers[1], DEFAULT));
  assert_int_equal(expect_dto(f->active.request, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS).transfered_length, size);
  assert_memory_equal(memory, memory + size, size);
  memset(memory, 0, size);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &segments[0], cookie(3), DEFAULT));
  assert_ok(dat_ep_post_send(f->active.ep, 1, &segments[1], cookie(4), DEFAULT));
  assert_int_equal(expect_dto(f->passive.recv, 3, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS).transfered_length, size);
  assert_memory_equal(memory, memory + size, size);
  if (size == f->attr.max_message_size) {
    segments[0].segment_length = buffers[0].segment_length = (DAT_SEG_LENGTH)size + 1;
    assert_error_type(dat_ep_post_send(f->active.ep, 1, &segments[0], cookie(5), DEFAULT), DAT_INVALID_PARAMETER);
    assert_error_type(dat_ep_post_rdma_write(f->active.ep, 1, &segments[0], cookie(5), &buffers[0], DEFAULT),
                      DAT_INVALID_PARAMETER);
    assert_error_type(dat_ep_post_rdma_read(f->active.ep, 1, &segments[0], cookie(5), &buffers[0], DEFAULT),
                      DAT_INVALID_PARAMETER);
  }
  assert_ok(dat_lmr_free(lmr));
  munmap(memory, 2 * size);
}

static void post__nothing_to_transfer(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET empty = local(f, 0, 0);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 0);
  for (DAT_COUNT count = 0; count <= 1; ++count) {
    DAT_LMR_TRIPLET* iov = count ? &empty : NULL;
    assert_ok(dat_ep_post_recv(f->passive.ep, count, iov, cookie(1), DEFAULT));
    assert_ok(dat_ep_post_send(f->active.ep, count, iov, cookie(2), DEFAULT));
    assert_int_equal(expect_dto(f->passive.recv, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS).transfered_length, 0);
    expect_dto(f->active.request, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS);
    assert_ok(dat_ep_post_rdma_write(f->active.ep, count, iov, cookie(3), &there, DEFAULT));
    assert_int_equal(expect_dto(f->active.request, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS).transfered_length, 0);
    assert_ok(dat_ep_post_rdma_read(f->active.ep, count, iov, cookie(4), &there, DEFAULT));
    assert_int_equal(expect_dto(f->active.request, 4, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS).transfered_length, 0);
  }
  transfer(f, kWrite, 1, 1, 10, 50);
}

static void post__a_receive_larger_than_the_send(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, 10);
  DAT_LMR_TRIPLET sink = local(f, HALF, 1000);
  memset(f->memory + HALF, 0xee, 1000);
  fill(f->memory, 10, 6);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &sink, cookie(1), DEFAULT));
  assert_ok(dat_ep_post_send(f->active.ep, 1, &source, cookie(2), DEFAULT));
  assert_int_equal(expect_dto(f->passive.recv, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS).transfered_length, 10);
  assert_true(is_filled(f->memory + HALF, 10, 6));
  assert_true(is_all(f->memory + HALF + 10, 990, 0xee));
}

static void post__a_receive_too_small(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, 5000);
  DAT_LMR_TRIPLET sink = local(f, HALF, 100);
  DAT_EVENT event;
  memset(f->memory + HALF, 0xee, 5000);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &sink, cookie(1), DEFAULT));
  assert_ok(dat_ep_post_send(f->active.ep, 1, &source, cookie(2), DEFAULT));
  /*
   * This comes first: once the passive end has noticed its error it disconnects, which may overtake the refusal of the
   * Send.
   */
  if (on_iwarp()) {
    expect_sent(f->active.request, 2, DAT_DTO_SEND);
  } else {
    expect_dto(f->active.request, 2, DAT_DTO_SEND, DAT_DTO_ERR_REMOTE_RESPONDER);
  }
  event = expect_event(f->passive.recv, DAT_DTO_COMPLETION_EVENT);
  /* The length is the error; rxe reports an error of the queue pair. */
  assert_true(event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_LOCAL_LENGTH ||
              event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_LOCAL_EP);
  assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
  assert_true(is_all(f->memory + HALF + 100, 4900, 0xee));
  expect_broken(f);
}

/*
 * The data of an RDMA Read goes back to another place of the peer's memory. The place must get the new contents,
 * because the fence makes the RDMA Write wait. rxe executes an RDMA Read from its own machine within the post, so there
 * the Write would wait in any case.
 */
static void post__barrier_fence_waits_for_reads(void** state) {
  struct fixture* f = *state;
  const size_t size = 50000;
  for (unsigned int round = 0; round < 10; ++round) {
    DAT_LMR_TRIPLET buffer = local(f, 0, size);
    const DAT_RMR_TRIPLET from = remote(f, HALF, size);
    const DAT_RMR_TRIPLET to = remote(f, HALF + size, size);
    fill(f->memory + HALF, size, round);
    memset(f->memory, 0, size);
    sync_for_read(f, HALF, size);
    assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &buffer, cookie(1), &from, DAT_COMPLETION_SUPPRESS_FLAG));
    assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &buffer, cookie(2), &to, DAT_COMPLETION_BARRIER_FENCE_FLAG));
    expect_written(f, 2);
    sync_for_write(f, HALF + size, size);
    assert_true(is_filled(f->memory + HALF + size, size, round));
  }
}

static void post__queue_full_then_recovers(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, 100000);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 100000);
  uint64_t posted = 0, next = 0;
  for (int round = 0; round < 3; ++round) {
    DAT_RETURN status;
    const uint64_t first = posted;
    while ((status = dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(posted), &there, DEFAULT)) ==
           DAT_SUCCESS) {
      assert_true(++posted - first <= 1000);
    }
    assert_error_type(status, DAT_INSUFFICIENT_RESOURCES);
    assert_int_equal(posted - first, kMaxDtos);
    while (next < posted) expect_dto(f->active.request, next++, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
  }
  /* The same for receives. */
  source.segment_length = 10;
  for (int i = 0; i < kMaxDtos; ++i) assert_ok(dat_ep_post_recv(f->passive.ep, 1, &source, cookie(9), DEFAULT));
  assert_error_type(dat_ep_post_recv(f->passive.ep, 1, &source, cookie(9), DEFAULT), DAT_INSUFFICIENT_RESOURCES);
  assert_ok(dat_ep_post_send(f->active.ep, 1, &source, cookie(8), DEFAULT));
  expect_dto(f->passive.recv, 9, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &source, cookie(9), DEFAULT));
}

static void post__longer_than_the_remote_buffer(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET segments[2] = {local(f, 0, 500), local(f, 1000, 501)};
  const DAT_RMR_TRIPLET there = remote(f, HALF, 1000);
  assert_error(dat_ep_post_rdma_write(f->active.ep, 2, segments, cookie(1), &there, DEFAULT), DAT_LENGTH_ERROR,
               DAT_NO_SUBTYPE);
  if (!on_iwarp()) { /* on iWARP an RDMA Read has one segment, and there is no immediate data */
    assert_error(dat_ep_post_rdma_read(f->active.ep, 2, segments, cookie(1), &there, DEFAULT), DAT_LENGTH_ERROR,
                 DAT_NO_SUBTYPE);
    ONLY_20(assert_error(dat_ib_post_rdma_write_immed(f->active.ep, 2, segments, cookie(1), &there, 1, DEFAULT),
                         DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);)
  }
  segments[1].segment_length = 500;
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 2, segments, cookie(1), &there, DEFAULT));
  expect_dto(f->active.request, 1, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
}

/* Two segments of 4 GiB less one byte are more than any device sends at once. */
static void post__more_than_a_message_can_hold(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET segments[2] = {local(f, 0, UINT32_MAX), local(f, 0, UINT32_MAX)};
  assert_error_type(dat_ep_post_send(f->active.ep, 2, segments, cookie(1), DEFAULT), DAT_INVALID_PARAMETER);
  expect_nothing(f->active.request);
  transfer(f, kSend, 1, 1, 100, 70);
}

static void post__unknown_rmr_context(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, 100);
  DAT_RMR_TRIPLET there = remote(f, HALF, 100);
  DAT_DTO_COMPLETION_STATUS status;
  there.rmr_context ^= 0x5a5a5a00;
  memset(f->memory + HALF, 0xee, 100);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(1), &there, DEFAULT));
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(2), &there, DAT_COMPLETION_SUPPRESS_FLAG));
  if (on_iwarp()) {
    expect_sent(f->active.request, 1, DAT_DTO_RDMA_WRITE); /* the second, too, unless the stream ended first */
    expect_broken(f);
    assert_true(is_all(f->memory + HALF, 100, 0xee));
    return;
  }
  status = expect_refused(f, DAT_DTO_RDMA_WRITE);
  expect_dto(f->active.request, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_ERR_FLUSHED); /* only a success is suppressed */
  expect_broken_by(f, status);
}

static void post__beyond_the_remote_region(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET sink = local(f, 0, 100);
  const DAT_RMR_TRIPLET there = remote(f, MEMORY_SIZE - 99, 100);
  assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &sink, cookie(1), &there, DEFAULT));
  expect_broken_by(f, expect_refused(f, DAT_DTO_RDMA_READ));
}

static void expect_unknown_source(struct fixture* f, DAT_LMR_TRIPLET source) {
  DAT_EVENT event;
  DAT_COUNT more;
  const DAT_RETURN status = dat_ep_post_send(f->active.ep, 1, &source, cookie(1), DEFAULT);
  if (status != DAT_SUCCESS) return; /* a device may notice at once */
  assert_ok(dat_evd_wait(f->active.request, WAIT_US, 1, &event, &more));
  /*
   * The error is a protection violation; rxe reports an error of the queue pair, and newer kernels' rxe only flushes
   * the request.
   */
  switch (event.event_data.dto_completion_event_data.status) {
    case DAT_DTO_ERR_LOCAL_PROTECTION:
    case DAT_DTO_ERR_LOCAL_EP:
    case DAT_DTO_ERR_FLUSHED:
      break;
    default:
      fail_msg("status %d", (int)event.event_data.dto_completion_event_data.status);
  }
  expect_broken(f);
  reset_ends(f);
  connect_ends(f);
}

static void post__unknown_lmr_context(void** state) {
  static const size_t sizes[] = {8, 64, 1000};
  struct fixture* f = *state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    DAT_LMR_TRIPLET source = local(f, 0, sizes[i]);
    source.lmr_context ^= 0x5a5a5a00;
    expect_unknown_source(f, source);
  }
}

/* No memory is mapped at the second address. */
static void post__outside_the_local_region(void** state) {
  static const size_t sizes[] = {8, 64, 1000};
  struct fixture* f = *state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    DAT_LMR_TRIPLET source = local(f, MEMORY_SIZE - 4, sizes[i]);
    expect_unknown_source(f, source);
    source.virtual_address = 16;
    expect_unknown_source(f, source);
  }
}

#if !FOR_DAT_12
static void rdma_write_immed__both_sides_are_told(void** state) {
  SKIP_ON_IWARP();
  static const size_t sizes[] = {0, 1, 64, 100, 5000};
  struct fixture* f = *state;
  for (unsigned int i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    DAT_LMR_TRIPLET source = local(f, 0, sizes[i]);
    const DAT_RMR_TRIPLET there = remote(f, HALF, sizes[i]);
    const DAT_IB_EXTENSION_EVENT_DATA* data;
    DAT_EVENT event;
    fill(f->memory, sizes[i], i);
    assert_ok(dat_ep_post_recv(f->passive.ep, 0, NULL, cookie(10 + i), DEFAULT));
    assert_ok(dat_ib_post_rdma_write_immed(f->active.ep, 1, &source, cookie(20 + i), &there, 0x11223344 + i, DEFAULT));
    event = expect_event(f->passive.recv, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
    data = (const DAT_IB_EXTENSION_EVENT_DATA*)event.event_extension_data;
    assert_int_equal(data->type, DAT_IB_RDMA_WRITE_IMMED_DATA);
    assert_int_equal(data->val.immed.data, 0x11223344 + i);
    assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 10 + i);
    assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
    assert_int_equal(event.event_data.dto_completion_event_data.transfered_length, sizes[i]);
    assert_int_equal(event.event_data.dto_completion_event_data.operation, DAT_IB_DTO_RECV_IMMED);
    event = expect_event(f->active.request, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
    data = (const DAT_IB_EXTENSION_EVENT_DATA*)event.event_extension_data;
    assert_int_equal(data->type, DAT_IB_RDMA_WRITE_IMMED);
    assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 20 + i);
    assert_int_equal(event.event_data.dto_completion_event_data.operation, DAT_IB_DTO_RDMA_WRITE_IMMED);
    sync_for_write(f, HALF, sizes[i]);
    assert_true(is_filled(f->memory + HALF, sizes[i], i));
  }
}

static void rdma_write_immed__bad_arguments(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, 64);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 64);
  DAT_EP_HANDLE ep = f->active.ep;
  if (on_iwarp()) { /* for all arguments */
    assert_error(dat_ib_post_rdma_write_immed(ep, -1, NULL, cookie(1), NULL, 1, 0x100), DAT_NOT_IMPLEMENTED, 0);
    return;
  }
  assert_error(dat_ib_post_rdma_write_immed(ep, -1, &source, cookie(1), &there, 1, DEFAULT), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG2);
  assert_error(dat_ib_post_rdma_write_immed(ep, 1, NULL, cookie(1), &there, 1, DEFAULT), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG3);
  assert_error(dat_ib_post_rdma_write_immed(ep, 1, &source, cookie(1), NULL, 1, DEFAULT), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG5);
  assert_error(dat_ib_post_rdma_write_immed(ep, 1, &source, cookie(1), &there, 1, 0x100), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG7);
}

#endif

static void connect_with_one_evd(struct fixture* f, struct end* both) {
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &both->recv));
  assert_ok(dat_ep_create(f->ia, f->pz, both->recv, both->recv, both->recv, NULL, &both->ep));
  begin_connect(f, both, NULL, 0);
  assert_ok(dat_cr_accept(take_request(f), f->passive.ep, 0, NULL));
  expect_event(both->recv, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* The consumer first looks when the connection has ended. */
static void disconnect__comes_after_the_last_messages_on_one_evd(void** state) {
  enum { kMessages = 5 };
  struct fixture* f = *state;
  struct end both;
  DAT_LMR_TRIPLET source = local(f, 0, 100);
  DAT_LMR_TRIPLET sink = local(f, HALF, 100);
  connect_with_one_evd(f, &both);
  for (int i = 0; i < kMessages; ++i) {
    assert_ok(dat_ep_post_recv(both.ep, 1, &sink, cookie(1), DEFAULT));
    assert_ok(dat_ep_post_send(f->passive.ep, 1, &source, cookie(2), DEFAULT));
    expect_dto(f->passive.request, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  }
  assert_ok(dat_ep_disconnect(f->passive.ep, DAT_CLOSE_GRACEFUL_FLAG));
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  for (int i = 0; i < 10000 && state_of(both.ep) != DAT_EP_STATE_DISCONNECTED; ++i) usleep(1000);
  for (int i = 0; i < kMessages; ++i) expect_dto(both.recv, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  expect_event(both.recv, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void post__one_evd_for_everything(void** state) {
  struct fixture* f = *state;
  struct end both;
  DAT_LMR_TRIPLET source = local(f, 0, 100);
  DAT_LMR_TRIPLET sink = local(f, HALF, 100);
  int sends = 0, receives = 0;
  connect_with_one_evd(f, &both);
  for (int i = 0; i < 10; ++i) {
    assert_ok(dat_ep_post_recv(both.ep, 1, &sink, cookie(1), DEFAULT));
    assert_ok(dat_ep_post_recv(f->passive.ep, 1, &sink, cookie(1), DEFAULT));
    assert_ok(dat_ep_post_send(both.ep, 1, &source, cookie(2), DEFAULT));
    assert_ok(dat_ep_post_send(f->passive.ep, 1, &source, cookie(2), DEFAULT));
    for (int k = 0; k < 2; ++k) {
      const DAT_EVENT event = expect_event(both.recv, DAT_DTO_COMPLETION_EVENT);
      if (event.event_data.dto_completion_event_data.user_cookie.as_64 == 2) ++sends;
      if (event.event_data.dto_completion_event_data.user_cookie.as_64 == 1) ++receives;
    }
    expect_dto(f->passive.request, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS);
    expect_dto(f->passive.recv, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  }
  assert_int_equal(sends, 10);
  assert_int_equal(receives, 10);
  assert_ok(dat_ep_disconnect(both.ep, DAT_CLOSE_ABRUPT_FLAG));
  expect_event(both.recv, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* Asserts longjmp, so a thread counts errors and its creator asserts. */
struct poster {
  struct fixture* f;
  uint64_t first;
  unsigned int wrong;
};
enum { kPosters = 3, kEach = 300 };

static void* post_many(void* argument) {
  struct poster* self = argument;
  DAT_LMR_TRIPLET source = local(self->f, self->first, 8);
  const DAT_RMR_TRIPLET there = remote(self->f, HALF + self->first, 8);
  for (uint64_t i = 0; i < kEach;) {
    const DAT_RETURN status =
        dat_ep_post_rdma_write(self->f->active.ep, 1, &source, cookie(self->first + i), &there, DEFAULT);
    if (status == DAT_SUCCESS) {
      ++i;
    } else if (DAT_GET_TYPE(status) != DAT_INSUFFICIENT_RESOURCES) {
      ++self->wrong;
      break;
    }
  }
  return NULL;
}

static void post__from_several_threads_on_a_thread_safe_ia(void** state) {
  struct fixture f;
  struct poster posters[kPosters];
  pthread_t threads[kPosters];
  uint64_t next[kPosters] = {0};
  (void)state;
  memset(&f, 0, sizeof f);
  assert_ok(dat_ia_openv((DAT_NAME_PTR)IA_NAME, 8, &f.async, &f.ia, DAT_VERSION, DAT_TRUE));
  assert_ok(dat_ia_query(f.ia, NULL, DAT_IA_FIELD_ALL, &f.attr, DAT_PROVIDER_FIELD_ALL, &f.provider));
  assert_int_equal(f.provider.is_thread_safe, DAT_TRUE);
  assert_ok(dat_pz_create(f.ia, &f.pz));
  register_memory(&f);
  make_end(&f, &f.active, NULL);
  make_end(&f, &f.passive, NULL);
  listen_any(&f);
  connect_ends(&f);
  for (unsigned int i = 0; i < kPosters; ++i) {
    posters[i] = (struct poster){&f, i * 1000, 0};
    fill(f.memory + i * 1000, 8, i);
    assert_int_equal(pthread_create(&threads[i], NULL, post_many, &posters[i]), 0);
  }
  for (unsigned int i = 0; i < kPosters * kEach; ++i) {
    const DAT_EVENT event = expect_event(f.active.request, DAT_DTO_COMPLETION_EVENT);
    const uint64_t number = event.event_data.dto_completion_event_data.user_cookie.as_64;
    assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
    assert_true(number / 1000 < kPosters);
    assert_int_equal(number % 1000, next[number / 1000]++); /* each thread's posts keep their order */
  }
  expect_placed(&f);
  for (unsigned int i = 0; i < kPosters; ++i) {
    pthread_join(threads[i], NULL);
    assert_int_equal(posters[i].wrong, 0);
    sync_for_write(&f, HALF + i * 1000, 8);
    assert_true(is_filled(f.memory + HALF + i * 1000, 8, i));
  }
  munmap(f.memory, MEMORY_SIZE);
  assert_ok(dat_ia_close(f.ia, DAT_CLOSE_ABRUPT_FLAG));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CONNECTED_TEST(post__1_to_max_segments),
      CONNECTED_TEST(post__sizes_around_the_mtu_and_the_inline_limit),
      CONNECTED_TEST(post__the_largest_message),
      CONNECTED_TEST(post__nothing_to_transfer),
      CONNECTED_TEST(post__a_receive_larger_than_the_send),
      CONNECTED_TEST(post__a_receive_too_small),
      CONNECTED_TEST(post__barrier_fence_waits_for_reads),
      CONNECTED_TEST(post__queue_full_then_recovers),
      CONNECTED_TEST(post__longer_than_the_remote_buffer),
      CONNECTED_TEST(post__more_than_a_message_can_hold),
      CONNECTED_TEST(post__unknown_rmr_context),
      CONNECTED_TEST(post__beyond_the_remote_region),
      CONNECTED_TEST(post__unknown_lmr_context),
      CONNECTED_TEST(post__outside_the_local_region),
      ONLY_20(CONNECTED_TEST(rdma_write_immed__both_sides_are_told), )
          ONLY_20(CONNECTED_TEST(rdma_write_immed__bad_arguments), ) ENDS_TEST(post__one_evd_for_everything),
      ENDS_TEST(disconnect__comes_after_the_last_messages_on_one_evd),
      cmocka_unit_test(post__from_several_threads_on_a_thread_safe_ia),
  };
  return RUN_TESTS(tests);
}
