#include "api/names.h"
#include "tests/integration/operator/cases.h"

namespace outrigger::integration {
namespace {

using Pointer = Json::json_pointer;

// All that a job owns, by kind.
std::vector<Json> children(Scene& scene) {
  std::vector<Json> all = scene.pods();
  for (const auto& resource : {kServices, kConfigMaps, kSecrets, kPolicies}) {
    for (Json& one : scene.client().list(resource, {.ns = scene.ns()}).take()) {
      if (kube::controller_of(one)) all.push_back(std::move(one));
    }
  }
  return all;
}

void names_of_pods(Scene& scene, Surroundings&) {
  scene.start({{"server", {{"replicas", 2}}}});
  scene.until_pods(
      {"faces-server-0-0", "faces-server-1-0", "faces-worker-0-0", "faces-worker-1-0"});
}

void everything_is_owned(Scene& scene, Surroundings&) {
  scene.start();
  const std::string uid = kube::uid_of(scene.job());
  scene.until("seven objects are owned", [&] { return children(scene).size() == 7; });
  for (const Json& child : children(scene)) {
    scene.expect(kube::is_controlled_by(child, uid), "owned by this job: " + child.dump());
    const Json& owner = child.at(Pointer("/metadata/ownerReferences/0"));
    scene.expect_equal(owner.at("blockOwnerDeletion"), true, "blockOwnerDeletion");
    scene.expect_equal(owner.at("apiVersion"), "outrigger.dev/v1alpha1", "apiVersion");
    scene.expect_equal(owner.at("kind"), "TrainingJob", "kind");
  }
}

void everything_bears_our_labels(Scene& scene, Surroundings&) {
  scene.start();
  for (const Json& child : children(scene)) {
    scene.expect_equal(kube::label(child, std::string(api::kManagedByLabel)).value_or(""),
                       "outrigger", "managed-by");
    scene.expect_equal(kube::label(child, std::string(api::kJobNameLabel)).value_or(""), "faces",
                       "job-name");
    scene.expect_equal(kube::label(child, std::string(api::kJobUidLabel)).value_or(""),
                       kube::uid_of(scene.job()), "job-uid");
  }
}

void a_headless_service(Scene& scene, Surroundings&) {
  scene.start();
  const Json service = scene.get(kServices, "faces-server");
  scene.expect_equal(service.at(Pointer("/spec/clusterIP")), "None", "clusterIP");
  scene.expect_equal(service.at(Pointer("/spec/publishNotReadyAddresses")), true, "publish");
  const Json& selector = service.at(Pointer("/spec/selector"));
  const Json labels = scene.pod("faces-server-0-0").at(Pointer("/metadata/labels"));
  for (const auto& [key, value] : selector.items())
    scene.expect_equal(labels.at(key), value, "the server bears what the service selects");
  scene.expect_equal(service.at(Pointer("/spec/ports/0/port")), 29400, "the join port");
}

void a_config_map_without_templates(Scene& scene, Surroundings&) {
  scene.start({{"workers", {{"template", {{"spec", {{"dnsPolicy", "Default"}}}}}}}});
  const Json map = scene.get(kConfigMaps, "faces-config-1");
  scene.expect_equal(map.at("immutable"), true, "immutable");
  const std::string file = map.at(Pointer("/data/job.yaml"));
  scene.expect(file.find("lenet5") != std::string::npos, "the spec is in it: " + file);
  scene.expect(file.find("template") == std::string::npos, "no template is in it: " + file);
}

void a_secret_with_two_tokens(Scene& scene, Surroundings&) {
  scene.start();
  const auto secrets = scene.client().list(kSecrets, {.ns = scene.ns()}).take();
  scene.expect_equal(secrets.size(), 1, "one Secret");
  const Json& data = secrets[0].at("data");
  scene.expect(data.contains("join-token") && data.contains("control-token"), "both are there");
  scene.expect(data["join-token"] != data["control-token"], "they differ");
  scene.expect_equal(secrets[0].at("immutable"), true, "immutable");
  scene.expect_equal(kube::name_of(secrets[0]),
                     "faces-tokens-" + kube::uid_of(scene.job()).substr(0, 8), "its name");
}

void two_jobs_have_two_tokens(Scene& scene, Surroundings&) {
  scene.start();
  Json other = scene.sample();
  other["metadata"]["name"] = "other";
  (void)scene.client().create(kJobs, other).take();
  scene.until("two Secrets",
              [&] { return scene.client().list(kSecrets, {.ns = scene.ns()}).take().size() == 2; });
  const auto secrets = scene.client().list(kSecrets, {.ns = scene.ns()}).take();
  scene.expect(secrets[0].at("data") != secrets[1].at("data"), "tokens differ");
}

void a_network_policy(Scene& scene, Surroundings&) {
  scene.start();
  const Json policy = scene.get(kPolicies, "faces");
  scene.expect_equal(policy.at(Pointer("/spec/policyTypes")), Json::array({"Ingress"}), "types");
  scene.expect_equal(
      policy.at(Pointer("/spec/podSelector/matchLabels")).at(std::string(api::kJobUidLabel)),
      kube::uid_of(scene.job()), "what it selects");
  scene.expect_equal(policy.at(Pointer("/spec/ingress")).size(), 2,
                     "own pods, and the status port");
}

// As one that was made for servers of another number of GPUs.
void a_network_policy_for_other_ranks(Scene& scene, Surroundings&) {
  scene.start();
  const Json status_port{{"port", 8080}, {"endPort", 8083}, {"protocol", "TCP"}};
  (void)scene.client()
      .patch(kPolicies, {scene.ns(), "faces"}, kube::PatchType::kMerge,
             {{"metadata", {{"labels", {{"outrigger.dev/ranks", "4"}}}}},
              {"spec", {{"ingress", Json::array({{{"ports", Json::array({status_port})}}})}}}})
      .take();
  scene.until("it is for one rank again", [&] {
    return scene.get(kPolicies, "faces").at(Pointer("/spec/ingress")).size() == 2;
  });
  scene.expect_equal(kube::label(scene.get(kPolicies, "faces"), "outrigger.dev/ranks").value_or(""),
                     "1", "ranks");
}

void no_worker_is_fine(Scene& scene, Surroundings&) {
  scene.start_and_run({{"workers", {{"replicas", 0}}}});
  scene.until_condition("PodsReady", "True/Ready");
  scene.end("faces-server-0-0", {0});
  scene.until_condition("Complete", "True/Trained");
}

void the_longest_name(Scene& scene, Surroundings&) {
  const std::string name(48, 'a');
  Json job = scene.sample();
  job["metadata"]["name"] = name;
  scene.create(job);
  scene.until_pods({name + "-server-0-0", name + "-worker-0-0", name + "-worker-1-0"});
}

void a_missing_service_comes_back(Scene& scene, Surroundings&) {
  scene.start();
  const std::string before = kube::uid_of(scene.get(kServices, "faces-server"));
  (void)scene.client().remove(kServices, {scene.ns(), "faces-server"}).take();
  scene.until("another Service", [&] {
    const Json now = scene.find(kServices, "faces-server");
    return now.is_object() && kube::uid_of(now) != before;
  });
}

void a_missing_config_map_comes_back(Scene& scene, Surroundings&) {
  scene.start();
  (void)scene.client().remove(kConfigMaps, {scene.ns(), "faces-config-1"}).take();
  scene.until("the ConfigMap is back",
              [&] { return scene.find(kConfigMaps, "faces-config-1").is_object(); });
}

void a_missing_policy_comes_back(Scene& scene, Surroundings&) {
  scene.start();
  (void)scene.client().remove(kPolicies, {scene.ns(), "faces"}).take();
  scene.until("the NetworkPolicy is back",
              [&] { return scene.find(kPolicies, "faces").is_object(); });
}

}  // namespace

std::vector<Case> child_cases() {
  return {{"NamesOfPods", names_of_pods},
          {"EverythingIsOwnedByTheJob", everything_is_owned},
          {"EverythingBearsOurLabels", everything_bears_our_labels},
          {"TheServiceIsHeadless", a_headless_service},
          {"TheConfigMapHasNoTemplates", a_config_map_without_templates},
          {"TheSecretHasTwoTokens", a_secret_with_two_tokens},
          {"TwoJobsHaveTwoTokens", two_jobs_have_two_tokens},
          {"TheNetworkPolicySelectsThePods", a_network_policy},
          {"ANetworkPolicyForOtherRanksIsWritten", a_network_policy_for_other_ranks},
          {"WithoutWorkersTheServerTrainsAlone", no_worker_is_fine},
          {"TheLongestNameFits", the_longest_name},
          {"AMissingServiceComesBack", a_missing_service_comes_back},
          {"AMissingConfigMapComesBack", a_missing_config_map_comes_back},
          {"AMissingPolicyComesBack", a_missing_policy_comes_back}};
}

}  // namespace outrigger::integration
