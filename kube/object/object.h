#pragma once

#include <optional>
#include <string>

#include "kube/object/json.h"
#include "kube/object/resource.h"

/// What every API object has. Reading what is absent gives an empty text: the API server sends
/// nothing else than well-formed objects, and nothing here throws on others.
namespace outrigger::kube {

std::string name_of(const Json& object);
std::string namespace_of(const Json& object);
std::string uid_of(const Json& object);
std::string resource_version_of(const Json& object);
ObjectKey key_of(const Json& object);

std::optional<std::string> label(const Json& object, const std::string& name);
std::optional<std::string> annotation(const Json& object, const std::string& name);
void set_label(Json& object, const std::string& name, const std::string& value);
void set_annotation(Json& object, const std::string& name, const std::string& value);

/// Whether its deletion has been asked for.
bool is_deleting(const Json& object);

/// Who owns an object (metav1.OwnerReference).
struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;

  bool operator==(const OwnerReference&) const = default;
};

/// The owner that controls it, if one does.
std::optional<OwnerReference> controller_of(const Json& object);
/// Whether the object with that UID is its controller; a same-named successor is not.
bool is_controlled_by(const Json& object, const std::string& uid);
/// Makes `owner` the controller: it goes when the owner goes, and blocks its foreground deletion.
/// Replaces a reference to the same UID.
void set_controller(Json& object, const OwnerReference& owner);

/// Whether `a` is an older version than `b`. False where the two cannot be compared: versions are
/// decimal numbers in every API server, but older ones did not promise it (KEP-5504).
bool is_older_version(const std::string& a, const std::string& b);

/// A label selector that wants all of these, as sent in a query: "a=b,c=d".
std::string selector_of(const Json& labels);

}  // namespace outrigger::kube
