#include "cli/device_option.h"

#include <map>
#include <string>

namespace outrigger::cli {

void add_device_option(CLI::App& command, api::DeviceChoice& choice) {
  const std::map<std::string, api::DeviceChoice> devices{{"auto", api::DeviceChoice::kAuto},
                                                         {"cpu", api::DeviceChoice::kCpu},
                                                         {"cuda", api::DeviceChoice::kCuda}};
  command
      .add_option("--device", choice,
                  "auto (a GPU where spec.server.gpus asks for one), cpu or cuda")
      ->transform(CLI::CheckedTransformer(devices, CLI::ignore_case));
}

}  // namespace outrigger::cli
