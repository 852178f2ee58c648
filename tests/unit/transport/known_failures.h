#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "link_pairs.h"

/// The one list of what a kind of link cannot do, with the reason:
/// docs/decisions/0001-links-over-sockets.md.
namespace outrigger::transport {

struct KnownFailure {
  Carrier carrier;
  std::string_view test;  ///< without the parameter
  std::string_view reason;
};

inline const std::vector<KnownFailure>& known_failures() {
  static const std::vector<KnownFailure> list = {
      {Carrier::kGloo, "AWorkerThatMayNotListenGetsALink",
       "each pair of the packaged Gloo listens on a port of its own before it connects"},
      {Carrier::kGloo, "AStrangerOnALinksOwnPortDoesNotEndTheProcess",
       "the packaged Gloo takes whoever connects first, and throws on its event thread for a "
       "message it does not expect"},
      {Carrier::kGloo, "AStrangerOnALinksOwnPortDoesNotKeepThePeerOut",
       "the packaged Gloo takes whoever connects first"},
  };
  return list;
}

inline std::vector<Carrier> carriers() {
  return {Carrier::kMemory, Carrier::kSockets, Carrier::kGloo};
}

/// Expects that a promise was kept, or, where it stands in the list, that it was broken: so the
/// list stays true.
inline void expect_kept(Carrier carrier, bool kept, const std::string& what_happened) {
  const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string test = name.substr(0, name.find('/'));
  for (const KnownFailure& known : known_failures()) {
    if (known.carrier != carrier || known.test != test) continue;
    EXPECT_FALSE(kept) << "this works now and is to be taken off the list: " << known.reason;
    return;
  }
  EXPECT_TRUE(kept) << what_happened;
}

}  // namespace outrigger::transport
