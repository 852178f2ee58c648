#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/file.h"
#include "tests/unit/cli/run_command.h"

namespace outrigger::cli {

/// A run's folder, and what `report` makes of it.
class ReportTest : public testing::Test {
 protected:
  /// Of a second, in which the device waited so long.
  std::string step(uint64_t number, double waited, const std::string& cause = "Decode") const {
    return R"({"type":"step","step":)" + std::to_string(number) +
           R"(,"loss":1.5,"accuracy":0.5,"samplesPerSecond":100,"seconds":1.0,"waitedForInput":)" +
           std::to_string(waited) + R"(,"waitedForGradients":0,"workers":1,"plan":1,"stall":{")" +
           cause + R"(":)" + std::to_string(waited) + R"(,"Optimizer":0.01}})" + "\n";
  }
  void write(const std::string& text, const char* file = "metrics.jsonl") const {
    std::filesystem::create_directories(folder());
    std::ofstream(folder() / file) << text;
  }
  std::filesystem::path folder() const { return folder_.path() / "faces <1>"; }
  std::string page() const {
    output_of({"report", folder().string()});
    return read_file(folder() / "report.html");
  }

  TemporaryDirectory folder_{"outrigger-report"};
};

}  // namespace outrigger::cli
