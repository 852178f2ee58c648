#include "common/boxed.h"

#include <gtest/gtest.h>

#include <string>

namespace outrigger {
namespace {

TEST(Boxed, IsEmptyUntilThereIsAValue) {
  Boxed<std::string> word;
  EXPECT_FALSE(word.has_value());
  word = std::string("faces");
  ASSERT_TRUE(word);
  EXPECT_EQ(*word, "faces");
  EXPECT_EQ(word->size(), 5U);
  word = std::nullopt;
  EXPECT_FALSE(word);
}

TEST(Boxed, ACopyHasAValueOfItsOwn) {
  Boxed<std::string> word = std::string("faces");
  Boxed<std::string> copy = word;
  *copy += " too";
  EXPECT_EQ(*word, "faces");
  word = copy;
  copy = std::nullopt;
  EXPECT_EQ(*word, "faces too");
  const Boxed<std::string> moved = std::move(word);
  EXPECT_EQ(*moved, "faces too");
  copy = Boxed<std::string>(Boxed<std::string>());
  EXPECT_FALSE(copy);
}

TEST(Boxed, TakesAPointersRoom) { EXPECT_EQ(sizeof(Boxed<std::string>), sizeof(void*)); }

}  // namespace
}  // namespace outrigger
