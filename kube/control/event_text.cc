#include "kube/control/event_text.h"

#include "kube/object/json.h"

namespace outrigger::kube {
namespace {

// One JSON object, member by member.
class ObjectText {
 public:
  ObjectText() { text_.reserve(1024); }
  void add(std::string_view name, std::string_view value) {
    begin(name);
    append_text(text_, value);
  }
  void add_json(std::string_view name, std::string_view json) {
    begin(name);
    text_ += json;
  }
  std::string finish() && {
    text_ += '}';
    return std::move(text_);
  }

 private:
  // Names are plain words.
  void begin(std::string_view name) {
    text_ += text_.empty() ? "{\"" : ",\"";
    text_.append(name).append("\":");
  }

  std::string text_;
};

std::string reference_to(const EventSubject& subject) {
  ObjectText text;
  text.add("apiVersion", subject.api_version);
  text.add("kind", subject.kind);
  text.add("name", subject.key.name);
  text.add("uid", subject.uid);
  if (!subject.key.ns.empty()) text.add("namespace", subject.key.ns);
  if (!subject.resource_version.empty()) text.add("resourceVersion", subject.resource_version);
  return std::move(text).finish();
}

}  // namespace

std::string event_text(const EventSubject& subject, const Event& event, const EventTags& tags) {
  ObjectText metadata;
  metadata.add("name", tags.name);
  metadata.add("namespace", tags.ns);
  ObjectText text;
  text.add("apiVersion", kEvents.api_version());
  text.add("kind", kEvents.kind);
  text.add_json("metadata", std::move(metadata).finish());
  text.add("eventTime", format_micro_time(tags.time));
  text.add("reportingController", tags.from.controller);
  text.add("reportingInstance", tags.from.instance);
  text.add("type", event.type == EventType::kNormal ? "Normal" : "Warning");
  text.add("reason", event.reason);
  text.add("action", event.action);
  text.add("note", event.note);
  text.add_json("regarding", reference_to(subject));
  if (!tags.series.empty()) text.add_json("series", tags.series);
  return std::move(text).finish();
}

}  // namespace outrigger::kube
