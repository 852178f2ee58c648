#include "nn/cuda/plan_cache.h"

#include <gtest/gtest.h>

#include "common/file.h"

namespace outrigger::nn::cuda {
namespace {

constexpr const char* kDevice = "H200, driver 13000, cuDNN 91300, deterministic";

ConvolutionRequest convolution(uint32_t channels, ConvolutionPass pass = ConvolutionPass::kForward,
                               Epilogue epilogue = Epilogue::kNone) {
  ConvolutionRequest request{.pass = pass, .epilogue = epilogue};
  request.shape.samples = 64;
  request.shape.in_channels = request.shape.out_channels = channels;
  request.shape.kernel = 3;
  return request;
}

class PlanCacheFile : public ::testing::Test {
 protected:
  void SetUp() override {
    PlanCache cache(file_, kDevice);
    cache.put(convolution(64), "eng3_k2=5");
    cache.put(convolution(64, ConvolutionPass::kWeightGradient), "eng0");
  }
  size_t plans_of(const char* device = kDevice) const { return PlanCache(file_, device).size(); }

  const TemporaryDirectory folder_{"outrigger-plans"};
  const std::filesystem::path file_ = folder_.path() / "plans.txt";
};

TEST_F(PlanCacheFile, GivesBackWhatWasPut) {
  const PlanCache cache(file_, kDevice);
  EXPECT_EQ(cache.find(convolution(64)), "eng3_k2=5");
  EXPECT_EQ(cache.find(convolution(64, ConvolutionPass::kWeightGradient)), "eng0");
  EXPECT_EQ(cache.find(convolution(64, ConvolutionPass::kInputGradient)), std::nullopt);
  EXPECT_EQ(cache.find(convolution(128)), std::nullopt);
}

TEST_F(PlanCacheFile, IsWrittenOnceItsFolderIsThere) {
  const auto folder = folder_.path() / "no run";
  PlanCache cache(folder / "plans.txt", kDevice);
  cache.put(convolution(64), "eng3");
  EXPECT_EQ(cache.find(convolution(64)), "eng3");
  EXPECT_FALSE(std::filesystem::exists(folder));
  std::filesystem::create_directory(folder);
  cache.put(convolution(128), "eng5");
  EXPECT_EQ(PlanCache(folder / "plans.txt", kDevice).size(), 2u);
}

TEST_F(PlanCacheFile, TellsEpiloguesApart) {
  const auto fused = convolution(64, ConvolutionPass::kForward, Epilogue::kStatistics);
  EXPECT_EQ(PlanCache(file_, kDevice).find(fused), std::nullopt);
  PlanCache(file_, kDevice).put(fused, "eng5");
  const PlanCache cache(file_, kDevice);
  EXPECT_EQ(cache.find(fused), "eng5");
  EXPECT_EQ(cache.find(convolution(64)), "eng3_k2=5");
}

TEST_F(PlanCacheFile, IsLeftAsideWhereItIsOfAnotherDevice) {
  EXPECT_EQ(plans_of("A100, driver 13000, cuDNN 91300, deterministic"), 0u);
  EXPECT_EQ(plans_of(), 2u);
}

// A changed byte, or a file that ends early, wherever that is.
TEST_F(PlanCacheFile, IsLeftAsideWhereItIsDamaged) {
  const std::string whole = read_file(file_);
  for (size_t i = 0; i < whole.size(); i += 7) {
    std::string changed = whole;
    changed[i] = changed[i] == '7' ? '8' : '7';
    write_file_atomically(file_, changed);
    ASSERT_EQ(plans_of(), 0u) << "byte " << i;
    write_file_atomically(file_, whole.substr(0, i));
    ASSERT_EQ(plans_of(), 0u) << "length " << i;
  }
  write_file_atomically(file_, whole);
  EXPECT_EQ(plans_of(), 2u);
}

TEST_F(PlanCacheFile, IsWrittenAnewWhereItWasLeftAside) {
  write_file_atomically(file_, "something else\n");
  PlanCache(file_, kDevice).put(convolution(8), "eng1");
  EXPECT_EQ(PlanCache(file_, kDevice).find(convolution(8)), "eng1");
}

TEST(PlanCacheWithoutFolder, KeepsPlansInMemory) {
  PlanCache cache("/nonexistent/folder/plans.txt", kDevice);
  cache.put(convolution(8), "eng1");
  EXPECT_EQ(cache.find(convolution(8)), "eng1");
}

}  // namespace
}  // namespace outrigger::nn::cuda
