#include "kube/object/object.h"

#include <algorithm>

namespace outrigger::kube {
namespace {

const Json* find(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

const Json* find_metadata(const Json& object, const char* name) {
  const Json* metadata = find(object, "metadata");
  return metadata == nullptr ? nullptr : find(*metadata, name);
}

std::string text_of(const Json* value) {
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<std::string> entry(const Json& object, const char* map, const std::string& name) {
  const Json* entries = find_metadata(object, map);
  const Json* value = entries == nullptr ? nullptr : find(*entries, name.c_str());
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

bool is_true(const Json* value) {
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::string name_of(const Json& object) { return text_of(find_metadata(object, "name")); }

std::string namespace_of(const Json& object) { return text_of(find_metadata(object, "namespace")); }

std::string uid_of(const Json& object) { return text_of(find_metadata(object, "uid")); }

std::string resource_version_of(const Json& object) {
  return text_of(find_metadata(object, "resourceVersion"));
}

ObjectKey key_of(const Json& object) { return {namespace_of(object), name_of(object)}; }

std::optional<std::string> label(const Json& object, const std::string& name) {
  return entry(object, "labels", name);
}

std::optional<std::string> annotation(const Json& object, const std::string& name) {
  return entry(object, "annotations", name);
}

void set_label(Json& object, const std::string& name, const std::string& value) {
  object["metadata"]["labels"][name] = value;
}

void set_annotation(Json& object, const std::string& name, const std::string& value) {
  object["metadata"]["annotations"][name] = value;
}

bool is_deleting(const Json& object) {
  return !text_of(find_metadata(object, "deletionTimestamp")).empty();
}

std::optional<OwnerReference> controller_of(const Json& object) {
  const Json* owners = find_metadata(object, "ownerReferences");
  if (owners == nullptr || !owners->is_array()) return std::nullopt;
  for (const Json& owner : *owners) {
    if (!is_true(find(owner, "controller"))) continue;
    return OwnerReference{text_of(find(owner, "apiVersion")), text_of(find(owner, "kind")),
                          text_of(find(owner, "name")), text_of(find(owner, "uid"))};
  }
  return std::nullopt;
}

bool is_controlled_by(const Json& object, const std::string& uid) {
  const auto owner = controller_of(object);
  return owner && !uid.empty() && owner->uid == uid;
}

void set_controller(Json& object, const OwnerReference& owner) {
  Json& owners = object["metadata"]["ownerReferences"];
  if (!owners.is_array()) owners = Json::array();
  owners.erase(std::remove_if(owners.begin(), owners.end(),
                              [&](const Json& existing) {
                                return text_of(find(existing, "uid")) == owner.uid;
                              }),
               owners.end());
  owners.push_back({{"apiVersion", owner.api_version},
                    {"kind", owner.kind},
                    {"name", owner.name},
                    {"uid", owner.uid},
                    {"controller", true},
                    {"blockOwnerDeletion", true}});
}

bool is_older_version(const std::string& a, const std::string& b) {
  if (!is_number(a) || !is_number(b)) return false;
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

std::string selector_of(const Json& labels) {
  std::string selector;
  for (const auto& [name, value] : labels.items()) {
    if (!selector.empty()) selector += ',';
    selector += name + '=' + text_of(&value);
  }
  return selector;
}

}  // namespace outrigger::kube
