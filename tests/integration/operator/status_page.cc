#include "tests/integration/operator/status_page.h"

#include "api/names.h"

namespace outrigger::integration {
namespace {

http::ServerOptions options_at(const std::string& address) {
  http::ServerOptions options;
  options.address = address;
  options.port = api::kStatusPort;
  return options;
}

}  // namespace

StatusPage::StatusPage(const std::string& address)
    : address_(address), server_(options_at(address)) {
  server_.route("GET", std::string(api::kStatusPath), [this](const http::Request&) {
    Json page{
        {"progress", {{"step", 7}, {"percent", 12}, {"loss", 0.25}, {"totalSteps", 60}}},
        {"checkpoint", {{"step", 5}}},
        {"split", {{"plan", 3}, {"cut", "conv1"}, {"sharePercent", 40}, {"stallPercent", 30}}},
        {"workers", {{"joined", 0}}}};
    const int desired = desired_;
    if (desired >= 0) page["workers"]["desired"] = desired;
    return http::Response{200, page.dump(), "application/json"};
  });
  server_.start();
}

void StatusPage::stand_for(Scene& scene, const std::string& pod) const {
  scene.patch_pod_status(pod, {{"podIP", address_}, {"podIPs", Json::array({{{"ip", address_}}})}});
}

}  // namespace outrigger::integration
