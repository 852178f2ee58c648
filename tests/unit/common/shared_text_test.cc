#include "common/shared_text.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace outrigger {
namespace {

TEST(SharedTextTest, EqualOnesAreOneAndReadAsTheirText) {
  const std::string text = "a text that is too long to lie within a string";
  const SharedText first(text);
  const SharedText second(std::string_view{text});
  EXPECT_EQ(first, second);
  EXPECT_EQ(&first.get(), &second.get());
  EXPECT_EQ(first.get(), text);
  const std::string& as_string = first;
  EXPECT_EQ(as_string, text);
  EXPECT_NE(first, SharedText(std::string_view("another")));
  EXPECT_TRUE(first == text);
}

TEST(SharedTextTest, TheEmptyTextIsWhatNothingIsGiven) {
  EXPECT_EQ(SharedText(), SharedText(std::string()));
  EXPECT_EQ(SharedText().get(), "");
}

TEST(SharedTextTest, LivesAsLongAsAnyOfItsOwners) {
  const size_t before = SharedText::count();
  {
    auto first = std::make_unique<SharedText>(std::string_view("only here"));
    const SharedText copy = *first;
    first.reset();
    EXPECT_EQ(copy.get(), "only here");
    EXPECT_EQ(SharedText::count(), before + 1);
  }
  EXPECT_EQ(SharedText::count(), before);
}

TEST(SharedTextTest, ThreadsMakeAndDropTheSameTexts) {
  const size_t before = SharedText::count();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 20'000; ++i) {
        const std::string text = std::to_string(i % 3);
        const SharedText one(text);
        ASSERT_EQ(one.get(), text);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(SharedText::count(), before);
}

}  // namespace
}  // namespace outrigger
