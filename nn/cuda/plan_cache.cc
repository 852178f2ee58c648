#include "nn/cuda/plan_cache.h"

#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/error.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/log.h"

namespace outrigger::nn::cuda {
namespace {

constexpr std::string_view kFirstLine = "outrigger-gpu-plans 3";
constexpr std::string_view kDevice = "device ";
constexpr std::string_view kChecksum = "sha256 ";

std::string key_of(const ConvolutionRequest& request) {
  const ConvolutionShape& s = request.shape;
  std::string key = std::to_string(static_cast<int>(request.pass));
  for (const int64_t number :
       {static_cast<int64_t>(request.epilogue), static_cast<int64_t>(s.type), int64_t{s.samples},
        int64_t{s.in_channels}, int64_t{s.out_channels}, int64_t{s.groups}, int64_t{s.in_height},
        int64_t{s.in_width}, int64_t{s.out_height}, int64_t{s.out_width}, int64_t{s.kernel},
        int64_t{s.stride}, int64_t{s.padding}})
    key += "," + std::to_string(number);
  return key;
}

std::string checksum(const std::string& text) {
  return to_hex(sha256(std::as_bytes(std::span(text))));
}

// The next line of what is left, without its end.
std::string_view take_line(std::string_view& left) {
  const size_t end = left.find('\n');
  const std::string_view line = left.substr(0, end);
  left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
  return line;
}

}  // namespace

PlanCache::PlanCache(std::filesystem::path file, std::string device)
    : file_(std::move(file)), device_(std::move(device)) {
  if (std::filesystem::exists(file_)) read();
}

void PlanCache::read() {
  const auto leave = [&](const std::string& why) {
    plans_.clear();
    log::info("{} is left aside: {}; plans are timed anew", file_.string(), why);
  };
  std::string all;
  try {
    all = read_file(file_);
  } catch (const IoError& error) {
    return leave(error.what());
  }
  const size_t last = all.rfind(kChecksum);
  if (!all.starts_with(kFirstLine) || last == std::string::npos)
    return leave("it is no file of plans of this version");
  const std::string body = all.substr(0, last);
  if (all.substr(last) != std::string(kChecksum) + checksum(body) + "\n")
    return leave("it is damaged");
  std::string_view left = body;
  if (take_line(left) != kFirstLine) return leave("it is of another version");
  if (const std::string_view of = take_line(left); of != std::string(kDevice) + device_)
    return leave("it is of another device (\"" + std::string(of) + "\")");
  while (!left.empty()) {
    const std::string_view line = take_line(left);
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) return leave("it is damaged");
    plans_[std::string(line.substr(0, space))] = line.substr(space + 1);
  }
}

std::string PlanCache::text() const {
  std::string text = std::string(kFirstLine) + "\n" + std::string(kDevice) + device_ + "\n";
  for (const auto& [key, plan] : plans_) text.append(key).append(" ").append(plan).append("\n");
  return text + std::string(kChecksum) + checksum(text) + "\n";
}

std::optional<std::string> PlanCache::find(const ConvolutionRequest& request) const {
  const auto found = plans_.find(key_of(request));
  if (found == plans_.end()) return std::nullopt;
  return found->second;
}

void PlanCache::put(const ConvolutionRequest& request, const std::string& plan) {
  ensure(plan.find('\n') == std::string::npos, "a plan's name is one line");
  plans_[key_of(request)] = plan;
  const auto folder = file_.parent_path();
  std::error_code unknown;
  if (!writable_ || (!folder.empty() && !std::filesystem::exists(folder, unknown))) return;
  try {
    write_file_atomically(file_, text());
  } catch (const IoError& error) {
    writable_ = false;
    log::warning("plans will be timed again next time: {}", error.what());
  }
}

}  // namespace outrigger::nn::cuda
