#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/file.h"
#include "tests/unit/api/sample_job.h"
#include "tests/unit/cli/run_command.h"

namespace outrigger::cli {
namespace {

/// std::cout goes to a full disk while this lives.
class FullDisk {
 public:
  FullDisk() : usual_(std::cout.rdbuf(full_.rdbuf())) {}
  ~FullDisk() {
    std::cout.rdbuf(usual_);
    std::cout.clear();
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  std::ofstream full_{"/dev/full"};
  std::streambuf* usual_;
};

TEST(Output, ThatIsLostIsAFailure) {
  for (const char* command : {"crd", "version"}) {
    const FullDisk disk;
    EXPECT_THROW(run_command({command}), IoError) << command;
  }
}

TEST(Output, AsJsonTakesNamesThatAreNotUtf8) {
  const TemporaryDirectory folder("outrigger-output");
  const std::string odd = (folder.path() / "o\xff").string();
  const std::string drawn = output_of({"generate", "faces", odd, "--identities", "2", "--train",
                                       "1", "--validation", "0", "--size", "32", "-o", "json"});
  EXPECT_EQ(nlohmann::json::parse(drawn).at("images"), 2);
  std::ofstream(odd + ".yaml") << api::sample_text();
  const std::string judged = output_of({"validate", odd + ".yaml", "-o", "json"});
  EXPECT_EQ(nlohmann::json::parse(judged).at(0).at("valid"), true);
}

}  // namespace
}  // namespace outrigger::cli
