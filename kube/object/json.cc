#include "kube/object/json.h"

#include <utility>

#include "common/error.h"
#include "kube/object/field_filter.h"
#include "kube/object/quick_json.h"

namespace outrigger::kube {
namespace {

// Builds a Json from the parser's events, but for what is not wanted.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const FieldFilter& filter) : filter_(filter) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool v) override { return value(v); }
  bool number_integer(number_integer_t v) override { return value(v); }
  bool number_unsigned(number_unsigned_t v) override { return value(v); }
  bool number_float(number_float_t v, const string_t&) override { return value(v); }
  bool string(string_t& v) override { return value(std::move(v)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (skipping_ > 0) return true;
    Level& level = open_.back();
    level.key = std::move(name);
    skip_next_ = is_dropped(level);
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    failure = std::string(error.what()) + " (byte " + std::to_string(position) + ")";
    return false;
  }

  Json result;
  std::string failure;

 private:
  struct Level {
    Json* node;
    std::string key;  // of the member that comes next, in an object
  };

  bool is_dropped(const Level& level) const {
    return open_.size() >= 2 && !filter_.passes(open_[open_.size() - 2].key, level.key);
  }

  template <typename Value>
  bool value(Value&& v) {
    if (skipping_ == 0 && !std::exchange(skip_next_, false)) place(std::forward<Value>(v));
    return true;
  }

  bool open(Json empty) {
    if (skipping_ > 0 || std::exchange(skip_next_, false)) {
      ++skipping_;
    } else {
      open_.push_back({place(std::move(empty)), {}});
    }
    return true;
  }

  bool close() {
    if (skipping_ > 0) {
      --skipping_;
    } else {
      open_.pop_back();
    }
    return true;
  }

  template <typename Value>
  Json* place(Value&& v) {
    if (open_.empty()) {
      result = std::forward<Value>(v);
      return &result;
    }
    Json& parent = *open_.back().node;
    if (parent.is_array()) {
      parent.push_back(std::forward<Value>(v));
      return &parent.back();
    }
    Json& slot = parent[open_.back().key];
    slot = std::forward<Value>(v);
    return &slot;
  }

  const FieldFilter& filter_;
  std::vector<Level> open_;  // the containers that enclose what comes next
  int skipping_ = 0;         // how many containers deep in what is dropped
  bool skip_next_ = false;
};

}  // namespace

Json parse_json(std::string_view text, const std::vector<DroppedField>& dropped,
                std::span<const KeptFields> kept) {
  const FieldFilter filter{dropped, kept};
  if (auto quick = parse_quickly(text, filter)) return std::move(*quick);
  Builder builder(filter);
  if (!Json::sax_parse(text, &builder)) {
    throw IoError("reading JSON '" + std::string(text.substr(0, 60)) +
                  (text.size() > 60 ? "…" : "") + "': " + builder.failure);
  }
  return std::move(builder.result);
}

}  // namespace outrigger::kube
