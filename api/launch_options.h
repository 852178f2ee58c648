#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/launch.h"

namespace outrigger::api {

/// One thing that a launcher may tell: its flag, its variable, and how it goes into and comes out
/// of a Launch.
struct LaunchOption {
  enum class For { kServer, kWorker, kBoth };

  std::string_view flag;      // "--server"
  std::string_view variable;  // "OUTRIGGER_SERVER"
  std::string_view value;     // "HOST:PORT" in the help; empty: a switch
  std::string_view help;
  For whom;
  /// The flag may be given several times; the variable has all values, with commas between them.
  bool is_list = false;
  /// Throws InvalidInput with what is allowed, without saying where the value came from.
  std::function<void(Launch&, const std::string&)> set;
  /// One value for each time that the flag is given.
  std::function<std::vector<std::string>(const Launch&)> get;

  bool is_for(Role role) const {
    return whom == For::kBoth || (whom == For::kServer) == (role == Role::kServer);
  }
  bool is_switch() const { return value.empty(); }
};

/// All of them, in the order of the help. Static.
std::span<const LaunchOption> launch_options();

}  // namespace outrigger::api
