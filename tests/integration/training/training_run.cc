#include "tests/integration/training/training_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <thread>

#include "common/hash.h"
#include "http/client.h"
#include "nn/safetensors.h"

namespace outrigger::integration {
namespace {

using std::chrono::milliseconds;

std::string all_of(const std::filesystem::path& path) {
  return std::filesystem::exists(path) ? read_file(path) : std::string();
}

/// Where a program lies: as it was built, or in the folder that OUTRIGGER_PROGRAMS names.
std::filesystem::path program(const std::filesystem::path& built) {
  const char* folder = std::getenv("OUTRIGGER_PROGRAMS");
  return folder == nullptr ? built : std::filesystem::path(folder) / built.filename();
}

/// A safetensors file without its header, which names the run's own paths.
std::string tensors_of(const std::filesystem::path& path) {
  const std::string all = read_file(path);
  uint64_t header = 0;
  std::memcpy(&header, all.data(), sizeof header);
  return all.substr(sizeof header + header);
}

template <typename Condition>
void wait_until(int limit, const char* what, const Condition& condition) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(limit);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up)
      throw Error(std::string("waited too long for ") + what);
    std::this_thread::sleep_for(milliseconds(10));
  }
}

}  // namespace

TrainingRun::TrainingRun(const JobText& job)
    : replicas_(job.replicas),
      wanted_port_(job.port),
      data_(!job.data.empty() ? job.data
            : job.shards      ? face_shards()
                              : faces()),
      job_file_(folder_.path() / "job.yaml"),
      token_file_(folder_.path() / "token"),
      control_token_file_(folder_.path() / "control-token") {
  if (job.copy_data || job.broken_images > 0) {
    std::filesystem::copy(data_, folder_.path() / "data", std::filesystem::copy_options::recursive);
    data_ = folder_.path() / "data";
    break_images(data_ / "train", job.broken_images);
  }
  change_job(job);
  write_file_atomically(token_file_, "integration-token\n", 0600);
  write_file_atomically(control_token_file_, "control-of-tests\n", 0600);
}

void TrainingRun::change_job(const JobText& job) {
  write_file_atomically(job_file_, job_text(job, folder_.path() / "out"));
  checkpoint_directory_ = job.checkpoint_path.empty()
                              ? directory()
                              : std::filesystem::path(job.checkpoint_path) / "test";
}

TrainingRun::~TrainingRun() {
  for (auto& worker : workers_) ::kill(worker.id(), SIGCONT);
  if (::testing::Test::HasFailure())
    std::fprintf(stderr, "---- server log\n%s\n", server_log().c_str());
}

void TrainingRun::start_server(bool resume) { launch_server(resume, {}); }

void TrainingRun::start_ranks(bool resume) {
  launch_server(resume, {"--ranks", "2", "--threads", "3", "--termination-file",
                         (folder_.path() / "last-words").string()});
}

std::vector<pid_t> TrainingRun::rank_processes() const {
  const std::string id = std::to_string(server_->id());
  std::istringstream text(all_of("/proc/" + id + "/task/" + id + "/children"));
  return {std::istream_iterator<pid_t>(text), {}};
}

std::string TrainingRun::last_words() const { return all_of(folder_.path() / "last-words"); }

void TrainingRun::launch_server(bool resume, const std::vector<std::string>& more) {
  std::filesystem::remove(directory() / "server.json");
  std::vector<std::string> arguments{"--job",
                                     job_file_.string(),
                                     "--token-file",
                                     token_file_.string(),
                                     "--listen",
                                     "127.0.0.1",
                                     "--port",
                                     std::to_string(wanted_port_),
                                     "--status-port",
                                     "0",
                                     "--threads",
                                     "2",
                                     "--replicas",
                                     std::to_string(replicas_),
                                     "--mount",
                                     "faces=" + data_.string(),
                                     "--control-token-file",
                                     control_token_file_.string()};
  if (resume) arguments.emplace_back("--resume");
  emulate_machine(arguments, 1);
  arguments.insert(arguments.end(), more.begin(), more.end());
  server_.emplace(program(OUTRIGGER_SERVER), arguments, folder_.path() / "server.log");
  wait_until(60, "the server's port", [this] {
    return std::filesystem::exists(directory() / "server.json") || server_->poll();
  });
  if (server_->poll()) return;
  const auto endpoints = nlohmann::json::parse(read_file(directory() / "server.json"));
  port_ = endpoints.at("port").get<int>();
  status_port_ = endpoints.value("statusPort", 0);  // with replicas: known once they have met
}

void TrainingRun::start_second_rank(bool resume) {
  std::filesystem::remove(directory() / "server-1.json");
  std::vector<std::string> arguments{"--job",         job_file_.string(),
                                     "--token-file",  token_file_.string(),
                                     "--listen",      "127.0.0.1",
                                     "--port",        "0",
                                     "--status-port", "0",
                                     "--threads",     "1",
                                     "--replicas",    "2",
                                     "--rank",        "1",
                                     "--rendezvous",  "127.0.0.1:" + std::to_string(port_),
                                     "--mount",       "faces=" + data_.string()};
  if (resume) arguments.emplace_back("--resume");
  second_.emplace(program(OUTRIGGER_SERVER), arguments, folder_.path() / "server-1.log");
  wait_until(60, "the second rank's port", [this] {
    return std::filesystem::exists(directory() / "server-1.json") || second_->poll();
  });
}

int TrainingRun::wish_plan(const std::string& split) { return post("/plan", split); }

int TrainingRun::tell_job(const std::string& body) { return post("/job", body); }

int TrainingRun::post(const std::string& path, const std::string& body) const {
  http::Client client({.base_url = "http://127.0.0.1:" + std::to_string(status_port_),
                       .headers = {{"Authorization", "Bearer control-of-tests"}}});
  return client.post(path, body).status;
}

nlohmann::json TrainingRun::status() const {
  http::Client client({.base_url = "http://127.0.0.1:" + std::to_string(status_port_)});
  return nlohmann::json::parse(client.get("/status").body);
}

void TrainingRun::signal_second_rank(int signal) { ::kill(second_->id(), signal); }

int TrainingRun::wait_for_second_rank(int limit) {
  wait_until(limit, "the second rank's end", [this] { return second_->poll().has_value(); });
  return *second_->poll();
}

void TrainingRun::emulate_machine(std::vector<std::string>& arguments, int cores) const {
  if (profile_.empty()) return;
  const std::vector<std::string> more{"--emulate", profile_.string(), "--emulate-cores",
                                      std::to_string(cores)};
  arguments.insert(arguments.end(), more.begin(), more.end());
}

size_t TrainingRun::start_worker(const WorkerStart& start) {
  const int port =
      start.of_second_rank
          ? nlohmann::json::parse(read_file(directory() / "server-1.json")).at("port").get<int>()
          : port_;
  const size_t index = workers_.size();
  const auto& data = start.data.empty() ? data_ : start.data;
  std::vector<std::string> arguments{"--server",      "127.0.0.1:" + std::to_string(port),
                                     "--token-file",  token_file_.string(),
                                     "--status-port", "0",
                                     "--index",       std::to_string(index),
                                     "--listen",      "127.0.0.1",
                                     "--mount",       "faces=" + data.string()};
  if (start.threads > 0)
    arguments.insert(arguments.end(), {"--threads", std::to_string(start.threads)});
  emulate_machine(arguments, start.emulated_cores);
  if (!start.fault.empty()) ::setenv("OUTRIGGER_FAULT", start.fault.c_str(), 1);
  workers_.emplace_back(start.program.empty() ? program(OUTRIGGER_WORKER) : start.program,
                        arguments, folder_.path() / ("worker-" + std::to_string(index) + ".log"));
  ::unsetenv("OUTRIGGER_FAULT");
  return index;
}

void TrainingRun::signal_server_group(int signal) { ::kill(-server_->id(), signal); }

void TrainingRun::signal_server(int signal) { ::kill(server_->id(), signal); }

bool TrainingRun::worker_runs(size_t index) {
  return index < workers_.size() && !workers_[index].poll();
}

bool TrainingRun::worker_is_stopped(size_t index) {
  if (!worker_runs(index)) return false;
  // "1234 (name) T …", proc(5)
  const std::string status = all_of("/proc/" + std::to_string(workers_[index].id()) + "/stat");
  const auto name_end = status.rfind(')');
  return name_end != std::string::npos && status.compare(name_end, 3, ") T") == 0;
}

int TrainingRun::wait_for_worker(size_t index, int limit) {
  wait_until(limit, "a worker's end", [&] { return !worker_runs(index); });
  return *workers_.at(index).poll();
}

bool TrainingRun::signal_worker(size_t index, int signal) {
  if (!worker_runs(index)) return false;
  return ::kill(workers_[index].id(), signal) == 0;
}

bool TrainingRun::server_runs() { return server_ && !server_->poll(); }

int TrainingRun::wait_for_server(int limit) {
  wait_until(limit, "the server's end", [this] { return !server_runs(); });
  return *server_->poll();
}

std::vector<nlohmann::json> TrainingRun::events(const std::string& type) const {
  std::istringstream lines(all_of(directory() / "metrics.jsonl"));
  std::vector<nlohmann::json> found;
  for (std::string line; std::getline(lines, line);) {
    auto parsed = nlohmann::json::parse(line, nullptr, false);
    if (!parsed.is_discarded() && parsed.value("type", "") == type)
      found.push_back(std::move(parsed));
  }
  return found;
}

int64_t TrainingRun::step() const {
  const auto steps = events("step");
  return steps.empty() ? -1 : steps.back().at("step").get<int64_t>();
}

void TrainingRun::wait_for_log(const std::string& text, int limit) const {
  wait_until(limit, text.c_str(), [&] { return server_log().find(text) != std::string::npos; });
}

void TrainingRun::wait_for_plan(bool away, int limit) const {
  wait_until(limit, away ? "a plan with stems away" : "a plan without stems away", [&] {
    const auto plans = events("plan");
    return !plans.empty() && (plans.back().at("stemsAway").get<int>() > 0) == away;
  });
}

void TrainingRun::wait_for_step(int64_t step, int limit) {
  wait_until(limit, "a step", [&] { return this->step() >= step || !server_runs(); });
}

std::vector<int64_t> TrainingRun::checkpoints() const {
  std::vector<int64_t> steps;
  if (!std::filesystem::exists(checkpoint_directory_)) return steps;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint_directory_)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("step-")) steps.push_back(std::stoll(name.substr(5)));
  }
  std::ranges::sort(steps);
  return steps;
}

std::string TrainingRun::weights() const {
  const auto steps = checkpoints();
  if (steps.empty()) return "none";
  const auto folder = checkpoint_directory_ / ("step-" + std::to_string(steps.back()));
  const std::string all =
      tensors_of(folder / "weights.safetensors") + tensors_of(folder / "optimizer.safetensors");
  return std::to_string(steps.back()) + ":" + to_hex(sha256(std::as_bytes(std::span(all))));
}

std::map<uint64_t, AuditLine> TrainingRun::audit() const {
  std::istringstream lines(all_of(directory() / "audit.jsonl"));
  std::map<uint64_t, AuditLine> audit;
  for (std::string line; std::getline(lines, line);) {
    const auto parsed = nlohmann::json::parse(line);
    if (!parsed.contains("step")) continue;
    audit[parsed.at("step").get<uint64_t>()] = {
        parsed.at("firstSlot").get<uint64_t>(),
        parsed.at("samples").get<std::vector<std::vector<uint32_t>>>(),
        parsed.at("pixels").get<std::vector<std::string>>()};
  }
  return audit;
}

std::string TrainingRun::server_log() const { return all_of(folder_.path() / "server.log"); }

std::string TrainingRun::worker_log(size_t index) const {
  return all_of(folder_.path() / ("worker-" + std::to_string(index) + ".log"));
}

std::unique_ptr<TrainingRun> train(const JobText& job, int workers) {
  auto run = std::make_unique<TrainingRun>(job);
  run->start_server();
  for (int i = 0; i < workers; ++i) run->start_worker();
  const int limit = 120 + job.steps / 10;  // seconds; the long storms train for thousands of steps
  EXPECT_EQ(run->wait_for_server(limit), 0) << run->server_log();
  return run;
}

void expect_same_run(const TrainingRun& run, const TrainingRun& truth, const std::string& what) {
  EXPECT_NE(truth.weights(), "none") << what;
  EXPECT_EQ(run.weights(), truth.weights()) << what;
  const auto audit = run.audit();
  EXPECT_EQ(audit, truth.audit()) << what;
  uint64_t slot = 0;
  for (const auto& [step, line] : audit) {
    EXPECT_EQ(line.first_slot, slot) << what << ", step " << step;
    for (const auto& samples : line.samples) slot += samples.size();
  }
}

std::map<std::string, std::vector<float>> tensors(const std::filesystem::path& file) {
  const nn::SafetensorsReader reader(file);
  std::map<std::string, std::vector<float>> values;
  for (const auto& tensor : reader.tensors()) {
    if (tensor.type == "F32") values[tensor.name] = reader.read(tensor);
  }
  return values;
}

}  // namespace outrigger::integration
