#include <gtest/gtest.h>

#include <fstream>
#include <iostream>

#include "common/error.h"
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

}  // namespace
}  // namespace outrigger::cli
