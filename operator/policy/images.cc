#include "operator/policy/images.h"

#include <string_view>

#include "operator/names.h"
#include "operator/objects/pod.h"
#include "operator/policy/pods.h"

namespace outrigger::controller {
namespace {

// "registry:5000/team/server" of "registry:5000/team/server:v1@sha256:…".
std::string_view repository(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const size_t colon = image.rfind(':');
  const size_t slash = image.rfind('/');
  if (colon != image.npos && (slash == image.npos || colon > slash)) image = image.substr(0, colon);
  return image;
}

// As container runtimes write it: Docker Hub's short names at length.
std::string full_repository(std::string_view image) {
  const std::string name(repository(image));
  const size_t slash = name.find('/');
  if (slash == name.npos) return "docker.io/library/" + name;
  const std::string first = name.substr(0, slash);
  const bool is_host = first.find_first_of(".:") != first.npos || first == "localhost";
  return is_host ? name : "docker.io/" + name;
}

}  // namespace

void choose_images(Pass& pass) {
  for (const auto role : {api::Role::kServer, api::Role::kWorker}) {
    pass.status().images[std::string(role_name(role))] =
        wanted_image(pass.seen.job, role, pass.options);
  }
}

void pin_images(Pass& pass) {
  for (auto& [role, image] : pass.status().images) {
    if (image.find('@') != image.npos) continue;
    for (const Pod& pod : pass.seen.pods) {
      if (role_name(pod.role) != role || !pass.is_own(pod)) continue;
      const std::string& id = pod.image_id;
      const size_t at = id.find("@sha256:");
      if (at == id.npos || full_repository(id) != full_repository(image)) continue;
      image = std::string(repository(image)) + id.substr(at);
      break;
    }
  }
}

std::string image_for(const Pass& pass, api::Role role) {
  const auto& images = pass.plan.status.images;
  const auto at = images.find(std::string(role_name(role)));
  return at == images.end() ? wanted_image(pass.seen.job, role, pass.options) : at->second;
}

}  // namespace outrigger::controller
