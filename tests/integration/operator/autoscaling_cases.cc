#include "tests/integration/operator/cases.h"
#include "tests/integration/operator/status_page.h"

namespace outrigger::integration {
namespace {

// The operator looks about every ten seconds.
constexpr seconds kScalingPatience{120};

Json scaled(int replicas, const Json& autoscaling) {
  return {{"workers",
           {{"replicas", replicas},
            {"minReplicas", 1},
            {"maxReplicas", 4},
            {"autoscaling", autoscaling}}}};
}

void until_replicas(Scene& scene, int count, int line = __builtin_LINE()) {
  scene.until(
      std::to_string(count) + " workers in the spec",
      [&] { return scene.job().at("/spec/workers/replicas"_json_pointer) == count; },
      kScalingPatience, line);
}

void up_to_the_bound(Scene& scene, Surroundings&) {
  StatusPage page("127.0.53.2");
  page.set_desired(9);
  scene.start_and_run(scaled(2, {{"scaleUpWindowSeconds", 5}}));
  page.stand_for(scene, "faces-server-0-0");
  until_replicas(scene, 4);
  scene.until("pods", [&] { return scene.names("worker").size() == 4; });
  scene.until("it is told", [&] { return !scene.events("ScalingUp").empty(); });
  const std::string note = scene.events("ScalingUp").at(0);
  scene.expect(note.find("from 2 workers to 4: the server can use 9") == 0, note);
  scene.until("it is written", [&] { return scene.at("/scaling/former").is_null(); });
  scene.expect_equal(scene.at("/scaling/replicas"), 4, "status.scaling.replicas");
  scene.expect_equal(scene.at("/scaling/desired"), 9, "status.scaling.desired");
  scene.expect(scene.at("/scaling/foreignTime").is_null(), "nobody else wrote");
  scene.expect_equal(scene.at("/executionAttempts"), 1, "attempts");
}

void down_and_contested(Scene& scene, Surroundings&) {
  StatusPage page("127.0.53.3");
  page.set_desired(1);
  scene.start_and_run(scaled(3, {{"scaleDownWindowSeconds", 1}}));
  page.stand_for(scene, "faces-server-0-0");
  for (int i = 0; i < 2; ++i) {
    until_replicas(scene, 1);
    scene.until("two workers go", [&] {
      scene.finish_deletions();
      return scene.names("worker").size() == 1;
    });
    // Before that, three would look like the operator's own write that has not arrived yet.
    scene.until("it is written", [&] { return scene.at("/scaling/former").is_null(); });
    const Json before = scene.at("/scaling/foreignTime");
    (void)scene.client().scale(kJobs, {scene.ns(), "faces"}, 3).take();
    scene.until("it is seen", [&] { return scene.at("/scaling/foreignTime") != before; });
  }
  scene.until_condition("ScalingContested", "True/OthersScale");
  scene.until("it is told", [&] { return !scene.events("ScalingContested").empty(); });
  scene.stays(
      "the number is left alone",
      [&] { return scene.job().at("/spec/workers/replicas"_json_pointer) == 3; }, seconds(20));
}

void the_first_worker(Scene& scene, Surroundings&) {
  StatusPage page("127.0.53.4");
  Json spec = scaled(0, {{"scaleUpWindowSeconds", 1}});
  spec["workers"]["minReplicas"] = 0;
  scene.start_and_run(spec);
  page.stand_for(scene, "faces-server-0-0");
  until_replicas(scene, 1);
  scene.expect(scene.at("/scaling/reason").dump().find("no worker has joined") != std::string::npos,
               scene.at("/scaling/reason").dump());
}

void never_while_suspended(Scene& scene, Surroundings&) {
  StatusPage page("127.0.53.5");
  page.set_desired(4);
  scene.start_and_run(scaled(2, {{"scaleUpWindowSeconds", 5}}));
  page.stand_for(scene, "faces-server-0-0");
  scene.change_spec({{"suspend", true}});
  scene.stays(
      "the number stays",
      [&] {
        scene.finish_deletions();
        return scene.job().at("/spec/workers/replicas"_json_pointer) == 2;
      },
      seconds(20));
}

}  // namespace

std::vector<Case> autoscaling_cases() {
  return {{"DownAndContested", down_and_contested},
          {"UpToTheBound", up_to_the_bound},
          {"TheFirstWorker", the_first_worker},
          {"NeverWhileSuspended", never_while_suspended}};
}

}  // namespace outrigger::integration
