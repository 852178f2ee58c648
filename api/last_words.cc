#include "api/last_words.h"

#include <algorithm>
#include <fstream>

#include "common/log.h"

namespace outrigger::api {
namespace {

constexpr size_t kMostBytes = 4000;

std::string text_of(const LastWords& words, const std::string& message) {
  nlohmann::json object{{"exitCode", static_cast<int>(words.code)},
                        {"reason", info(words.code).name},
                        {"message", message}};
  if (!words.progress.is_null()) object["progress"] = words.progress;
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string to_json_text(const LastWords& words) {
  std::string message = words.message;
  std::string text = text_of(words, message);
  constexpr size_t kLongestEscape = 6;
  while (text.size() > kMostBytes && !message.empty()) {
    const size_t surplus = (text.size() - kMostBytes) / kLongestEscape + 1;
    message.erase(message.size() - std::min(message.size(), surplus));
    text = text_of(words, message);
  }
  return text;
}

std::optional<LastWords> parse_last_words(std::string_view text) {
  const auto object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object() || !object.contains("exitCode") ||
      !object["exitCode"].is_number_integer())
    return std::nullopt;
  const auto row = find_exit_code(object["exitCode"].get<int>());
  if (!row) return std::nullopt;
  LastWords words{row->code, "", object.value("progress", nlohmann::json())};
  if (object.contains("message") && object["message"].is_string())
    words.message = object["message"].get<std::string>();
  return words;
}

void write_last_words(const std::filesystem::path& path, const LastWords& words) noexcept {
  try {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << to_json_text(words) << '\n' << std::flush;
    if (!file) log::warning("the last words could not be written to {}", path.string());
  } catch (const std::exception& error) {
    log::warning("the last words could not be written to {}: {}", path.string(), error.what());
  }
}

}  // namespace outrigger::api
