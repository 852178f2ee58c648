#include "tests/integration/operator/cases.h"

namespace outrigger::integration {
namespace {

const kube::Resource kQuotas{"", "v1", "resourcequotas", "ResourceQuota"};
const kube::Resource kRanges{"", "v1", "limitranges", "LimitRange"};

void put_quota(Scene& scene, const Json& hard) {
  (void)scene.client()
      .create(kQuotas, {{"apiVersion", "v1"},
                        {"kind", "ResourceQuota"},
                        {"metadata", {{"name", "small"}, {"namespace", scene.ns()}}},
                        {"spec", {{"hard", hard}}}})
      .take();
  scene.until("the quota counts",
              [&] { return scene.get(kQuotas, "small").contains("/status/used"_json_pointer); });
}

void a_quota_of_no_pod(Scene& scene, Surroundings& around) {
  put_quota(scene, {{"pods", "0"}});
  scene.create(scene.sample());
  scene.until_condition("PodsScheduled", "False/QuotaExceeded");
  scene.expect(scene.message("PodsScheduled").find("exceeded quota") != std::string::npos,
               scene.message("PodsScheduled"));
  scene.expect(scene.condition("Failed").empty(), "not failed");
  (void)around.client.remove(kQuotas, {scene.ns(), "small"}).take();
  scene.until("its pods are made after all", [&] { return scene.names().size() == 3; });
}

void a_quota_of_no_service(Scene& scene, Surroundings& around) {
  put_quota(scene, {{"services", "0"}});
  scene.create(scene.sample());
  scene.until_condition("PodsScheduled", "False/QuotaExceeded");
  const std::string text = scene.message("PodsScheduled");
  scene.expect(text.find("Service faces-server") != std::string::npos, text);
  (void)around.client.remove(kQuotas, {scene.ns(), "small"}).take();
  scene.until("its pods are made after all", [&] { return scene.names().size() == 3; });
}

void a_quota_for_the_server_alone(Scene& scene, Surroundings&) {
  put_quota(scene, {{"pods", "1"}});
  scene.create(scene.sample());
  scene.until_pods({"faces-server-0-0"});
  scene.run("faces-server-0-0");
  scene.until_condition("Running", "True/ServersReady");
  scene.until_condition("Degraded", "True/QuotaExceeded");
  scene.expect_equal(scene.condition("PodsScheduled"), "False/QuotaExceeded", "PodsScheduled");
}

void a_quota_that_stays(Scene& scene, Surroundings&) {
  put_quota(scene, {{"pods", "0"}});
  scene.create(scene.sample({{"startupDeadlineSeconds", 5}}));
  scene.until_condition("Failed", "True/StartupDeadlineExceeded");
  scene.expect(scene.message("Failed").find("exceeded quota") != std::string::npos,
               scene.message("Failed"));
}

void a_quota_of_cpus_wants_requests(Scene& scene, Surroundings&) {
  put_quota(scene, {{"requests.cpu", "10"}});
  scene.create(scene.sample());
  scene.until_condition("PodsScheduled", "False/QuotaExceeded");
  scene.expect(
      scene.message("PodsScheduled").find("must specify requests.cpu") != std::string::npos,
      scene.message("PodsScheduled"));
}

void put_limit(const Scene& scene, Surroundings& around, const Json& limit) {
  (void)around.client
      .create(kRanges, {{"apiVersion", "v1"},
                        {"kind", "LimitRange"},
                        {"metadata", {{"name", "some"}, {"namespace", scene.ns()}}},
                        {"spec", {{"limits", Json::array({limit})}}}})
      .take();
}

void a_limit_range_gives_defaults(Scene& scene, Surroundings& around) {
  const Json limit{{"type", "Container"}, {"defaultRequest", {{"cpu", "250m"}}}};
  put_limit(scene, around, limit);
  put_quota(scene, {{"requests.cpu", "10"}});
  scene.start();
  scene.expect_equal(
      scene.pod("faces-server-0-0").at("/spec/containers/0/resources/requests/cpu"_json_pointer),
      "250m", "the request");
}

void a_limit_range_that_is_too_small(Scene& scene, Surroundings& around) {
  const Json limit{{"type", "Container"}, {"max", {{"cpu", "1"}}}};
  put_limit(scene, around, limit);
  const Json container{{"name", "server"}, {"resources", {{"limits", {{"cpu", "4"}}}}}};
  scene.create(scene.sample(
      {{"server", {{"template", {{"spec", {{"containers", Json::array({container})}}}}}}}}));
  scene.until("the server's text is told", [&] {
    return scene.message("PodsScheduled").find("maximum cpu usage") != std::string::npos;
  });
}

// What a quota counts for an object that was there it takes back minutes later.
void a_quota_counts_the_secret_once(Scene& scene, Surroundings&) {
  put_quota(scene, {{"secrets", "5"}});
  scene.start_and_run();
  scene.end("faces-server-0-0", {22});
  scene.until_server_of(2);
  scene.expect_equal(scene.get(kQuotas, "small").at("/status/used/secrets"_json_pointer), "1",
                     "Secrets in use");
}

}  // namespace

std::vector<Case> quota_cases() {
  return {{"OfNoPod", a_quota_of_no_pod},
          {"OfNoService", a_quota_of_no_service},
          {"ForTheServerAlone", a_quota_for_the_server_alone},
          {"ThatStays", a_quota_that_stays},
          {"OfCpusWantsRequests", a_quota_of_cpus_wants_requests},
          {"CountsTheSecretOnce", a_quota_counts_the_secret_once},
          {"ALimitRangeGivesDefaults", a_limit_range_gives_defaults},
          {"ALimitRangeThatIsTooSmall", a_limit_range_that_is_too_small}};
}

}  // namespace outrigger::integration
