#include "common/flat_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"

namespace outrigger {
namespace {

TEST(FlatMap, IsInTheOrderOfItsKeys) {
  FlatMap<int, std::string> map;
  EXPECT_TRUE(map.empty());
  map[3] = "three";
  map[1] = "one";
  map[2] = "two";
  std::vector<std::string> values;
  for (const auto& [key, value] : map) values.push_back(value);
  EXPECT_EQ(values, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(map.begin()->first, 1);
}

TEST(FlatMap, EmplacingChangesNoValueThatIsThere) {
  FlatMap<int, std::string> map;
  EXPECT_TRUE(map.emplace(1, "one").second);
  const auto [place, added] = map.emplace(1, "uno");
  EXPECT_FALSE(added);
  EXPECT_EQ(place->second, "one");
  EXPECT_EQ(map.size(), 1U);
}

TEST(FlatMap, WhatIsMissingIsNotFound) {
  FlatMap<int, int> map;
  map[1] = 7;
  EXPECT_EQ(map.at(1), 7);
  EXPECT_EQ(std::as_const(map).at(1), 7);
  EXPECT_EQ(map.find(2), map.end());
  EXPECT_EQ(std::as_const(map).find(0), std::as_const(map).end());
  EXPECT_EQ(map.erase(2), 0U);
  EXPECT_EQ(map.erase(1), 1U);
  EXPECT_TRUE(map.empty());
}

TEST(FlatMap, HoldsWhatCanOnlyBeMoved) {
  FlatMap<int, std::unique_ptr<int>> map;
  map[2] = std::make_unique<int>(2);
  map[1] = std::make_unique<int>(1);
  EXPECT_EQ(*map.at(2), 2);
  map.erase(map.begin());
  EXPECT_EQ(*map.begin()->second, 2);
}

TEST(FlatMap, DoesAsAMapDoes) {
  RandomStream random(1, RandomUse::kSyntheticData, 0);
  FlatMap<int, int> flat;
  std::map<int, int> map;
  for (int i = 0; i < 2000; ++i) {
    const int key = static_cast<int>(50 * random.uniform());
    if (random.uniform() < 0.5F) {
      flat[key] = map[key] = i;
    } else {
      EXPECT_EQ(flat.erase(key), map.erase(key));
    }
    EXPECT_EQ(flat.contains(key), map.contains(key));
    ASSERT_EQ(flat.size(), map.size());
    EXPECT_TRUE(std::ranges::equal(flat, map, [](const auto& a, const auto& b) {
      return a.first == b.first && a.second == b.second;
    }));
  }
}

}  // namespace
}  // namespace outrigger
