#pragma once

#include <CLI/CLI.hpp>

#include "api/launch.h"

namespace outrigger::cli {

/// --device: what trains.
void add_device_option(CLI::App& command, api::DeviceChoice& choice);

}  // namespace outrigger::cli
