#include "kube/cache/watch.h"

#include <exception>

#include "common/error.h"
#include "http/message.h"
#include "kube/cache/line_decoder.h"
#include "kube/client/retry.h"
#include "kube/object/object.h"

namespace outrigger::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How much later than asked the server may end a watch.
constexpr seconds kGrace{30};

std::string target_of(const WatchOptions& options, seconds lasting) {
  std::string target = options.resource.path(options.selection.ns);
  target +=
      "?watch=true&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(lasting.count());
  const auto add = [&target](const char* name, const std::string& value) {
    if (!value.empty()) target += name + http::percent_encode(value);
  };
  add("&resourceVersion=", options.resource_version);
  add("&labelSelector=", options.selection.labels);
  add("&fieldSelector=", options.selection.fields);
  return target;
}

seconds draw_length(const WatchOptions& options) {
  const auto range = static_cast<double>((options.longest - options.shortest).count());
  return options.shortest + seconds(static_cast<int64_t>(range * random_chance()));
}

std::vector<DroppedField> without_body(std::vector<DroppedField> dropped) {
  for (const char* part : {"spec", "status"}) dropped.push_back({"object", part});
  return dropped;
}

// Follows one stream and remembers how far it came.
class Follower {
 public:
  Follower(const WatchOptions& options, const std::function<void(Change)>& change)
      : options_(options),
        change_(change),
        head_(without_body(options.dropped)),
        decoder_(options.longest_line),
        end_{WatchEnd::Why::kEnded, options.resource_version} {}

  // Exceptions must not pass through the library that calls this.
  bool take(std::string_view piece) noexcept {
    try {
      return decoder_.feed(piece, [this](std::string_view line) { return take_line(line); });
    } catch (...) {
      failure_ = std::current_exception();
      return false;
    }
  }

  WatchEnd finish() {
    if (caller_failed_) std::rethrow_exception(failure_);
    if (!failure_) return std::move(end_);
    try {
      std::rethrow_exception(failure_);
    } catch (const IoError& error) {
      return expired(error.what());
    }
  }

  WatchEnd& end() { return end_; }

 private:
  bool take_line(std::string_view text) {
    if (take_known(text)) return true;
    WatchLine line = parse_watch_line(text, options_.dropped, options_.kept);
    if (line.kind == WatchLine::Kind::kError) {
      end_.error = ApiError::from("watching " + options_.resource.plural, line.object);
      end_ = expired(end_.error->what());
      return false;
    }
    const std::string version = resource_version_of(line.object);
    if (line.kind == WatchLine::Kind::kChange) tell({line.type, std::move(line.object)});
    came_to(version);
    return true;
  }

  // False where the line has to be read whole.
  bool take_known(std::string_view text) {
    // So API servers begin the line of what is new, whose head then need not be read twice.
    if (!options_.known || text.starts_with(R"({"type":"ADDED",)")) return false;
    WatchLine head = parse_watch_line(text, head_, options_.kept);
    if (head.kind != WatchLine::Kind::kChange || head.type != ChangeType::kModified) return false;
    auto known = options_.known(head.object);
    if (known == nullptr) return false;
    const std::string version = resource_version_of(head.object);
    tell({head.type, std::move(head.object), std::move(known)});
    came_to(version);
    return true;
  }

  void tell(Change change) {
    caller_failed_ = true;
    change_(std::move(change));
    caller_failed_ = false;
  }

  // Never back: what came late or twice says nothing about how far the stream is.
  void came_to(const std::string& version) {
    if (!version.empty() && !is_older_version(version, end_.resource_version))
      end_.resource_version = version;
  }

  WatchEnd expired(const std::string& reason) {
    return {WatchEnd::Why::kExpired, end_.resource_version, end_.error, reason};
  }

  const WatchOptions& options_;
  const std::function<void(Change)>& change_;
  const std::vector<DroppedField> head_;  // what a line's object is without at first
  LineDecoder decoder_;
  WatchEnd end_;
  std::exception_ptr failure_;
  bool caller_failed_ = false;  // true while the caller's function runs, and if it threw
};

}  // namespace

WatchLine parse_watch_line(std::string_view text, const std::vector<DroppedField>& dropped,
                           std::span<const KeptFields> kept) {
  Json event = parse_json(text, dropped, kept);
  const auto type = event.is_object() ? event.find("type") : event.end();
  const auto object = event.is_object() ? event.find("object") : event.end();
  if (type == event.end() || !type->is_string() || object == event.end() || !object->is_object())
    throw IoError("a watch event without type and object: " + std::string(text.substr(0, 60)));
  const auto& name = type->get_ref<const std::string&>();
  using Kind = WatchLine::Kind;
  if (name == "BOOKMARK") return {Kind::kBookmark, {}, std::move(*object)};
  if (name == "ERROR") return {Kind::kError, {}, std::move(*object)};
  if (name == "ADDED") return {Kind::kChange, ChangeType::kAdded, std::move(*object)};
  if (name == "MODIFIED") return {Kind::kChange, ChangeType::kModified, std::move(*object)};
  if (name == "DELETED") return {Kind::kChange, ChangeType::kDeleted, std::move(*object)};
  throw IoError("a watch event of the unknown type '" + name + "'");
}

WatchEnd watch(Client& client, const WatchOptions& options,
               const std::function<void(Change)>& change, const std::stop_token& stop) {
  const seconds lasting = draw_length(options);
  Follower follower(options, change);
  try {
    const auto result = client.stream(
        target_of(options, lasting),
        {options.silence, milliseconds(lasting + kGrace), options.selection.form, options.gather},
        [&follower](std::string_view piece) { return follower.take(piece); }, stop);
    if (result) return follower.finish();
    const bool expired = result.error().expired();
    return {expired ? WatchEnd::Why::kExpired : WatchEnd::Why::kRefused, options.resource_version,
            result.error(), result.error().what()};
  } catch (const IoError& error) {
    follower.end().reason = error.what();
    return follower.finish();
  }
}

}  // namespace outrigger::kube
