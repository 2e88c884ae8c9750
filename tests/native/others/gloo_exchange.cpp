// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// gloo_exchange RANK SIZE FOLDER: one of SIZE processes that meet by files in FOLDER, add their vectors and send one to
// all, by Gloo's transport ibverbs on the device dapple0. Prints "all right", or the first wrong element.
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr size_t kElements = 100'000;
int size = 0;

// Small whole numbers, so that the sums are exact in any order.
float element(size_t at, int rank) {
  return static_cast<float>(at % 1000 + static_cast<size_t>(rank));
}

float sum(size_t at) {
  float result = 0;
  for (int rank = 0; rank < size; ++rank) result += element(at, rank);
  return result;
}

float root_element(size_t at) {
  return element(at, size - 1);
}

// An Algorithm is never destroyed: it must not be while its last sends are not completed, for which it does not wait.
template <typename Algorithm, typename... Arguments>
void run(const char* name, int rank, const std::shared_ptr<gloo::Context>& context, float (*expected)(size_t),
         Arguments... arguments) {
  auto* values = new std::vector<float>(kElements);
  for (size_t at = 0; at < kElements; ++at) (*values)[at] = element(at, rank);
  auto* algorithm =
      new Algorithm(context, std::vector<float*>{values->data()}, static_cast<int>(kElements), arguments...);
  algorithm->run();
  for (size_t at = 0; at < kElements; ++at) {
    if ((*values)[at] == expected(at)) continue;
    std::printf("%s: element %zu is %g instead of %g\n", name, at, static_cast<double>((*values)[at]),
                static_cast<double>(expected(at)));
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int rank = std::atoi(argv[1]);
  size = std::atoi(argv[2]);
  auto device = gloo::transport::ibverbs::CreateDevice({"dapple0", 1, 1});  // port 1, the first address
  auto store = gloo::rendezvous::FileStore(argv[3]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  run<gloo::AllreduceRing<float>>("ring", rank, context, sum);
  run<gloo::AllreduceHalvingDoubling<float>>("halving and doubling", rank, context, sum);
  run<gloo::BroadcastOneToAll<float>>("broadcast", rank, context, root_element, size - 1, 0);
  (new gloo::BarrierAllToAll(context))->run();
  // Gloo does not wait for the end of its last sends. If a packet of theirs is lost, only a process that still runs
  // sends it again. So each process stays until all have everything.
  store.set("end" + std::to_string(rank), {'.'});
  std::vector<std::string> ends;
  for (int other = 0; other < size; ++other) ends.push_back("end" + std::to_string(other));
  store.wait(ends, std::chrono::seconds(40));
  std::puts("all right");
  std::fflush(stdout);
  std::_Exit(0);
}
