/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * iser_disk INITIATOR URL FILE: writes the file to the disk at that iser URL through libiscsi, in pieces of different
 * lengths, and reads it back in other pieces. Prints "all right" if each byte is the file's.
 */
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512

static void fail(const char* what, const char* why) {
  fprintf(stderr, "iser_disk: %s: %s\n", what, why);
  exit(1);
}

static unsigned char* read_file(const char* name, size_t* size) {
  FILE* file = fopen(name, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) fail(name, "cannot be opened");
  *size = (size_t)ftell(file);
  unsigned char* bytes = malloc(*size);
  rewind(file);
  if (bytes == NULL || fread(bytes, 1, *size, file) != *size) fail(name, "cannot be read");
  fclose(file);
  return bytes;
}

/* The end of the piece at `from`: 1 to `most` blocks. */
static size_t end_of(size_t from, size_t most, size_t size) {
  const size_t end = from + (1 + (from / BLOCK * 31) % most) * BLOCK;
  return end < size ? end : size;
}

int main(int argc, char** argv) {
  size_t size;
  if (argc != 4) fail("usage", "iser_disk INITIATOR URL FILE");
  unsigned char* bytes = read_file(argv[3], &size);

  struct iscsi_context* iscsi = iscsi_create_context(argv[1]);
  if (iscsi == NULL) fail(argv[1], "no memory");
  struct iscsi_url* url = iscsi_parse_full_url(iscsi, argv[2]);
  if (url == NULL) fail(argv[2], iscsi_get_error(iscsi));
  if (iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL) != 0 ||
      iscsi_full_connect_sync(iscsi, url->portal, url->lun) != 0)
    fail(argv[2], iscsi_get_error(iscsi));

  for (size_t at = 0, end; at < size; at = end) {
    end = end_of(at, 255, size);
    struct scsi_task* task = iscsi_write10_sync(iscsi, url->lun, (uint32_t)(at / BLOCK), bytes + at,
                                                (uint32_t)(end - at), BLOCK, 0, 0, 0, 0, 0);
    if (task == NULL || task->status != SCSI_STATUS_GOOD) fail("write", iscsi_get_error(iscsi));
    scsi_free_scsi_task(task);
  }
  for (size_t at = 0, end; at < size; at = end) {
    end = end_of(at, 199, size);
    struct scsi_task* task =
        iscsi_read10_sync(iscsi, url->lun, (uint32_t)(at / BLOCK), (uint32_t)(end - at), BLOCK, 0, 0, 0, 0, 0);
    if (task == NULL || task->status != SCSI_STATUS_GOOD) fail("read", iscsi_get_error(iscsi));
    if ((size_t)task->datain.size != end - at || memcmp(task->datain.data, bytes + at, end - at) != 0)
      fail("read", "wrong bytes");
    scsi_free_scsi_task(task);
  }
  iscsi_logout_sync(iscsi);
  iscsi_destroy_url(url);
  iscsi_destroy_context(iscsi);
  free(bytes);
  puts("all right");
  return 0;
}
