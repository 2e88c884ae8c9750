// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The environment variables of dapple's libraries, of dappled and of the software device. Each of these reads them
// once, when it first needs one, and a later setenv() of the program changes nothing, with three exceptions: the
// queries of libdapple read `coherence` and `persistence` in each call, and librpma reads `rpma_native` for each peer.
// A program with more rights than its caller (set-user-ID, capabilities of its file) ignores them. The manual pages
// explain each variable.
#pragma once

#include <stdlib.h>
#include <string.h>

namespace dapple::provider {

// X(member, "variable"), in the order in which dapple-info shows them.
#define DAPPLE_SETTINGS(X)                 \
  X(coherence, "DAPPLE_COHERENCE")         \
  X(persistence, "DAPPLE_PERSISTENCE")     \
  X(rpma_native, "DAPPLE_RPMA_NATIVE")     \
  X(emulate, "DAPPLE_EMULATE")             \
  X(verbose, "DAPPLE_VERBOSE")             \
  X(check, "DAPPLE_CHECK")                 \
  X(check_records, "DAPPLE_CHECK_RECORDS") \
  X(check_stderr, "DAPPLE_CHECK_STDERR")   \
  X(check_log, "DAPPLE_CHECK_LOG")         \
  X(explain, "DAPPLE_EXPLAIN")             \
  X(hang, "DAPPLE_HANG")                   \
  X(hang_records, "DAPPLE_HANG_RECORDS")   \
  X(faults, "DAPPLE_FAULTS")               \
  X(faults_in, "DAPPLE_FAULTS_IN")         \
  X(fault_points, "DAPPLE_FAULT_POINTS")   \
  X(seed, "DAPPLE_SEED")                   \
  X(pcap, "DAPPLE_PCAP")                   \
  X(trace, "DAPPLE_TRACE")                 \
  X(same_host, "DAPPLE_SAME_HOST")         \
  X(same_host_mib, "DAPPLE_SAME_HOST_MIB") \
  X(placement, "DAPPLE_PLACEMENT")         \
  X(as, "DAPPLE_AS")                       \
  X(gids, "DAPPLE_GIDS")                   \
  X(trust_uid, "DAPPLE_TRUST_UID")         \
  X(dappled, "DAPPLE_DAPPLED")             \
  X(dappled_linger, "DAPPLED_LINGER")

// The text of each variable; null if it is not set or empty. The texts live as long as the process.
struct Settings {
#define DAPPLE_SETTING(member, variable) const char* member = nullptr;
  DAPPLE_SETTINGS(DAPPLE_SETTING)
#undef DAPPLE_SETTING

  static Settings of_environment() {
    const auto text_of = [](const char* variable) -> const char* {
      const char* text = secure_getenv(variable);
      return text == nullptr || text[0] == '\0' ? nullptr : text;
    };
    Settings read;
#define DAPPLE_SETTING(member, variable) read.member = text_of(variable);
    DAPPLE_SETTINGS(DAPPLE_SETTING)
#undef DAPPLE_SETTING
    return read;
  }
};

// Copies, because a program may replace its environment and free it, as bash does. Those that are replaced in a test
// stay valid.
struct KeptSettings {
  Settings texts;
  const KeptSettings* before;

  explicit KeptSettings(const KeptSettings* earlier) : texts(Settings::of_environment()), before(earlier) {
#define DAPPLE_SETTING(member, variable) \
  if (texts.member != nullptr) texts.member = strdup(texts.member);
    DAPPLE_SETTINGS(DAPPLE_SETTING)
#undef DAPPLE_SETTING
  }
};

// Safe from any thread.
inline KeptSettings*& kept_settings() {
  static KeptSettings first(nullptr);
  static KeptSettings* kept = &first;
  return kept;
}
inline Settings& changeable_settings() {
  return kept_settings()->texts;
}
inline const Settings& settings() {
  return changeable_settings();
}
// For tests, while no other thread asks.
inline void read_settings_again() {
  kept_settings() = new KeptSettings(kept_settings());
}

// True for a text that begins with 1, as for DAPPLE_EMULATE and DAPPLE_VERBOSE.
inline bool is_on(const char* text) {
  return text != nullptr && text[0] == '1';
}

}  // namespace dapple::provider
