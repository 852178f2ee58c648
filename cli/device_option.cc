#include "cli/device_option.h"

#include <string>

namespace outrigger::cli {

void add_device_option(CLI::App& command, api::DeviceChoice& choice) {
  const auto choose = [&choice](const std::string& name) {
    choice = name == "cpu"    ? api::DeviceChoice::kCpu
             : name == "cuda" ? api::DeviceChoice::kCuda
                              : api::DeviceChoice::kAuto;
  };
  command
      .add_option_function<std::string>(
          "--device", choose, "auto (a GPU where spec.server.gpus asks for one), cpu or cuda")
      ->transform(CLI::IsMember({"auto", "cpu", "cuda"}, CLI::ignore_case));
}

}  // namespace outrigger::cli
