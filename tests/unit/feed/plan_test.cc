#include "feed/plan.h"

#include <gtest/gtest.h>

#include <string>

namespace outrigger::feed {
namespace {

constexpr uint32_t kMicroBatches = 8;

/// Of each micro-batch: `o` where its stem is away, `l` where the server makes its pixels, `.`.
std::string drawn(const Plan& plan) {
  std::string text;
  for (uint32_t index = 0; index < kMicroBatches; ++index) {
    const bool away = plan.cut_of(index, kMicroBatches) > 0;
    const bool local = plan.is_local(index, kMicroBatches);
    EXPECT_FALSE(away && local);
    text += away ? 'o' : (local ? 'l' : '.');
  }
  return text;
}

TEST(Plan, StemsAwayLieBetweenThoseOfTheServer) {
  EXPECT_EQ(drawn({.cut = 3, .stems_away = 5}), "...ooooo");
  EXPECT_EQ(drawn({.cut = 3, .stems_away = 5, .here_last = 1}), "..ooooo.");
  EXPECT_EQ(drawn({.cut = 3, .stems_away = 8}), "oooooooo");
  EXPECT_EQ(drawn({}), "........");
}

TEST(Plan, WhatTheServerMakesItselfComesFirst) {
  EXPECT_EQ(drawn({.cut = 3, .stems_away = 4, .here_last = 2, .local_inputs = 1}), "l.oooo..");
  EXPECT_EQ(drawn({.cut = 3, .stems_away = 4, .here_last = 2, .local_inputs = 3}), "llooool.");
  EXPECT_EQ(drawn({.cut = 3, .stems_away = 4, .here_last = 2, .local_inputs = 4}), "llooooll");
  EXPECT_EQ(drawn({.local_inputs = 3}), "lll.....");
}

TEST(Plan, HalfOfTheServersMicroBatchesComeLastAndTwoAtMost) {
  for (const auto& [away, last] :
       {std::pair{0u, 0u}, {8u, 0u}, {7u, 1u}, {6u, 1u}, {5u, 2u}, {4u, 2u}, {1u, 2u}})
    EXPECT_EQ(best_here_last(kMicroBatches, away), last) << away;
}

}  // namespace
}  // namespace outrigger::feed
