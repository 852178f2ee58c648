#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "common/error.h"
#include "nn/safetensors.h"

namespace outrigger::nn {
namespace {

using Json = nlohmann::json;

struct TypeSize {
  const char* type;
  int64_t bytes;
};
constexpr std::array kTypes{TypeSize{"F64", 8},  TypeSize{"F32", 4}, TypeSize{"F16", 2},
                            TypeSize{"BF16", 2}, TypeSize{"I64", 8}, TypeSize{"I32", 4},
                            TypeSize{"I16", 2},  TypeSize{"I8", 1},  TypeSize{"U64", 8},
                            TypeSize{"U32", 4},  TypeSize{"U16", 2}, TypeSize{"U8", 1},
                            TypeSize{"BOOL", 1}};

class HeaderParser {
 public:
  HeaderParser(uint64_t data_size, const std::string& file) : data_size_(data_size), file_(file) {}

  SafetensorsHeader parse(std::span<const std::byte> text) const {
    const Json json = parse_json(text);
    if (!json.is_object()) fail("its header is no JSON object");
    SafetensorsHeader header;
    for (const auto& entry : json.items()) {
      if (entry.key() == "__metadata__") {
        header.metadata = parse_metadata(entry.value());
      } else {
        header.tensors.push_back(parse_tensor(entry.key(), entry.value()));
      }
    }
    std::sort(header.tensors.begin(), header.tensors.end(),
              [](const StoredTensor& a, const StoredTensor& b) {
                return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
              });
    check_that_data_is_covered(header.tensors);
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InvalidInput(file_ + ": " + what); }
  [[noreturn]] void fail(const std::string& tensor, const std::string& what) const {
    fail("tensor \"" + tensor + "\" " + what);
  }

  // nlohmann keeps the last of two equal keys; here one of them would be a tensor that nobody sees.
  Json parse_json(std::span<const std::byte> text) const {
    std::set<std::string> names;
    std::string doubled;
    const auto callback = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (depth == 1 && event == Json::parse_event_t::key &&
          !names.insert(parsed.get<std::string>()).second) {
        doubled = parsed.get<std::string>();
      }
      return true;
    };
    const auto* first = reinterpret_cast<const char*>(text.data());
    Json json;
    try {
      json = Json::parse(first, first + text.size(), callback);
    } catch (const Json::exception& error) {
      fail(std::string("its header is no JSON: ") + error.what());
    }
    if (!doubled.empty()) fail(doubled, "is named twice");
    return json;
  }

  std::map<std::string, std::string> parse_metadata(const Json& json) const {
    std::map<std::string, std::string> metadata;
    if (!json.is_object()) fail("its __metadata__ is no object of strings");
    for (const auto& entry : json.items()) {
      if (!entry.value().is_string()) fail("its __metadata__ is no object of strings");
      metadata[entry.key()] = entry.value().get<std::string>();
    }
    return metadata;
  }

  uint64_t parse_number(const std::string& tensor, const Json& json) const {
    if (!json.is_number_unsigned())
      fail(tensor, "has a size or offset that is no whole number of at least 0");
    return json.get<uint64_t>();
  }

  StoredTensor parse_tensor(const std::string& name, const Json& json) const {
    StoredTensor tensor;
    tensor.name = name;
    if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() ||
        !json.contains("shape") || !json["shape"].is_array() || !json.contains("data_offsets") ||
        !json["data_offsets"].is_array() || json["data_offsets"].size() != 2) {
      fail(name, "lacks dtype, shape or two data_offsets");
    }
    tensor.type = json["dtype"].get<std::string>();
    for (const Json& size : json["shape"]) {
      const uint64_t value = parse_number(name, size);
      if (value > uint64_t{1} << 48)
        fail(name, "has an impossible size of " + std::to_string(value));
      tensor.shape.push_back(static_cast<int64_t>(value));
    }
    tensor.begin = parse_number(name, json["data_offsets"][0]);
    tensor.end = parse_number(name, json["data_offsets"][1]);
    check_size(tensor);
    return tensor;
  }

  void check_size(const StoredTensor& tensor) const {
    if (tensor.begin > tensor.end || tensor.end > data_size_) {
      fail(tensor.name, "claims bytes " + std::to_string(tensor.begin) + " to " +
                            std::to_string(tensor.end) + " of " + std::to_string(data_size_) +
                            "; is the file cut short?");
    }
    const auto type = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeSize& known) {
      return tensor.type == known.type;
    });
    if (type == kTypes.end()) fail(tensor.name, "has an unknown dtype \"" + tensor.type + "\"");
    int64_t bytes = type->bytes;
    bool fits = true;
    for (const int64_t size : tensor.shape)
      fits = fits && !__builtin_mul_overflow(bytes, size, &bytes);
    if (!fits || static_cast<uint64_t>(bytes) != tensor.end - tensor.begin) {
      fail(tensor.name, "has shape " + to_string(tensor.shape) + " of " + tensor.type +
                            ", which does not fit its " +
                            std::to_string(tensor.end - tensor.begin) + " bytes");
    }
  }

  void check_that_data_is_covered(const std::vector<StoredTensor>& tensors) const {
    uint64_t end = 0;
    for (const StoredTensor& tensor : tensors) {
      if (tensor.begin < end) fail(tensor.name, "overlaps the one before it");
      if (tensor.begin > end) fail(tensor.name, "leaves a hole before it");
      end = tensor.end;
    }
    if (end != data_size_) {
      fail("its tensors end at byte " + std::to_string(end) + " of " + std::to_string(data_size_));
    }
  }

  const uint64_t data_size_;
  const std::string& file_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> json, uint64_t data_size,
                                           const std::string& file) {
  return HeaderParser(data_size, file).parse(json);
}

}  // namespace outrigger::nn
