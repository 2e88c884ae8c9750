// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/memory/device.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "ibverbs-glue/capabilities.hpp"

namespace dapple::rpma {
namespace {

constinit std::mutex mutex;
constinit Device::Known* in_use = nullptr;
constinit Device::Known* left = nullptr;  // an answer whose last peer was deleted; at most one is kept

// False if the value is too long.
template <size_t kSize>
bool copy_variable(const char* name, char (&to)[kSize]) {
  const char* value = secure_getenv(name);
  if (!value) return true;
  if (std::strlen(value) >= kSize) return false;
  std::strcpy(to, value);
  return true;
}

// Fills in the question of this query. False if later queries must not use its answer. `file` is then 0, so the
// question equals no question for which the result is true.
bool fill(ibv_context* context, Question& question) {
  question = {context, context->device, 0, {}, {}};
  if (!copy_variable("DAPPLE_COHERENCE", question.coherence)) return false;
  if (!copy_variable("DAPPLE_PERSISTENCE", question.persistence)) return false;
  struct stat status;
  if (fstat(context->cmd_fd, &status) != 0) return false;
  // With an overlay, which may have been attached since an earlier query, the answer may be the emulator's. This call
  // succeeds only with an overlay.
  if (dappledv_sync_mr_for_cpu(context, nullptr, 0, nullptr) == 0) return false;
  question.file = status.st_rdev;
  return true;
}

// A context cannot be closed before its last peer is deleted, so its address identifies it until then.
Device::Known* find(const ibv_context* context) {
  for (Device::Known* known = in_use; known; known = known->next) {
    if (known->question.context == context) return known;
  }
  return nullptr;
}

}  // namespace

int Device::open(ibv_context* context) noexcept {
  const std::lock_guard lock(mutex);
  if (Known* known = find(context)) {
    ++known->peers;
    known_ = known;
    return 0;
  }
  Question question;
  const bool can_be_kept = fill(context, question);
  std::unique_ptr<Known> known;
  if (can_be_kept && left && left->question == question) {
    known.reset(std::exchange(left, nullptr));
  } else {
    known.reset(new (std::nothrow) Known{question, 0, {}, {}, {}, nullptr});
    if (!known) return ENOMEM;
    if (const int error = dappledv_query_device(context, &known->attr)) return error;
    (void)dappledv_init_region(&known->attr, &known->memory);
    known->capabilities = verbs::query_capabilities(context);
  }
  known->peers = 1;
  known->next = in_use;
  known_ = in_use = known.release();
  return 0;
}

Device::~Device() {
  if (!known_) return;
  const std::lock_guard lock(mutex);
  if (--known_->peers != 0) return;
  Known** at = &in_use;
  while (*at != known_) at = &(*at)->next;
  *at = known_->next;
  delete std::exchange(left, known_);
}

}  // namespace dapple::rpma
