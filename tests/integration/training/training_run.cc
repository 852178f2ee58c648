#include "tests/integration/training/training_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <thread>

#include "common/hash.h"
#include "data/synthetic/faces.h"

namespace outrigger::integration {
namespace {

using std::chrono::milliseconds;

constexpr const char* kSmallNet = R"(
    layers:
      - {name: conv1, convolution: {channels: 8, kernel: 3, stride: 2, padding: 1}}
      - {name: bn1, batchNorm: {}}
      - {name: relu1, relu: {}}
      - {name: conv2, convolution: {channels: 16, kernel: 3, stride: 2, padding: 1}}
      - {name: bn2, batchNorm: {}}
      - {name: relu2, relu: {}}
      - {name: drop2, dropout: {rate: 0.2}}
      - {name: conv3, convolution: {channels: 16, kernel: 3, padding: 1}}
      - {name: bn3, batchNorm: {}}
      - {name: add3, add: {}, inputs: [bn3, drop2]}
      - {name: relu3, relu: {}}
      - {name: pool, globalAveragePool: {}}
      - {name: flat, flatten: {}}
      - {name: drop, dropout: {rate: 0.3}}
      - {name: classifier, linear: {features: 12}}
)";

std::string job_text(const JobText& job, const std::filesystem::path& data,
                     const std::filesystem::path& output) {
  std::ostringstream text;
  text << "apiVersion: outrigger.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: test}\nspec:\n  "
          "model:"
       << (job.model.empty() ? kSmallNet : job.model + "\n") << "  data:\n"
       << "    train: {path: " << (data / "train").string() << ", format: ImageFolder}\n"
       << "    image: {height: 32, width: 32, channels: 3}\n"
       << "    maxBadFraction: " << job.max_bad_fraction << "\n"
       << "    augment: [{randomHorizontalFlip: {}}, {randomResizedCrop: {minScale: 0.7, maxScale: "
          "1.0}}]\n"
       << "  training:\n    steps: " << job.steps << "\n    batchSize: 16\n    microBatchSize: 4\n"
       << "    loss: {softmaxCrossEntropy: {labelSmoothing: 0.1}}\n"
       << "    optimizer: {sgd: {momentum: 0.9, weightDecay: 0.0005}}\n"
       << "    schedule: {constant: {base: " << job.rate << "}}\n    clipGradientNorm: 5\n"
       << "    precision: " << job.precision << "\n    staleness: " << job.staleness
       << "\n    seed: " << job.seed << "\n"
       << job.more_training << "  split: {cut: " << job.cut << ", sharePercent: " << job.share
       << (job.wire.empty() ? "" : ", wire: " + job.wire) << "}\n"
       << "  server: {replicas: " << job.replicas
       << ", gpus: 0}\n  workers: {replicas: 0}\n  output: {path: " << output.string() << "}\n"
       << "  checkpoint: {everySteps: " << job.checkpoint_every << ", keep: 2}\n";
  return text.str();
}

std::string all_of(const std::filesystem::path& path) {
  return std::filesystem::exists(path) ? read_file(path) : std::string();
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

const std::filesystem::path& faces() {
  static const TemporaryDirectory folder("outrigger-faces");
  static const std::filesystem::path path = [] {
    data::FacesOptions options;
    options.identities = 12;
    options.train_per_identity = 7;
    options.validation_per_identity = 3;
    options.size = 40;
    data::generate_faces(options, folder.path() / "faces");
    return folder.path() / "faces";
  }();
  return path;
}

TrainingRun::TrainingRun(const JobText& job)
    : replicas_(job.replicas), wanted_port_(job.port), data_(faces()) {
  if (job.copy_data || job.broken_images > 0) {
    data_ = folder_.path() / "faces";
    std::filesystem::copy(faces(), data_, std::filesystem::copy_options::recursive);
  }
  int broken = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data_ / "train")) {
    if (broken == job.broken_images) break;
    if (!entry.is_regular_file()) continue;
    std::filesystem::resize_file(entry.path(), 40);
    ++broken;
  }
  job_file_ = folder_.path() / "job.yaml";
  token_file_ = folder_.path() / "token";
  write_file_atomically(job_file_, job_text(job, data_, folder_.path() / "out"));
  write_file_atomically(token_file_, "integration-token\n", 0600);
}

TrainingRun::~TrainingRun() {
  for (auto& worker : workers_) ::kill(worker.id(), SIGCONT);
  if (::testing::Test::HasFailure())
    std::fprintf(stderr, "---- server log\n%s\n", server_log().c_str());
}

void TrainingRun::start_server(bool resume) {
  std::filesystem::remove(directory() / "server.json");
  std::vector<std::string> arguments{"--job",         job_file_.string(),
                                     "--token-file",  token_file_.string(),
                                     "--listen",      "127.0.0.1",
                                     "--port",        std::to_string(wanted_port_),
                                     "--status-port", "0",
                                     "--threads",     "2",
                                     "--replicas",    std::to_string(replicas_)};
  if (resume) arguments.emplace_back("--resume");
  server_.emplace(OUTRIGGER_SERVER, arguments, folder_.path() / "server.log");
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
                                     "--rendezvous",  "127.0.0.1:" + std::to_string(port_)};
  if (resume) arguments.emplace_back("--resume");
  second_.emplace(OUTRIGGER_SERVER, arguments, folder_.path() / "server-1.log");
  wait_until(60, "the second rank's port", [this] {
    return std::filesystem::exists(directory() / "server-1.json") || second_->poll();
  });
}

void TrainingRun::signal_second_rank(int signal) { ::kill(second_->id(), signal); }

int TrainingRun::wait_for_second_rank(int limit) {
  wait_until(limit, "the second rank's end", [this] { return second_->poll().has_value(); });
  return *second_->poll();
}

void TrainingRun::start_worker(const std::string& fault, bool of_second_rank) {
  const int port =
      of_second_rank
          ? nlohmann::json::parse(read_file(directory() / "server-1.json")).at("port").get<int>()
          : port_;
  if (!fault.empty()) ::setenv("OUTRIGGER_FAULT", fault.c_str(), 1);
  const auto log = folder_.path() / ("worker-" + std::to_string(workers_.size()) + ".log");
  workers_.emplace_back(
      OUTRIGGER_WORKER,
      std::vector<std::string>{"--server", "127.0.0.1:" + std::to_string(port), "--token-file",
                               token_file_.string(), "--status-port", "0", "--threads", "1",
                               "--index", std::to_string(workers_.size()), "--listen", "127.0.0.1"},
      log);
  ::unsetenv("OUTRIGGER_FAULT");
}

void TrainingRun::signal_server(int signal) { ::kill(server_->id(), signal); }

bool TrainingRun::worker_runs(size_t index) {
  return index < workers_.size() && !workers_[index].poll();
}

void TrainingRun::wait_for_worker(size_t index, int limit) {
  wait_until(limit, "a worker's end", [&] { return !worker_runs(index); });
}

void TrainingRun::change_every_image() {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data_ / "train")) {
    if (entry.is_regular_file()) std::ofstream(entry.path(), std::ios::app) << "x";
  }
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

int64_t TrainingRun::step() const {
  std::istringstream lines(all_of(directory() / "metrics.jsonl"));
  int64_t newest = -1;
  for (std::string line; std::getline(lines, line);) {
    const auto parsed = nlohmann::json::parse(line, nullptr, false);
    if (!parsed.is_discarded() && parsed.value("type", "") == "step")
      newest = parsed.at("step").get<int64_t>();
  }
  return newest;
}

void TrainingRun::wait_for_step(int64_t step, int limit) {
  wait_until(limit, "a step", [&] { return this->step() >= step || !server_runs(); });
}

std::string TrainingRun::weights() const {
  int64_t newest = -1;
  if (!std::filesystem::exists(directory())) return "none";
  for (const auto& entry : std::filesystem::directory_iterator(directory())) {
    const std::string name = entry.path().filename();
    if (name.starts_with("step-")) newest = std::max<int64_t>(newest, std::stoll(name.substr(5)));
  }
  if (newest < 0) return "none";
  const auto folder = directory() / ("step-" + std::to_string(newest));
  const std::string all =
      tensors_of(folder / "weights.safetensors") + tensors_of(folder / "optimizer.safetensors");
  return std::to_string(newest) + ":" + to_hex(sha256(std::as_bytes(std::span(all))));
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
  EXPECT_EQ(run->wait_for_server(), 0) << run->server_log();
  return run;
}

}  // namespace outrigger::integration
