/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * An MPI program for any number of processes in a circle. Each sends messages of 1 byte to 4 MiB to the next one, sums
 * up, adds to a counter of the first process, and writes into the next one's window. Prints "N processes, all right" if
 * every byte was right.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (4 << 20)
#define ROUNDS 4
#define ADDITIONS 100
/* Of a window: a counter, then the place of the last process' words. */
#define WORDS 512

static int rank, count, next, last;
static long wrong;

static void send_around(void) {
  unsigned char* sent = malloc(MOST_BYTES);
  unsigned char* received = malloc(MOST_BYTES);
  if (sent == NULL || received == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int size = 1; size <= MOST_BYTES; size *= 4) {
    for (int round = 0; round < ROUNDS; round++) {
      memset(sent, rank * ROUNDS + round, (size_t)size);
      memset(received, 0xFF, (size_t)size);
      MPI_Sendrecv(sent, size, MPI_BYTE, next, round, received, size, MPI_BYTE, last, round, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      for (int i = 0; i < size; i++) wrong += received[i] != last * ROUNDS + round;
    }
  }
  free(sent);
  free(received);
}

static void sum_up(void) {
  long sum = 0, own = rank;
  MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  wrong += sum != (long)count * (count - 1) / 2;
}

static void write_into_windows(void) {
  MPI_Win window;
  long* memory = NULL;
  long words[WORDS];
  const long one = 1;
  MPI_Win_allocate((1 + WORDS) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
  memset(memory, 0, (1 + WORDS) * sizeof(long));
  MPI_Win_unlock(rank, window);
  MPI_Barrier(MPI_COMM_WORLD);

  for (int i = 0; i < WORDS; i++) words[i] = (long)rank * WORDS + i;
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < ADDITIONS; i++) MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, window);
  MPI_Put(words, WORDS, MPI_LONG, next, 1, WORDS, MPI_LONG, window);
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);

  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  if (rank == 0) wrong += memory[0] != (long)count * ADDITIONS;
  for (int i = 0; i < WORDS; i++) wrong += memory[1 + i] != (long)last * WORDS + i;
  MPI_Win_unlock(rank, window);
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  long all_wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  next = (rank + 1) % count;
  last = (rank + count - 1) % count;
  send_around();
  sum_up();
  write_into_windows();
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all_wrong == 0) printf("%d processes, all right\n", count);
  if (rank == 0 && all_wrong != 0) printf("%ld values are wrong\n", all_wrong);
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
