#include "kube/object/resource.h"

#include "http/message.h"

namespace outrigger::kube {

std::string Resource::path(const std::string& ns) const {
  std::string path = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (namespaced && !ns.empty()) path += "/namespaces/" + http::percent_encode(ns);
  return path + "/" + plural;
}

ObjectKey ObjectKey::parse(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return {{}, text};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace outrigger::kube
