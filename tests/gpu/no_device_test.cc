#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/child_process.h"
#include "common/file.h"
#include "nn/cuda/backend.h"
#include "nn/cuda/errors.h"
#include "tests/unit/api/sample_job.h"

/// What the server says, and how it ends, when it is to train on a GPU and there is none.
namespace outrigger {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// The words for a machine without a GPU, or nothing where it has one.
std::string why_none() {
  try {
    nn::cuda::make_cuda_backend();
  } catch (const nn::cuda::NoDevice& error) {
    return error.what();
  }
  return "";
}

struct Ended {
  int status = -1;
  std::string log;
  nlohmann::json last_words;
};

Ended run_server(const std::vector<std::string>& more) {
  const TemporaryDirectory folder("outrigger-no-device");
  write_file_atomically(folder.path() / "job.yaml", api::sample_text());
  std::vector<std::string> arguments{"--job",
                                     (folder.path() / "job.yaml").string(),
                                     "--termination-file",
                                     (folder.path() / "words").string(),
                                     "--port",
                                     "0",
                                     "--status-port",
                                     "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  ChildProcess server(OUTRIGGER_SERVER, arguments, folder.path() / "log");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  Ended ended;
  while (std::chrono::steady_clock::now() < deadline) {
    if (const auto status = server.poll()) {
      ended.status = *status;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ended.log = read_file(folder.path() / "log");
  ended.last_words = nlohmann::json::parse(read_file(folder.path() / "words"));
  return ended;
}

TEST(ServerWithoutGpu, SaysWhatIsMissingAndEndsWithItsOwnCode) {
  const std::string why = why_none();
  if (why.empty()) GTEST_SKIP() << "this machine has a GPU";
  const Ended ended = run_server({"--device", "cuda"});
  EXPECT_EQ(ended.status, nn::cuda::is_built() ? 24 : 11) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr(why));
  EXPECT_THAT(ended.log, AnyOf(HasSubstr("no NVIDIA driver answers"), HasSubstr("finds no GPU"),
                               HasSubstr("this build has no CUDA")));
  EXPECT_EQ(ended.last_words.at("message"), why);
}

}  // namespace
}  // namespace outrigger
