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
    return http::Response{200, page().dump(), "application/json"};
  });
  server_.route("POST", "/job",
                [this](const http::Request& request) { return take_edit(request); });
  server_.start();
}

Json StatusPage::page() const {
  Json page{{"progress", {{"step", 7}, {"percent", 12}, {"loss", 0.25}, {"totalSteps", 60}}},
            {"checkpoint", {{"step", 5}}},
            {"split", {{"plan", 3}, {"cut", "conv1"}, {"sharePercent", 40}, {"stallPercent", 30}}},
            {"workers", {{"joined", 0}}}};
  const int desired = desired_;
  if (desired >= 0) page["workers"]["desired"] = desired;
  const std::scoped_lock lock(mutex_);
  if (known_) page["edits"] = {{"generation", *known_}, {"refused", refused_}};
  return page;
}

http::Response StatusPage::take_edit(const http::Request& request) {
  const std::scoped_lock lock(mutex_);
  Told told{http::find_header(request.headers, "Authorization").value_or(""),
            Json::parse(request.body)};
  known_ = told.body.at("generation");
  told_.push_back(std::move(told));
  refused_ = why_;
  if (why_.empty()) return {200, "{}", "application/json"};
  return {400, Json{{"error", why_}}.dump(), "application/json"};
}

void StatusPage::open_door() {
  const std::scoped_lock lock(mutex_);
  known_ = 0;
}

void StatusPage::refuse_edits(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  why_ = why;
}

std::vector<StatusPage::Told> StatusPage::told() const {
  const std::scoped_lock lock(mutex_);
  return told_;
}

void StatusPage::stand_for(Scene& scene, const std::string& pod) const {
  scene.patch_pod_status(pod, {{"podIP", address_}, {"podIPs", Json::array({{{"ip", address_}}})}});
}

}  // namespace outrigger::integration
