// engine: External, a server of the user's own.
#include <map>

#include "tests/integration/operator/cases.h"
#include "tests/integration/operator/status_page.h"

namespace outrigger::integration {
namespace {

Json external(int replicas = 1) {
  const Json own{
      {"name", "server"}, {"image", "registry.example/own:3"}, {"command", {"python", "train.py"}}};
  return {{"server",
           {{"engine", "External"},
            {"replicas", replicas},
            {"template", {{"spec", {{"containers", Json::array({own})}}}}}}}};
}

std::map<std::string, std::string> variables_of(const Json& pod) {
  std::map<std::string, std::string> found;
  for (const Json& one : pod.at("/spec/containers/0/env"_json_pointer))
    found[one.at("name")] = one.value("value", "");
  return found;
}

void its_pods(Scene& scene, Surroundings&) {
  scene.start(external(2));
  const Json pod = scene.pod("faces-server-1-0");
  const Json& container = pod.at("/spec/containers/0"_json_pointer);
  scene.expect_equal(container.at("image"), "registry.example/own:3", "image");
  scene.expect_equal(container.at("command"), Json({"python", "train.py"}), "command");
  scene.expect(!container.contains("args"), "its arguments are its own");
  scene.expect(!container.contains("readinessProbe"), "nobody promised a page");
  auto variables = variables_of(pod);
  scene.expect_equal(variables["OUTRIGGER_RANK"], "1", "rank");
  scene.expect_equal(variables["OUTRIGGER_REPLICAS"], "2", "replicas");
  scene.expect_equal(variables["OUTRIGGER_JOB_FILE"], "/etc/outrigger/job.yaml", "the job");
  scene.expect_equal(variables["OUTRIGGER_TOKEN_FILE"], "/etc/outrigger/secret/join-token",
                     "the token");
  const std::string service = ".faces-server." + scene.ns() + ".svc:29400";
  scene.expect_equal(variables["OUTRIGGER_SERVER"], "faces-server-1" + service, "its own address");
  scene.expect_equal(variables["OUTRIGGER_RENDEZVOUS"], "faces-server-0" + service, "the first");
  scene.expect_equal(scene.pod("faces-worker-0-0").at("/spec/containers/0/image"_json_pointer),
                     "registry.example/outrigger-worker:1", "the worker's image");
}

// As the operator of these cases was told.
void its_adapters(Scene& scene, Surroundings&) {
  Json job = external(2);
  job["server"]["gpus"] = 2;
  scene.start(job);
  const Json pod = scene.pod("faces-server-1-0");
  const Json limits = pod.at("/spec/containers/0/resources/limits"_json_pointer);
  scene.expect_equal(limits.at("nvidia.com/gpu"), "2", "GPUs");
  scene.expect_equal(limits.at("rdma/hca"), "2", "an adapter for each");
  scene.expect_equal(variables_of(pod)["NCCL_IB_HCA"], "mlx5", "NCCL's setting");
  const Json worker = scene.pod("faces-worker-0-0").at("/spec/containers/0"_json_pointer);
  scene.expect(worker.dump().find("rdma/hca") == std::string::npos, "a worker has none");
}

void a_life(Scene& scene, Surroundings&) {
  scene.start_and_run(external());
  scene.end("faces-server-0-0", {1, "Error", "Traceback: no such file"});
  scene.until_condition("Restarting", "True/InternalError");
  scene.expect_equal(scene.at("/lastFailure/message"), "Traceback: no such file", "last words");
  const std::string next = scene.until_server_of(2);
  scene.run(next);
  scene.until_condition("Running", "True/ServersReady");
  scene.end(next, {0});
  scene.until_condition("Complete", "True/Trained");
}

void its_progress(Scene& scene, Surroundings&) {
  StatusPage page("127.0.53.6");
  scene.start_and_run(external());
  page.stand_for(scene, "faces-server-0-0");
  scene.until("the step is in the status", [&] { return scene.at("/progress/step") == 7; });
  scene.expect_equal(scene.at("/progress/percent"), 12, "percent");
}

// One that is ready says nothing of the other.
void one_without_a_node(Scene& scene, Surroundings&) {
  Json job = external(2);
  job["startupDeadlineSeconds"] = 15;
  scene.start(job);
  scene.run("faces-server-0-0");
  scene.until_condition("Failed", "True/StartupDeadlineExceeded");
  const std::string text = scene.message("Failed");
  scene.expect(text.find("1 of 2 servers were ready") != std::string::npos, text);
}

void without_an_image(Scene& scene, Surroundings&) {
  scene.create(scene.sample({{"server", {{"engine", "External"}}}}));
  scene.until_condition("Failed", "True/InvalidSpec");
  const std::string text = scene.message("Failed");
  scene.expect(text.find("spec.server.engine: External needs the image of your own server") !=
                   std::string::npos,
               text);
  scene.expect(scene.names().empty(), "no pod was made");
}

}  // namespace

std::vector<Case> external_cases() {
  return {{"ItsPods", its_pods},
          {"ItsAdapters", its_adapters},
          {"ALife", a_life},
          {"ItsProgress", its_progress},
          {"OneWithoutANode", one_without_a_node},
          {"WithoutAnImage", without_an_image}};
}

}  // namespace outrigger::integration
