/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * dat_lmr_create, dat_lmr_query and dat_lmr_free: each memory type, address type and privilege, seen from both sides of
 * a connection.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/softroce/api/api.h"
#if !FOR_DAT_12
#include <dat2/dat_ib_extensions.h>
#endif

#define REGION 65536U

struct made {
  DAT_LMR_HANDLE lmr;
  DAT_LMR_CONTEXT lmr_context;
  DAT_RMR_CONTEXT rmr_context;
  DAT_VLEN size;
  DAT_VADDR address;
};

static DAT_RETURN make(struct fixture* f, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length, int priv,
                       DAT_VA_TYPE va_type, struct made* out) {
  memset(out, 0xa5, sizeof *out);
  (void)va_type;
  return dat_lmr_create(f->ia, type, region, length, f->pz, (DAT_MEM_PRIV_FLAGS)priv, va_type, &out->lmr,
                        &out->lmr_context, &out->rmr_context, &out->size, &out->address);
}

static DAT_RETURN make_virtual(struct fixture* f, void* at, DAT_VLEN length, int priv, struct made* out) {
  DAT_REGION_DESCRIPTION region;
  region.for_va = at;
  return make(f, DAT_MEM_TYPE_VIRTUAL, region, length, priv, DAT_VA_TYPE_VA, out);
}

static DAT_LMR_PARAM params_of(DAT_LMR_HANDLE lmr) {
  DAT_LMR_PARAM param;
  memset(&param, 0xa5, sizeof param);
  assert_ok(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
  return param;
}

static void assert_params_of(const struct fixture* f, const struct made* made, int priv) {
  const DAT_LMR_PARAM param = params_of(made->lmr);
  assert_ptr_equal(param.ia_handle, f->ia);
  assert_ptr_equal(param.pz_handle, f->pz);
  assert_int_equal(param.mem_priv, priv);
  assert_int_equal(param.lmr_context, made->lmr_context);
  assert_int_equal(param.rmr_context, made->rmr_context);
  assert_int_equal(param.registered_size, made->size);
  assert_int_equal(param.registered_address, made->address);
}

static DAT_RMR_TRIPLET target(const struct made* made, uint64_t at, uint32_t length) {
  return rmr_triplet(at, length, made->rmr_context);
}

static void lmr_create__reports_what_was_registered(void** state) {
  struct fixture* f = *state;
  static const struct {
    size_t offset;
    DAT_VLEN length;
  } rows[] = {{0, 1}, {1, 1}, {4095, 2}, {123, 70001}, {0, MEMORY_SIZE}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    struct made made;
    assert_ok(make_virtual(f, f->memory + rows[i].offset, rows[i].length, DAT_MEM_PRIV_ALL_FLAG, &made));
    assert_int_equal(made.size, rows[i].length);
    assert_int_equal(made.address, (uintptr_t)f->memory + rows[i].offset);
    assert_params_of(f, &made, DAT_MEM_PRIV_ALL_FLAG);
    assert_int_equal(params_of(made.lmr).mem_type, DAT_MEM_TYPE_VIRTUAL);
    ONLY_20(assert_int_equal(params_of(made.lmr).va_type, DAT_VA_TYPE_VA);)
    assert_ptr_equal(params_of(made.lmr).region_desc.for_va, f->memory + rows[i].offset);
    assert_ok(dat_lmr_free(made.lmr));
  }
}

static void lmr_create__rmr_context_only_for_remote_rights(void** state) {
  struct fixture* f = *state;
  static const struct {
    int priv;
    bool remote;
    bool atomic;
  } rows[] = {{DAT_MEM_PRIV_NONE_FLAG, false, false},
              {DAT_MEM_PRIV_LOCAL_READ_FLAG, false, false},
              {DAT_MEM_PRIV_LOCAL_WRITE_FLAG, false, false},
              {DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, false, false},
              {DAT_MEM_PRIV_REMOTE_READ_FLAG, true, false},
              {DAT_MEM_PRIV_REMOTE_WRITE_FLAG, true, false},
              ONLY_20({DAT_IB_MEM_PRIV_REMOTE_ATOMIC, true, true},
                      {DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC, true, true})};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    struct made made;
    if (on_iwarp() && rows[i].atomic) {
      assert_error(make_virtual(f, f->memory, 4096, rows[i].priv, &made), DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
      continue;
    }
    assert_ok(make_virtual(f, f->memory, 4096, rows[i].priv, &made));
    assert_int_equal(made.rmr_context != 0, rows[i].remote);
    assert_params_of(f, &made, rows[i].priv);
    assert_ok(dat_lmr_free(made.lmr));
  }
}

static void lmr_create__bad_arguments(void** state) {
  struct fixture* f = *state;
  struct made made;
  DAT_REGION_DESCRIPTION region;
  region.for_va = f->memory;
  /* 1.2 has a fourth type. */
  assert_error(make(f, (DAT_MEM_TYPE)(3 + FOR_DAT_12), region, 64, 0, DAT_VA_TYPE_VA, &made), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG2);
  assert_error(make(f, (DAT_MEM_TYPE)-1, region, 64, 0, DAT_VA_TYPE_VA, &made), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG2);
  ONLY_20(assert_error(make(f, DAT_MEM_TYPE_VIRTUAL, region, 64, 0, (DAT_VA_TYPE)2, &made), DAT_INVALID_PARAMETER,
                       DAT_INVALID_ARG7);)
  assert_error(make_virtual(f, f->memory, 64, 0x80, &made), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
  assert_error(make_virtual(f, f->memory, 64, 0x04, &made), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
  assert_error(make_virtual(f, f->memory, 0, 0, &made), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  assert_error(make_virtual(f, f->memory, (DAT_VLEN)-1, 0, &made), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  assert_error(make_virtual(f, NULL, 4096, 0x33, &made), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error(
      dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 64, f->pz, 0, DAT_VA_TYPE_VA, NULL, NULL, NULL, NULL, NULL),
      DAT_INVALID_PARAMETER, FOR_DAT_12 ? DAT_INVALID_ARG7 : DAT_INVALID_ARG8);
  assert_error(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 64, f->lmr, 0, DAT_VA_TYPE_VA, &made.lmr, NULL, NULL,
                              NULL, NULL),
               DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
}

static void lmr_create__writable_asks_for_memory_that_is(void** state) {
  struct fixture* f = *state;
  struct made made;
  void* readable = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ok(make_virtual(f, readable, 8192, DAT_MEM_PRIV_READ_FLAG, &made));
  assert_ok(dat_lmr_free(made.lmr));
  assert_error(make_virtual(f, readable, 8192, DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &made), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG3);
  assert_error(make_virtual(f, readable, 8192, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &made), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG3);
  munmap(readable, 8192);
}

/*
 * The peer's rights on a region with these privileges. On iWARP a Write completes when it has been sent, and the side
 * that refuses it ends the stream; siw refuses no RDMA Read for lack of the right.
 */
static void expect_access(struct fixture* f, int priv, bool reads, bool writes) {
  struct made made;
  assert_ok(make_virtual(f, f->memory + HALF, REGION, priv, &made));
  for (int write = 0; write < 2; ++write) {
    DAT_LMR_TRIPLET here = local(f, 0, 100);
    const DAT_RMR_TRIPLET there = target(&made, made.address + 10, 100);
    const bool allowed = write ? writes : reads || on_iwarp();
    const DAT_DTO_COMPLETION_STATUS status = allowed ? DAT_DTO_SUCCESS : DAT_DTO_ERR_REMOTE_ACCESS;
    fill(f->memory + (write ? 0 : HALF + 10), 100, (unsigned int)priv);
    memset(f->memory + (write ? HALF + 10 : 0), 0, 100);
    if (write) {
      sync_for_write(f, HALF + 10, 100);
      assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &here, cookie(7), &there, DAT_COMPLETION_DEFAULT_FLAG));
      if (allowed) {
        expect_written(f, 7);
      } else if (on_iwarp()) {
        expect_sent(f->active.request, 7, DAT_DTO_RDMA_WRITE);
      } else {
        expect_dto(f->active.request, 7, DAT_DTO_RDMA_WRITE, status);
      }
      sync_for_write(f, HALF + 10, 100);
    } else {
      sync_for_read(f, HALF + 10, 100);
      assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &here, cookie(7), &there, DAT_COMPLETION_DEFAULT_FLAG));
      expect_dto(f->active.request, 7, DAT_DTO_RDMA_READ, status);
    }
    if (!allowed && on_iwarp()) {
      expect_end(&f->active);
      expect_end(&f->passive);
    }
    assert_int_equal(is_filled(f->memory + (write ? HALF + 10 : 0), 100, (unsigned int)priv), allowed);
    if (!allowed) {
      assert_ok(dat_ep_free(f->active.ep));
      assert_ok(dat_ep_free(f->passive.ep));
      make_end(f, &f->active, NULL);
      make_end(f, &f->passive, NULL);
      connect_ends(f);
    }
  }
  assert_ok(dat_lmr_free(made.lmr));
}

static void lmr_create__privileges_hold_on_the_wire(void** state) {
  struct fixture* f = *state;
  expect_access(f, DAT_MEM_PRIV_ALL_FLAG, true, true);
  expect_access(f, DAT_MEM_PRIV_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, true, false);
  expect_access(f, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, false, true);
}

/* ---- Over another LMR ---- */

static void lmr_create_over_lmr__has_its_own_zone_and_privileges(void** state) {
  struct fixture* f = *state;
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_PARAM param;
  struct made first;
  struct made second;
  DAT_PZ_HANDLE pz;
  assert_ok(dat_pz_create(f->ia, &pz));
  assert_ok(make_virtual(f, f->memory + 100, 5000, DAT_MEM_PRIV_LOCAL_READ_FLAG, &first));
  region.for_lmr_handle = first.lmr;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_LMR, region, 77, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &second.lmr,
                           &second.lmr_context, &second.rmr_context, &second.size, &second.address));
  assert_int_equal(second.size, 5000); /* the length argument has no meaning here */
  assert_int_equal(second.address, first.address);
  assert_int_equal(first.rmr_context, 0);
  assert_int_not_equal(second.rmr_context, 0);
  assert_int_not_equal(second.lmr_context, first.lmr_context);
  param = params_of(second.lmr);
  assert_int_equal(param.mem_type, DAT_MEM_TYPE_LMR);
  assert_ptr_equal(param.region_desc.for_lmr_handle, first.lmr);
  assert_ptr_equal(param.pz_handle, pz);
  assert_int_equal(param.length, 5000);
  assert_error(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
  assert_ok(dat_lmr_free(second.lmr));
  assert_ok(dat_lmr_free(first.lmr));
  assert_ok(dat_pz_free(pz));
}

static void lmr_create_over_lmr__outlives_the_other(void** state) {
  struct fixture* f = *state;
  DAT_REGION_DESCRIPTION region;
  struct made first;
  struct made second;
  DAT_LMR_TRIPLET here = local(f, 0, 5000);
  DAT_RMR_TRIPLET there;
  assert_ok(make_virtual(f, f->memory + HALF, 5000, DAT_MEM_PRIV_LOCAL_READ_FLAG, &first));
  region.for_lmr_handle = first.lmr;
  assert_ok(make(f, DAT_MEM_TYPE_LMR, region, 0, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &second));
  assert_ok(dat_lmr_free(first.lmr));
  fill(f->memory, 5000, 3);
  there = target(&second, second.address, 5000);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &here, cookie(1), &there, DAT_COMPLETION_DEFAULT_FLAG));
  expect_written(f, 1);
  sync_for_write(f, HALF, 5000);
  assert_true(is_filled(f->memory + HALF, 5000, 3));
  assert_ok(dat_lmr_free(second.lmr));
}

static void lmr_create_over_lmr__not_an_lmr_of_this_ia(void** state) {
  struct fixture* f = *state;
  struct fixture other;
  struct made made;
  DAT_REGION_DESCRIPTION region;
  DAT_HANDLE wrong[4];
  open_ia(&other, IA_NAME);
  register_memory(&other);
  assert_ok(make_virtual(f, f->memory, 64, 0, &made));
  assert_ok(dat_lmr_free(made.lmr));
  wrong[0] = DAT_HANDLE_NULL;
  wrong[1] = f->pz;
  wrong[2] = other.lmr;
  wrong[3] = made.lmr;
  for (size_t i = 0; i < 4; ++i) {
    region.for_lmr_handle = wrong[i];
    assert_error(make(f, DAT_MEM_TYPE_LMR, region, 64, 0, DAT_VA_TYPE_VA, &made), DAT_INVALID_HANDLE,
                 DAT_INVALID_HANDLE_LMR);
  }
  munmap(other.memory, MEMORY_SIZE);
  assert_ok(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* ---- Shared memory ---- */

static char cookie_bytes[DAT_LMR_COOKIE_SIZE];

static DAT_RETURN make_shared(struct fixture* f, void* at, DAT_VLEN length, char first, char last, struct made* out) {
  DAT_REGION_DESCRIPTION region;
  memset(cookie_bytes, 0, sizeof cookie_bytes);
  cookie_bytes[0] = first;
  cookie_bytes[DAT_LMR_COOKIE_SIZE - 1] = last;
  region.for_shared_memory.virtual_address = at;
  region.for_shared_memory.shared_memory_id = &cookie_bytes;
  return make(f, DAT_MEM_TYPE_SHARED_VIRTUAL, region, length, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, out);
}

static void lmr_create_shared__equal_cookies_name_one_memory(void** state) {
  struct fixture* f = *state;
  struct made one;
  struct made two;
  struct made bad;
  DAT_LMR_PARAM param;
  const int file = memfd_create("shared", MFD_CLOEXEC);
  unsigned char* a;
  unsigned char* b;
  assert_int_equal(ftruncate(file, 4 * REGION), 0);
  a = mmap(NULL, 2 * REGION, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  b = mmap(NULL, 2 * REGION, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  assert_ok(make_shared(f, a, REGION, 'x', 1, &one));
  assert_ok(make_shared(f, b, REGION, 'x', 1, &two)); /* the same memory, mapped at another address */
  param = params_of(one.lmr);
  memset(cookie_bytes, 0, sizeof cookie_bytes);
  cookie_bytes[0] = 'x';
  cookie_bytes[DAT_LMR_COOKIE_SIZE - 1] = 1;
  assert_int_equal(param.mem_type, DAT_MEM_TYPE_SHARED_VIRTUAL);
  assert_ptr_equal(param.region_desc.for_shared_memory.virtual_address, a);
  assert_memory_equal(*param.region_desc.for_shared_memory.shared_memory_id, cookie_bytes, DAT_LMR_COOKIE_SIZE);
  assert_int_equal(param.length, REGION);

  assert_error(make_shared(f, a, REGION / 2, 'x', 1, &bad), DAT_INVALID_STATE, DAT_NO_SUBTYPE);      /* length */
  assert_error(make_shared(f, a + REGION, REGION, 'x', 1, &bad), DAT_INVALID_STATE, DAT_NO_SUBTYPE); /* offset */
  assert_ok(make_shared(f, a + REGION, REGION, 'x', 2, &bad)); /* only the last byte of the cookie differs */
  assert_ok(dat_lmr_free(bad.lmr));
  assert_ok(dat_lmr_free(one.lmr));
  assert_error(make_shared(f, a + REGION, REGION, 'x', 1, &bad), DAT_INVALID_STATE, DAT_NO_SUBTYPE);
  assert_ok(dat_lmr_free(two.lmr));
  assert_ok(make_shared(f, a + REGION, REGION, 'x', 1, &bad)); /* no region uses the cookie any more */
  assert_ok(dat_lmr_free(bad.lmr));
  munmap(a, 2 * REGION);
  munmap(b, 2 * REGION);
}

static void lmr_create_shared__memory_must_be_shared(void** state) {
  struct fixture* f = *state;
  struct made made;
  DAT_REGION_DESCRIPTION region;
  void* anonymous = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_error(make_shared(f, f->memory, REGION, 'y', 0, &made), DAT_INVALID_STATE, DAT_NO_SUBTYPE);
  assert_error(make_shared(f, &made, sizeof made, 'y', 0, &made), DAT_INVALID_STATE, DAT_NO_SUBTYPE);
  assert_ok(make_shared(f, anonymous, REGION, 'y', 0, &made));
  assert_ok(dat_lmr_free(made.lmr));
  region.for_shared_memory.virtual_address = anonymous;
  region.for_shared_memory.shared_memory_id = NULL;
  assert_error(make(f, DAT_MEM_TYPE_SHARED_VIRTUAL, region, REGION, 0, DAT_VA_TYPE_VA, &made), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG3);
  munmap(anonymous, REGION);
}

/* ---- Zero-based ---- */

#if !FOR_DAT_12

static DAT_LMR_TRIPLET segment(const struct made* made, uint64_t at, uint32_t length) {
  return lmr_triplet(at, length, made->lmr_context);
}

static void make_zero_based(struct fixture* f, size_t offset, struct made* out) {
  DAT_REGION_DESCRIPTION region;
  region.for_va = f->memory + offset;
  assert_int_equal(f->attr.zb_supported, DAT_TRUE);
  assert_ok(make(f, DAT_MEM_TYPE_VIRTUAL, region, REGION, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, out));
}

static void lmr_create_zero_based__segments_are_offsets(void** state) {
  SKIP_ON_IWARP();
  struct fixture* f = *state;
  static const uint32_t sizes[] = {1, 64, 4096, 10001, REGION - 33};
  struct made here;
  struct made there;
  make_zero_based(f, 4096, &here);
  make_zero_based(f, HALF, &there);
  assert_int_equal(params_of(here.lmr).va_type, DAT_VA_TYPE_ZB);
  assert_int_equal(here.address, (uintptr_t)f->memory + 4096);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    DAT_LMR_TRIPLET from = segment(&here, 33, sizes[i]);
    DAT_LMR_TRIPLET into = segment(&there, 7, sizes[i]);
    const DAT_RMR_TRIPLET to = target(&there, 5, sizes[i]);
    const DAT_RMR_TRIPLET source = target(&there, 5, sizes[i]);
    /* RDMA Write, inline or not */
    fill(f->memory + 4096 + 33, sizes[i], (unsigned int)i);
    memset(f->memory + HALF, 0, REGION);
    assert_ok(dat_lmr_sync_rdma_write(f->ia, &into, 1));
    assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &from, cookie(1), &to, DAT_COMPLETION_DEFAULT_FLAG));
    expect_dto(f->active.request, 1, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
    assert_ok(dat_lmr_sync_rdma_write(f->ia, &into, 1));
    assert_true(is_filled(f->memory + HALF + 5, sizes[i], (unsigned int)i));
    /* RDMA Read back */
    memset(f->memory + 4096, 0, REGION);
    assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &from, cookie(2), &source, DAT_COMPLETION_DEFAULT_FLAG));
    expect_dto(f->active.request, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS);
    assert_true(is_filled(f->memory + 4096 + 33, sizes[i], (unsigned int)i));
    /* Send and receive */
    assert_ok(dat_ep_post_recv(f->passive.ep, 1, &into, cookie(3), DAT_COMPLETION_DEFAULT_FLAG));
    assert_ok(dat_ep_post_send(f->active.ep, 1, &from, cookie(4), DAT_COMPLETION_DEFAULT_FLAG));
    expect_dto(f->passive.recv, 3, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
    expect_dto(f->active.request, 4, DAT_DTO_SEND, DAT_DTO_SUCCESS);
    assert_true(is_filled(f->memory + HALF + 7, sizes[i], (unsigned int)i));
  }
}

static void lmr_create_zero_based__bounds_of_sync(void** state) {
  SKIP_ON_IWARP();
  struct fixture* f = *state;
  struct made made;
  DAT_LMR_TRIPLET whole;
  make_zero_based(f, 4096, &made);
  whole = segment(&made, 0, REGION);
  assert_ok(dat_lmr_sync_rdma_read(f->ia, &whole, 1));
  whole.virtual_address = 1;
  assert_error(dat_lmr_sync_rdma_read(f->ia, &whole, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  whole.virtual_address = (uintptr_t)f->memory + 4096;
  assert_error(dat_lmr_sync_rdma_write(f->ia, &whole, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

static void lmr_create_zero_based__only_from_the_start_of_a_page(void** state) {
  SKIP_ON_IWARP();
  struct fixture* f = *state;
  struct made made;
  DAT_REGION_DESCRIPTION region;
  region.for_va = f->memory + 1;
  assert_error(make(f, DAT_MEM_TYPE_VIRTUAL, region, REGION, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, &made),
               DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
}

#endif

static void ia_query__memory_types(void** state) {
  const struct fixture* f = *state;
  assert_int_equal(f->provider.lmr_mem_types_supported,
                   DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);
  assert_true(f->attr.max_lmrs > 0);
  assert_true(f->attr.max_lmr_block_size >= MEMORY_SIZE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IA_TEST(lmr_create__reports_what_was_registered),
      IA_TEST(lmr_create__rmr_context_only_for_remote_rights),
      IA_TEST(lmr_create__bad_arguments),
      IA_TEST(lmr_create__writable_asks_for_memory_that_is),
      CONNECTED_TEST(lmr_create__privileges_hold_on_the_wire),
      IA_TEST(lmr_create_over_lmr__has_its_own_zone_and_privileges),
      CONNECTED_TEST(lmr_create_over_lmr__outlives_the_other),
      IA_TEST(lmr_create_over_lmr__not_an_lmr_of_this_ia),
      IA_TEST(lmr_create_shared__equal_cookies_name_one_memory),
      IA_TEST(lmr_create_shared__memory_must_be_shared),
      ONLY_20(CONNECTED_TEST(lmr_create_zero_based__segments_are_offsets), )
          ONLY_20(IA_TEST(lmr_create_zero_based__bounds_of_sync), )
              ONLY_20(IA_TEST(lmr_create_zero_based__only_from_the_start_of_a_page), ) IA_TEST(ia_query__memory_types),
  };
  return RUN_TESTS(tests);
}
