#include "api/cluster.h"

#include <tuple>

#include "api/schema/reader.h"
#include "api/schema/struct.h"
#include "common/error.h"
#include "common/file.h"

namespace outrigger::api {
namespace schema {
namespace {

// What is slower keeps the simulation of a job busy for minutes, and no machine is.
constexpr double kSlowest = 0.001;

}  // namespace

// Found by struct_of through their arguments.
void describe(Struct<ClusterChange>& s) {
  s.add("step", &ClusterChange::step, "When.").required().between(1, 1e6);
  s.add("speed", &ClusterChange::speed, "Of the cores, against before.").between(kSlowest, 1000);
  s.add("link", &ClusterChange::link, "Of the link, against before.").between(kSlowest, 1000);
}

void describe(Struct<ClusterServer>& s) {
  s.add("cores", &ClusterServer::cores, "Cores of the server.").between(kSlowest, 1e6);
  s.add("speed", &ClusterServer::speed, "Of a core, against the profile's.").between(kSlowest, 1e6);
  s.add("device", &ClusterServer::device, "What the device does, in cores of the profile.")
      .between(kSlowest, 1e9)
      .absent("the cores are the device");
  s.add("megabits", &ClusterServer::megabits, "A second through its network card, each way.")
      .between(kSlowest, 1e9);
  s.add("gigabytes", &ClusterServer::gigabytes, "Of memory that the job may take.")
      .more_than(0)
      .less_than(1e9)
      .absent("any");
  s.add("change", &ClusterServer::change, "What becomes of it.").absent("nothing");
  s.add("price", &ClusterServer::price, "What an hour costs, in any currency.")
      .between(0, 1e9)
      .absent("nothing");
}

void describe(Struct<ClusterWorkers>& s) {
  s.add("name", &ClusterWorkers::name, "What to call them.").required();
  s.add("count", &ClusterWorkers::count, "How many.").between(0, 10'000);
  s.add("cores", &ClusterWorkers::cores, "Cores of each.").between(kSlowest, 1e6);
  s.add("speed", &ClusterWorkers::speed, "Of a core, against the profile's.")
      .between(kSlowest, 1e6);
  s.add("megabits", &ClusterWorkers::megabits, "A second between each and the server.")
      .between(kSlowest, 1e9);
  s.add("milliseconds", &ClusterWorkers::milliseconds, "Of the link's delay, one way.")
      .between(0, 60'000);
  s.add("gigabytes", &ClusterWorkers::gigabytes, "Of memory that the job may take on each.")
      .more_than(0)
      .less_than(1e9)
      .absent("any");
  s.add("stems", &ClusterWorkers::stems, "Whether they may run stems.");
  s.add("joinStep", &ClusterWorkers::join_step, "The step at which they join.").between(0, 1e6);
  s.add("leaveStep", &ClusterWorkers::leave_step, "The step at which they leave.")
      .between(1, 1e6)
      .absent("they stay");
  s.add("change", &ClusterWorkers::change, "What becomes of them.").absent("nothing");
  s.add("price", &ClusterWorkers::price, "What an hour of each costs, in the server's currency.")
      .between(0, 1e9)
      .absent("nothing");
}

void describe(Struct<Cluster>& s) {
  s.add("profile", &Cluster::profile, "What `outrigger plan -o json` wrote, beside this file.")
      .absent("the job is measured here");
  s.add("server", &Cluster::server, "The server.").required();
  s.add("workers", &Cluster::workers, "Groups of like workers.");
  s.add("steps", &Cluster::steps, "How many steps to simulate.").between(10, 1e6);
  s.add("jitterPercent", &Cluster::jitter_percent, "How far the times of work spread.")
      .between(0, 90);
  s.add("seed", &Cluster::seed, "Of that spread.").between(0, 1e15);
}

}  // namespace schema

namespace {

/// A step of the file, and where it stands.
struct ClusterStep {
  std::string path;
  int64_t step = 0;
};

std::string told(const ClusterStep& step, const std::string& wanted) {
  return step.path + " is " + std::to_string(step.step) + "; " + wanted;
}

void check_is_simulated(const ClusterStep& step, int64_t steps, std::vector<FieldError>& errors) {
  if (step.step < steps) return;
  errors.push_back({step.path, std::to_string(step.step) + " is never reached; at most " +
                                   std::to_string(steps - 1) + ", or more steps"});
}

/// What would never come about, or not in this order.
void check_steps(const ClusterWorkers& group, const std::string& path, int64_t steps,
                 std::vector<FieldError>& errors) {
  const ClusterStep joins{path + ".joinStep", group.join_step};
  check_is_simulated(joins, steps, errors);
  if (group.leave_step && *group.leave_step <= joins.step)
    errors.push_back({path + ".leaveStep", std::to_string(*group.leave_step) + " is too early; " +
                                               told(joins, "at least one more")});
  if (!group.change) return;
  const ClusterStep change{path + ".change.step", group.change->step};
  check_is_simulated(change, steps, errors);
  if (change.step < joins.step)
    errors.push_back({change.path, std::to_string(change.step) + " is too early; " +
                                       told(joins, "at least that")});
  if (group.leave_step && change.step >= *group.leave_step)
    errors.push_back(
        {change.path, std::to_string(change.step) + " is too late; " +
                          told({path + ".leaveStep", *group.leave_step}, "at most one less")});
}

void check_steps(const Cluster& cluster, std::vector<FieldError>& errors) {
  if (cluster.server.change)
    check_is_simulated({"server.change.step", cluster.server.change->step}, cluster.steps, errors);
  for (size_t i = 0; i < cluster.workers.size(); ++i)
    check_steps(cluster.workers[i], "workers[" + std::to_string(i) + "]", cluster.steps, errors);
}

/// Each alone may be as slow as that; all of them together may not.
void check_rate(const std::string& path, double cores, const std::optional<ClusterChange>& change,
                std::vector<FieldError>& errors) {
  const double rate = cores * (change ? change->speed : 1);
  constexpr double kRounding = 1 - 1e-9;
  if (rate >= kRounding * schema::kSlowest) return;
  errors.push_back({path, schema::format_number(rate) +
                              " cores, by speed and change.speed, is too small; at least " +
                              schema::format_number(schema::kSlowest)});
}

void check_rates(const Cluster& cluster, std::vector<FieldError>& errors) {
  const ClusterServer& server = cluster.server;
  check_rate("server", server.cores * server.speed, server.change, errors);
  if (server.device) check_rate("server.device", *server.device, server.change, errors);
  for (size_t i = 0; i < cluster.workers.size(); ++i) {
    const ClusterWorkers& group = cluster.workers[i];
    check_rate("workers[" + std::to_string(i) + "]", group.cores * group.speed, group.change,
               errors);
  }
}

}  // namespace

Cluster load_cluster(const std::filesystem::path& path) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  std::vector<FieldError> errors;
  Cluster cluster;
  const schema::TextNode root = schema::read_tree(read_file(path, kMostBytes), errors, "cluster");
  if (errors.empty()) {
    schema::Reader reader;
    if (reader.expect(root, schema::TextNode::Kind::kMap, "", "a cluster"))
      schema::struct_of<Cluster>().read(root, &cluster, "", reader);
    errors = reader.take_errors();
    if (errors.empty()) schema::struct_of<Cluster>().check(&cluster, "", errors);
    if (errors.empty()) check_steps(cluster, errors);
    if (errors.empty()) check_rates(cluster, errors);
    const auto places = reader.take_places();
    for (FieldError& error : errors) {
      const auto place = places.find(error.path);
      if (error.line == 0 && place != places.end())
        std::tie(error.line, error.column) = place->second;
    }
  }
  if (!errors.empty()) throw InvalidInput(to_string(errors, path.string()));
  return cluster;
}

}  // namespace outrigger::api
