#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "link_pairs.h"

/// The one list of what a kind of link cannot do, with the reason: docs/decisions/0001-links-over-sockets.md.
namespace outrigger::transport {

struct KnownFailure {
  Carrier carrier;
  std::string_view test;  ///< without the parameter
  std::string_view reason;
};

inline const std::vector<KnownFailure>& known_failures() {
  static const std::vector<KnownFailure> list = {};
  return list;
}

inline std::vector<Carrier> carriers() { return {Carrier::kMemory, Carrier::kSockets, Carrier::kGloo}; }

inline void skip_known_failure(Carrier carrier) {
  const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string test = name.substr(0, name.find('/'));
  for (const KnownFailure& known : known_failures()) {
    if (known.carrier == carrier && known.test == test) GTEST_SKIP() << known.reason;
  }
}

}  // namespace outrigger::transport
