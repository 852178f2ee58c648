#include "training/checkpoint/model_card.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/error.h"

namespace outrigger::training {
namespace {

using nlohmann::json;

constexpr const char* kHeads[] = {"linear", "arcface", "none"};

/// Reads the metadata of one file.
class Reader {
 public:
  Reader(const std::map<std::string, std::string>& metadata, const std::string& source)
      : metadata_(metadata), source_(source) {}

  bool has(const char* key) const { return metadata_.contains(key); }

  const std::string& text(const char* key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) {
      throw InvalidInput(source_ + " does not say its '" + key +
                         "': it was not written by this program; name the model");
    }
    return found->second;
  }

  int64_t positive(const char* key) const {
    const std::string& value = text(key);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number <= 0)
      wrong(key, "a positive number");
    return number;
  }

  float real(const char* key) const {
    const json value = json::parse(text(key), nullptr, false);
    if (!value.is_number()) wrong(key, "a number");
    return value.get<float>();
  }

  std::vector<std::string> names(const char* key) const {
    const json value = json::parse(text(key), nullptr, false);
    const bool right = value.is_array() && std::all_of(value.begin(), value.end(),
                                                       [](const json& v) { return v.is_string(); });
    if (!right) wrong(key, "a JSON array of names");
    return value.get<std::vector<std::string>>();
  }

  [[noreturn]] void wrong(const char* key, const std::string& expected) const {
    throw InvalidInput(source_ + ": its '" + key + "' is '" + text(key).substr(0, 80) +
                       "' instead of " + expected);
  }

 private:
  const std::map<std::string, std::string>& metadata_;
  const std::string& source_;
};

nn::HeadKind head_of(const Reader& reader) {
  for (int kind = 0; kind < 3; ++kind) {
    if (reader.text("head") == kHeads[kind]) return static_cast<nn::HeadKind>(kind);
  }
  reader.wrong("head", "linear, arcface or none");
}

}  // namespace

std::map<std::string, std::string> to_metadata(const ModelCard& card, const nn::Graph& graph) {
  const nn::ModelOptions& model = card.model;
  std::map<std::string, std::string> metadata = {{"model", model.name},
                                                 {"height", std::to_string(model.height)},
                                                 {"width", std::to_string(model.width)},
                                                 {"channels", std::to_string(model.channels)},
                                                 {"classes", std::to_string(model.classes)},
                                                 {"head", kHeads[static_cast<size_t>(model.head)]}};
  if (!card.job.empty()) {
    metadata.erase("model");
    metadata["job"] = card.job;
  }
  if (model.embedding) metadata["embedding"] = std::to_string(*model.embedding);
  if (model.head == nn::HeadKind::kArcFace) {
    metadata["arcfaceMargin"] = json(model.arcface_margin).dump();
    metadata["arcfaceScale"] = json(model.arcface_scale).dump();
  }
  if (!card.classes.empty()) {
    // Folder names may be any bytes; what is not UTF-8 is replaced rather than refused.
    metadata["classNames"] =
        json(card.classes).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  if (const auto* normalize = std::get_if<nn::Normalize>(&graph.layers().front().operation)) {
    metadata["mean"] = json(normalize->mean).dump();
    metadata["deviation"] = json(normalize->deviation).dump();
  }
  return metadata;
}

ModelCard card_of(const std::map<std::string, std::string>& metadata, const std::string& source) {
  const Reader reader(metadata, source);
  ModelCard card;
  if (reader.has("job")) {
    card.job = reader.text("job");
  } else {
    card.model.name = reader.text("model");
  }
  card.model.height = reader.positive("height");
  card.model.width = reader.positive("width");
  card.model.channels = reader.positive("channels");
  card.model.head = head_of(reader);
  if (card.model.head != nn::HeadKind::kNone) card.model.classes = reader.positive("classes");
  if (reader.has("embedding")) card.model.embedding = reader.positive("embedding");
  if (card.model.head == nn::HeadKind::kArcFace) {
    card.model.arcface_margin = reader.real("arcfaceMargin");
    card.model.arcface_scale = reader.real("arcfaceScale");
  }
  if (reader.has("classNames")) card.classes = reader.names("classNames");
  return card;
}

}  // namespace outrigger::training
