#include "worker/rejoining.h"

#include <gtest/gtest.h>

namespace outrigger::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const SessionResult kSentAway{SessionEnd::kAgain, "it cannot read the data"};
const SessionResult kRefused{SessionEnd::kRefused, "it sees other data"};
const SessionResult kLost{SessionEnd::kLinkLost, "gone", true};

TEST(Rejoining, WaitsLongerEachTimeUntilASessionHadWork) {
  Rejoining rejoining(1);
  Duration longest{0};
  for (int i = 0; i < 10; ++i) {
    rejoining.session_over(kSentAway);
    longest = rejoining.next_wait();
  }
  EXPECT_GE(longest, seconds(5));
  EXPECT_LE(longest, seconds(15));
  rejoining.session_over(kLost);
  EXPECT_LE(rejoining.next_wait(), milliseconds(375));
}

TEST(Rejoining, NoTwoWorkersComeBackTogether) {
  Rejoining one;
  Rejoining other;
  bool together = true;
  for (int i = 0; i < 4; ++i) together = one.next_wait() == other.next_wait() && together;
  EXPECT_FALSE(together);
}

TEST(Rejoining, EndsWithTheReasonAfterFiveRefusalsInARow) {
  Rejoining rejoining(1);
  rejoining.refused("another token");
  for (int i = 0; i < 3; ++i) rejoining.session_over(kRefused);
  rejoining.session_over(kSentAway);  // the row begins anew
  for (int i = 0; i < 4; ++i) rejoining.session_over(kRefused);
  rejoining.session_over({SessionEnd::kLinkLost, "before a word"});
  try {
    rejoining.session_over(kRefused);
    FAIL() << "it would come for ever";
  } catch (const api::Failure& failure) {
    EXPECT_EQ(failure.code(), api::ExitCode::kJoinRefused);
    EXPECT_STREQ(failure.what(), "the server does not take this worker: it sees other data");
  }
}

}  // namespace
}  // namespace outrigger::worker
