#pragma once

#include <compare>
#include <string>

namespace outrigger::kube {

/// A kind of object and where the API server keeps it.
struct Resource {
  std::string group;  // empty: the core group
  std::string version = "v1";
  std::string plural;
  std::string kind;
  bool namespaced = true;

  /// "v1", "coordination.k8s.io/v1".
  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  /// "/apis/GROUP/VERSION/namespaces/NS/PLURAL"; of all namespaces where `ns` is empty.
  std::string path(const std::string& ns) const;
};

/// An object's name; `ns` is empty for what lives in no namespace.
struct ObjectKey {
  std::string ns;
  std::string name;

  auto operator<=>(const ObjectKey&) const =
      default;  // NOLINT(modernize-use-nullptr): its own rewriting
  /// "ns/name", or "name" alone: what queues and logs say.
  std::string text() const { return ns.empty() ? name : ns + "/" + name; }
  /// The inverse of text().
  static ObjectKey parse(const std::string& text);
};

}  // namespace outrigger::kube
