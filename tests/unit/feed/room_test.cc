#include "feed/room.h"

#include <gtest/gtest.h>

namespace outrigger::feed {
namespace {

constexpr double kInstant = 1e-4;
constexpr double kLong = 0.1;

/// How many leases were asked for; 0: none.
uint32_t asked(const std::optional<Pull>& pull) { return pull ? pull->leases : 0; }

TEST(Room, WhatWasDoneInAnInstantWaitsForTheNext) {
  Room room(4, 2);
  EXPECT_EQ(asked(room.give_back(kInstant, 3)), 0u);
  EXPECT_EQ(asked(room.give_back(kInstant, 2)), 2u);
  EXPECT_EQ(asked(room.give_back(kInstant, 3)), 0u);
}

TEST(Room, WhatTakesItsTimeAsksAtOnceAndForWhatWaits) {
  Room room(4, 3);
  EXPECT_EQ(asked(room.give_back(kLong, 3)), 1u);
  EXPECT_EQ(asked(room.give_back(kInstant, 3)), 0u);
  EXPECT_EQ(asked(room.give_back(kLong, 3)), 2u);
}

TEST(Room, WhoHasLittleToDoAsksAtOnce) {
  Room room(4, 2);
  EXPECT_EQ(asked(room.give_back(kInstant, 2)), 1u);
  EXPECT_EQ(asked(room.give_back(kInstant, 0)), 1u);
}

TEST(Room, WhoHasNothingToDoAsksForWhatWaits) {
  Room room(4, 2);
  EXPECT_EQ(asked(room.ask()), 0u);
  EXPECT_EQ(asked(room.give_back(kInstant, 3)), 0u);
  EXPECT_EQ(asked(room.ask()), 1u);
  EXPECT_EQ(asked(room.ask()), 0u);
}

TEST(Room, OneAtATimeNeverWaits) {
  Room room(4, 1);
  EXPECT_EQ(asked(room.give_back(kInstant, 3)), 1u);
}

}  // namespace
}  // namespace outrigger::feed
