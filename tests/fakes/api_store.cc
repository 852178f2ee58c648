#include "tests/fakes/api_store.h"

#include <algorithm>
#include <sstream>

#include "kube/object/object.h"
#include "kube/object/timestamp.h"

namespace outrigger::fakes {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// The text at "spec.nodeName"; empty if there is none.
std::string field(const Json& object, const std::string& path) {
  const Json* node = &object;
  for (const std::string& part : split(path, '.')) {
    if (!node->is_object() || !node->contains(part)) return {};
    node = &node->at(part);
  }
  return node->is_string() ? node->get<std::string>() : node->dump();
}

struct Term {
  std::string name;
  std::string value;
  bool equal = true;
  bool exists_only = false;
};

std::vector<Term> terms_of(const std::string& selector) {
  std::vector<Term> terms;
  for (const std::string& text : split(selector, ',')) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      terms.push_back({.name = text, .exists_only = true});
      continue;
    }
    const bool negated = equals > 0 && text[equals - 1] == '!';
    terms.push_back(
        {text.substr(0, equals - (negated ? 1 : 0)), text.substr(equals + 1), !negated});
  }
  return terms;
}

ApiStore::Answer not_found(const ApiPath& path) {
  return ApiStore::error(404, "NotFound", path.plural + " \"" + path.key.name + "\" not found");
}

ApiStore::Answer conflict(const ApiPath& path, const std::string& why) {
  return ApiStore::error(
      409, "Conflict",
      "Operation cannot be fulfilled on " + path.plural + " \"" + path.key.name + "\": " + why);
}

Json scale_of(const Json& object) {
  return {{"apiVersion", "autoscaling/v1"},
          {"kind", "Scale"},
          {"metadata", object.at("metadata")},
          {"spec", {{"replicas", object.value("/spec/replicas"_json_pointer, 0)}}}};
}

}  // namespace

std::optional<ApiPath> ApiPath::parse(const std::string& text) {
  const auto parts = split(text, '/');  // the first is empty
  size_t at = 1;
  const auto next = [&] { return at < parts.size() ? parts[at++] : std::string(); };
  const std::string root = next();
  if (root != "api" && root != "apis") return std::nullopt;
  ApiPath path;
  const std::string group = root == "apis" ? next() : "";
  const std::string version = next();
  path.api_version = group.empty() ? version : group + "/" + version;
  path.plural = next();
  if (path.plural == "namespaces" && at + 1 < parts.size()) {
    path.key.ns = next();
    path.plural = next();
  }
  if (path.plural.empty()) return std::nullopt;
  path.key.name = next();
  path.subresource = next();
  path.collection = group + "/" + version + "/" + path.plural;
  return path;
}

bool ApiSelection::matches(const Json& object) const {
  if (object.is_null()) return false;
  if (!ns.empty() && kube::namespace_of(object) != ns) return false;
  for (const Term& term : terms_of(labels)) {
    const auto value = kube::label(object, term.name);
    if (term.exists_only ? !value : (value == term.value) != term.equal) return false;
  }
  for (const Term& term : terms_of(fields)) {
    if ((field(object, term.name) == term.value) != term.equal) return false;
  }
  return true;
}

ApiStore::Answer ApiStore::error(int status, const std::string& reason,
                                 const std::string& message) {
  return {status,
          {{"kind", "Status"},
           {"apiVersion", "v1"},
           {"status", "Failure"},
           {"code", status},
           {"reason", reason},
           {"message", message}}};
}

const Json* ApiStore::find(const ApiPath& path) const {
  const auto objects = collections_.find(path.collection);
  if (objects == collections_.end()) return nullptr;
  const auto object = objects->second.find(path.key);
  return object == objects->second.end() ? nullptr : &object->second;
}

ApiStore::Answer ApiStore::get(const ApiPath& path) const {
  const std::scoped_lock lock(mutex_);
  const Json* object = find(path);
  if (object == nullptr) return not_found(path);
  return {200, path.subresource == "scale" ? scale_of(*object) : *object};
}

ApiStore::Answer ApiStore::list(const ApiPath& path, const ApiSelection& selection, size_t limit,
                                const std::string& continue_token) const {
  const std::scoped_lock lock(mutex_);
  // A token is "VERSION LAST-KEY".
  const size_t space = continue_token.find(' ');
  const std::string snapshot =
      continue_token.empty() ? std::to_string(version_) : continue_token.substr(0, space);
  if (std::stoull(snapshot) < compacted_)
    return error(410, "Expired", "The provided continue parameter is too old");
  Json items = Json::array();
  Json metadata{{"resourceVersion", snapshot}};
  const auto objects = collections_.find(path.collection);
  if (objects != collections_.end()) {
    auto object = objects->second.begin();
    if (!continue_token.empty())
      object = objects->second.upper_bound(ObjectKey::parse(continue_token.substr(space + 1)));
    for (; object != objects->second.end(); ++object) {
      if (!selection.matches(object->second)) continue;
      if (limit > 0 && items.size() == limit) {
        metadata["continue"] = snapshot + " " + kube::key_of(items.back()).text();
        break;
      }
      items.push_back(object->second);
    }
  }
  return {200, {{"kind", "List"}, {"metadata", std::move(metadata)}, {"items", std::move(items)}}};
}

ApiStore::Answer ApiStore::store(const ApiPath& path, Json object, const Json& before) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  collections_[path.collection][kube::key_of(object)] = object;
  history_[path.collection].push_back({version_, before, object, {}});
  return {before.is_null() ? 201 : 200, std::move(object)};
}

ApiStore::Answer ApiStore::create(const ApiPath& path, Json object, bool dry_run) {
  const std::scoped_lock lock(mutex_);
  ApiPath item = path;
  item.key.name = kube::name_of(object);
  if (item.key.name.empty()) return error(422, "Invalid", "metadata.name: Required value");
  if (find(item) != nullptr)
    return error(409, "AlreadyExists", path.plural + " \"" + item.key.name + "\" already exists");
  if (dry_run) return {201, std::move(object)};
  Json& metadata = object["metadata"];
  if (!path.key.ns.empty()) metadata["namespace"] = path.key.ns;
  metadata["uid"] = "uid-" + std::to_string(next_uid_++);
  metadata["creationTimestamp"] = kube::format_time(kube::wall_time());
  return store(item, std::move(object), nullptr);
}

ApiStore::Answer ApiStore::replace(const ApiPath& path, const Json& before, Json object) {
  const std::string version = kube::resource_version_of(object);
  if (!version.empty() && version != kube::resource_version_of(before))
    return conflict(path,
                    "the object has been modified; please apply your changes to the latest "
                    "version and try again");
  if (path.subresource == "status") {
    Json status = object.value("status", Json::object());
    object = before;
    object["status"] = std::move(status);
  }
  for (const char* name : {"uid", "creationTimestamp"})
    object["metadata"][name] = before.at("metadata").at(name);
  return store(path, std::move(object), before);
}

ApiStore::Answer ApiStore::update(const ApiPath& path, Json object) {
  const std::scoped_lock lock(mutex_);
  const Json* before = find(path);
  if (before == nullptr) return not_found(path);
  return replace(path, Json(*before), std::move(object));
}

ApiStore::Answer ApiStore::patch(const ApiPath& path, const Json& patch,
                                 const std::string& content_type) {
  {
    const std::scoped_lock lock(mutex_);
    if (const Json* found = find(path)) {
      const Json before = *found;
      Json object = before;
      if (content_type.starts_with("application/json-patch")) {
        object = object.patch(patch);
      } else {
        object.merge_patch(patch);
      }
      Answer answer = replace(path, before, std::move(object));
      if (path.subresource == "scale" && answer.status == 200) answer.body = scale_of(answer.body);
      return answer;
    }
  }
  if (!content_type.starts_with("application/apply-patch")) return not_found(path);
  return create(path, patch);
}

ApiStore::Answer ApiStore::remove(const ApiPath& path, const Json& options) {
  const std::scoped_lock lock(mutex_);
  const Json* found = find(path);
  if (found == nullptr) return not_found(path);
  Json before = *found;
  const Json wanted = options.value("preconditions", Json::object());
  for (const auto& [name, value] : wanted.items()) {
    if (before.at("metadata").at(name) != value)
      return conflict(path, "Precondition failed: " + name + " in precondition: " + value.dump());
  }
  if (!before.value("/metadata/finalizers"_json_pointer, Json::array()).empty()) {
    Json object = before;
    object["metadata"]["deletionTimestamp"] = kube::format_time(kube::wall_time());
    return store(path, std::move(object), before);
  }
  collections_[path.collection].erase(path.key);
  Json last = before;
  last["metadata"]["resourceVersion"] = std::to_string(++version_);
  history_[path.collection].push_back({version_, before, nullptr, last});
  return {200, {{"kind", "Status"}, {"status", "Success"}}};
}

std::optional<std::vector<ApiStore::Change>> ApiStore::changes_after(const std::string& collection,
                                                                     uint64_t version) const {
  const std::scoped_lock lock(mutex_);
  if (version < compacted_ || version > version_) return std::nullopt;
  std::vector<Change> changes;
  const auto history = history_.find(collection);
  if (history == history_.end()) return changes;
  std::copy_if(history->second.begin(), history->second.end(), std::back_inserter(changes),
               [version](const Change& change) { return change.version > version; });
  return changes;
}

uint64_t ApiStore::version() const {
  const std::scoped_lock lock(mutex_);
  return version_;
}

void ApiStore::compact() {
  const std::scoped_lock lock(mutex_);
  compacted_ = ++version_;
  history_.clear();
}

void ApiStore::rewind_versions(uint64_t to) {
  const std::scoped_lock lock(mutex_);
  version_ = to;
  compacted_ = to;
  history_.clear();
  for (auto& [collection, objects] : collections_) {
    for (auto& [key, object] : objects) object["metadata"]["resourceVersion"] = std::to_string(to);
  }
}

}  // namespace outrigger::fakes
