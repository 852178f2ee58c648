#include "feed/room.h"

#include <gtest/gtest.h>

namespace outrigger::feed {
namespace {

constexpr double kInstant = 1e-4;
constexpr double kLong = 0.1;

/// How many leases were asked for; 0: none.
uint32_t asked(const std::optional<Pull>& pull) { return pull ? pull->leases : 0; }

/// Of four leases, all of which have come.
Room full_room(uint32_t at_once) {
  Room room(4, at_once);
  for (int i = 0; i < 4; ++i) room.take();
  return room;
}

TEST(Room, WhatWasDoneInAnInstantWaitsForTheNext) {
  Room room = full_room(2);
  EXPECT_EQ(asked(room.give_back(kInstant)), 0u);
  EXPECT_EQ(asked(room.give_back(kInstant)), 2u);
  room.take();
  room.take();
  EXPECT_EQ(asked(room.give_back(kInstant)), 0u);
}

TEST(Room, WhatTakesItsTimeAsksAtOnceAndForWhatWaits) {
  Room room = full_room(3);
  EXPECT_EQ(asked(room.give_back(kLong)), 1u);
  room.take();
  EXPECT_EQ(asked(room.give_back(kInstant)), 0u);
  EXPECT_EQ(asked(room.give_back(kLong)), 2u);
}

TEST(Room, WhoHasLittleToDoAsksAtOnce) {
  Room room = full_room(2);
  static_cast<void>(room.give_back(kLong));
  EXPECT_EQ(asked(room.give_back(kInstant)), 1u);
  EXPECT_EQ(asked(room.give_back(kInstant)), 1u);
  EXPECT_EQ(asked(room.give_back(kInstant)), 1u);
}

TEST(Room, WhoHasNothingToDoAsksForWhatWaits) {
  Room room = full_room(2);
  EXPECT_EQ(asked(room.ask()), 0u);
  EXPECT_EQ(asked(room.give_back(kInstant)), 0u);
  EXPECT_EQ(asked(room.ask()), 1u);
  EXPECT_EQ(asked(room.ask()), 0u);
}

TEST(Room, OneAtATimeNeverWaits) {
  Room room = full_room(1);
  EXPECT_EQ(asked(room.give_back(kInstant)), 1u);
}

TEST(LeasesInHand, AreFourSamplesForEachThreadAndFourAtLeast) {
  EXPECT_EQ(leases_in_hand(1, 32), 4u);
  EXPECT_EQ(leases_in_hand(8, 8), 4u);
  EXPECT_EQ(leases_in_hand(16, 8), 8u);
  EXPECT_EQ(leases_in_hand(3, 2), 6u);
  EXPECT_EQ(leases_in_hand(5, 3), 7u) << "rounded up";
  EXPECT_EQ(leases_in_hand(0.25, 1), 4u);
  EXPECT_EQ(leases_in_hand(1.5, 1), 8u) << "two threads, one for a part of the time";
  EXPECT_EQ(leases_in_hand(UINT32_MAX, 1), 1024u) << "whatever a worker says of itself";
}

TEST(LeasesInHand, LeaveMemoryForTheRest) {
  EXPECT_EQ(memory_beside(1e9, 4, 1e6), 1e9);
  EXPECT_EQ(memory_beside(1e9, 10, 1e6), 1e9 - 6e6);
}

}  // namespace
}  // namespace outrigger::feed
