#include "tests/integration/operator/cases.h"

namespace outrigger::integration {
namespace {

// What a busy machine may need until a job runs, and a deadline that leaves it that.
constexpr int kDeadline = 15;
constexpr seconds kPastDeadline{kDeadline + 3};

void active_too_long(Scene& scene, Surroundings&) {
  scene.start_and_run({{"activeDeadlineSeconds", kDeadline}});
  scene.until_condition("Failed", "True/DeadlineExceeded");
  scene.expect(scene.message("Failed").find(std::to_string(kDeadline)) != std::string::npos,
               scene.message("Failed"));
  scene.expect(scene.at("/completionTime").is_string(), "completionTime is set");
}

void an_active_deadline_set_meanwhile(Scene& scene, Surroundings&) {
  scene.start_and_run();
  scene.change_spec({{"activeDeadlineSeconds", 1}});
  scene.until_condition("Failed", "True/DeadlineExceeded");
}

void an_active_deadline_taken_back(Scene& scene, Surroundings&) {
  scene.start_and_run({{"activeDeadlineSeconds", kDeadline}});
  scene.change_spec({{"activeDeadlineSeconds", nullptr}});
  scene.stays(
      "it goes on", [&] { return scene.condition("Failed").empty(); }, kPastDeadline);
}

void suspension_stops_the_clock(Scene& scene, Surroundings&) {
  scene.start({{"activeDeadlineSeconds", kDeadline}});
  scene.change_spec({{"suspend", true}});
  scene.until_condition("Suspended", "True/Suspended");
  scene.stays(
      "it does not fail", [&] { return scene.condition("Failed").empty(); }, kPastDeadline);
}

// The server never gets ready; `why` is brought about first.
Case startup(const std::string& name, const std::string& in_message,
             const std::function<void(Scene&)>& why) {
  return {name, [in_message, why](Scene& scene, Surroundings&) {
            scene.start({{"startupDeadlineSeconds", kDeadline}});
            why(scene);
            scene.until_condition("Failed", "True/StartupDeadlineExceeded");
            const std::string text = scene.message("Failed");
            scene.expect(text.find(in_message) != std::string::npos, text);
          }};
}

void no_deadline_once_it_ran(Scene& scene, Surroundings&) {
  scene.start_and_run({{"startupDeadlineSeconds", kDeadline}});
  scene.run("faces-server-0-0", false);
  scene.stays(
      "it goes on", [&] { return scene.condition("Failed").empty(); }, kPastDeadline);
}

void workers_have_no_deadline(Scene& scene, Surroundings&) {
  scene.start({{"startupDeadlineSeconds", kDeadline}});
  scene.run("faces-server-0-0");
  scene.stays(
      "it goes on", [&] { return scene.condition("Failed").empty(); }, kPastDeadline);
  scene.expect_equal(scene.condition("Running"), "True/ServersReady", "Running");
}

void a_deadline_for_each_attempt(Scene& scene, Surroundings&) {
  scene.start_and_run({{"startupDeadlineSeconds", kDeadline}});
  scene.end("faces-server-0-0", {22});
  scene.until_condition("Failed", "True/StartupDeadlineExceeded");
  scene.expect_equal(scene.at("/executionAttempts"), 2, "attempts");
}

void an_invalid_image_name_fails_at_once(Scene& scene, Surroundings&) {
  scene.start();
  scene.wait_in("faces-server-0-0", "InvalidImageName", "couldn't parse image");
  scene.until_condition("Failed", "True/InvalidImageName");
  scene.expect(scene.message("Failed").find("couldn't parse") != std::string::npos,
               scene.message("Failed"));
}

// Shows in PodsReady within ten seconds, and no failure before the deadline.
Case shows(const std::string& reason) {
  return {"ShowsThatAServerWaitsIn" + reason, [reason](Scene& scene, Surroundings&) {
            scene.start();
            scene.wait_in("faces-server-0-0", reason, "the kubelet's words");
            scene.until(
                "PodsReady shows it",
                [&] { return scene.condition("PodsReady") == "False/" + reason; }, seconds(10));
            const std::string text = scene.message("PodsReady");
            scene.expect(text.find("the kubelet's words") != std::string::npos, text);
            scene.expect(scene.condition("Failed").empty(), "not failed");
          }};
}

void unschedulable(Scene& scene) {
  scene.patch_pod_status("faces-server-0-0",
                         {{"conditions", Json::array({{{"type", "PodScheduled"},
                                                       {"status", "False"},
                                                       {"reason", "Unschedulable"},
                                                       {"message", "0/3 nodes have a GPU"}}})}});
}

void shows_unschedulable(Scene& scene, Surroundings&) {
  scene.start();
  unschedulable(scene);
  scene.until_condition("PodsScheduled", "False/Unschedulable");
  scene.expect(scene.message("PodsScheduled").find("have a GPU") != std::string::npos,
               scene.message("PodsScheduled"));
}

}  // namespace

std::vector<Case> deadline_cases() {
  return {{"ActiveTooLong", active_too_long},
          {"AnActiveDeadlineSetMeanwhile", an_active_deadline_set_meanwhile},
          {"AnActiveDeadlineTakenBack", an_active_deadline_taken_back},
          {"SuspensionStopsTheClock", suspension_stops_the_clock},
          startup("StartupWithoutANode", "no server was ready", [](Scene&) {}),
          startup("StartupUnschedulable", "0/3 nodes have a GPU", unschedulable),
          startup("StartupWithoutItsImage", "ImagePullBackOff",
                  [](Scene& scene) {
                    scene.wait_in("faces-server-0-0", "ImagePullBackOff", "no such image");
                  }),
          startup("StartupThatIsNeverReady", "startupDeadlineSeconds, " + std::to_string(kDeadline),
                  [](Scene& scene) { scene.run("faces-server-0-0", false); }),
          {"NoDeadlineOnceItRan", no_deadline_once_it_ran},
          {"WorkersHaveNoDeadline", workers_have_no_deadline},
          {"ADeadlineForEachAttempt", a_deadline_for_each_attempt},
          {"AnInvalidImageNameFailsAtOnce", an_invalid_image_name_fails_at_once},
          shows("ErrImagePull"),
          shows("ImagePullBackOff"),
          shows("CreateContainerConfigError"),
          shows("RunContainerError"),
          {"ShowsUnschedulable", shows_unschedulable}};
}

}  // namespace outrigger::integration
