#include "cli/option_checks.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>

#include "common/log.h"

namespace outrigger::cli {

CLI::Validator number_from(NumberRange range) {
  const std::string allowed = fmt::format("a number from {} to {}", range.least, range.most);
  const auto check = [range, allowed](const std::string& text) -> std::string {
    double number = 0;
    // In this way round NaN is outside of every range.
    if (CLI::detail::lexical_cast(text, number) && number >= range.least && number <= range.most)
      return "";
    return fmt::format("\"{}\" is not allowed; {} is needed", text, allowed);
  };
  return CLI::Validator(check, "");
}

CLI::Validator not_empty() {
  const auto check = [](const std::string& text) -> std::string {
    return text.empty() ? "an empty value is not allowed; the name of a file or folder is needed"
                        : "";
  };
  return CLI::Validator(check, "");
}

CLI::Validator no_folder(const std::string& name) {
  const auto check = [name](const std::string& text) -> std::string {
    std::error_code ignored;
    if (!std::filesystem::is_directory(text, ignored)) return "";
    return text + " is a folder; the name of a file is needed, such as " +
           (std::filesystem::path(text) / name).string();
  };
  return CLI::Validator(check, "");
}

}  // namespace outrigger::cli
