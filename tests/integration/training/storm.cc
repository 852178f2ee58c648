#include "tests/integration/training/storm.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <regex>
#include <sstream>
#include <thread>

namespace outrigger::integration {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Fault::Kind;

constexpr const char* kAnyMoment = "any moment";
constexpr size_t kAtOnce = 3;
/// Longer than the server waits before it leases late work a second time.
constexpr milliseconds kPause{700};
/// Longer than a link's silence limit.
constexpr seconds kStopped{7};
/// A fault that has not struck by then wants something that does not happen now.
constexpr seconds kPatience{10};

const char* signal_name(Kind kind) {
  if (kind == Kind::kKill) return "KILL";
  return kind == Kind::kLeave ? "TERM" : "STOP";
}

}  // namespace

std::string to_string(const Fault& fault) {
  constexpr std::array kKinds{"kill", "stop", "pause", "leave"};
  return std::string(kKinds.at(static_cast<size_t>(fault.kind))) + " at " + fault.point;
}

std::vector<Fault> every_kind_at(const std::vector<std::string>& points) {
  std::vector<Fault> faults;
  for (const Kind kind : {Kind::kKill, Kind::kPause, Kind::kLeave, Kind::kStop}) {
    for (const std::string& point : points) faults.push_back({point, kind});
  }
  return faults;
}

Storm::Storm(TrainingRun& run, std::vector<Fault> faults, uint64_t seed)
    : run_(run),
      faults_(std::move(faults)),
      random_(seed, RandomUse::kSyntheticData, 1),
      worse_data_(run.data().parent_path() / "worse") {
  std::filesystem::create_directories(worse_data_);
  std::filesystem::create_directory_symlink(run.data() / "train", worse_data_ / "train");
}

void Storm::start_one() {
  if (queue_.empty()) queue_.assign(faults_.begin(), faults_.end());
  const Fault fault = queue_.front();
  queue_.pop_front();
  // A backward is leased where another worker was lost with a gradient on its way.
  if (fault.point == "got-backward-lease") {
    queue_.push_front({"got-gradient", Kind::kPause});
    queue_.push_front({"got-gradient", Kind::kKill});
  }
  WorkerStart start;
  const bool from_outside = fault.point == kAnyMoment;
  if (fault.point == "sent-read-failed") start.data = worse_data_;
  if (!from_outside) {
    // What a worker does once in its life, or seldom, strikes at the first time.
    const bool often = fault.point == "got-lease" || fault.point == "sent-micro-batch";
    const uint32_t count = often ? 1 + random_.below(4) : 1;
    start.fault = fault.point + ":" + std::to_string(count) + ":" + signal_name(fault.kind);
  }
  Victim victim;
  victim.fault = fault;
  victim.index = run_.start_worker(start);
  victim.started = std::chrono::steady_clock::now();
  victim.strike = victim.started + milliseconds(random_.below(2500));
  by_index_[victim.index] = fault;
  victims_.push_back(std::move(victim));
}

bool Storm::has_struck(const Victim& victim) const {
  return run_.worker_log(victim.index).find("fault point") != std::string::npos;
}

void Storm::note(Victim& victim) { ++counts_[victim.fault]; }

void Storm::help(Victim& victim, Time now) {
  victim.strike = Time::max();
  if (victim.fault.point == kAnyMoment) {
    constexpr std::array kSignals{SIGKILL, SIGSTOP, SIGSTOP, SIGTERM};
    const int signal = kSignals.at(static_cast<size_t>(victim.fault.kind));
    if (run_.signal_worker(victim.index, signal) && signal != SIGSTOP) note(victim);
  } else if (victim.fault.point == "sent-leaving") {
    run_.signal_worker(victim.index, SIGTERM);  // somebody has to ask it to
  } else if (victim.fault.point == "got-cancel") {
    // Only who is late is told that others were quicker.
    const bool waits = run_.worker_is_stopped(victim.index);
    run_.signal_worker(victim.index, waits ? SIGCONT : SIGSTOP);
    victim.strike = now + (waits ? 2 * kPause : kPause);
  }
}

void Storm::look_at(Victim& victim, Time now) {
  const bool outside = victim.fault.point == kAnyMoment;
  if (!run_.worker_runs(victim.index)) {
    if (!outside && !victim.stopped && has_struck(victim)) note(victim);
    victim.over = true;
    return;
  }
  if (!victim.stopped && run_.worker_is_stopped(victim.index) && (outside || has_struck(victim))) {
    note(victim);
    victim.stopped = true;
    victim.stopped_at = now;
  }
  if (now >= victim.strike && !victim.stopped) help(victim, now);
  if (victim.stopped) {
    const bool pause = victim.fault.kind == Kind::kPause;
    if (pause && run_.worker_is_stopped(victim.index) && now > victim.stopped_at + kPause)
      run_.signal_worker(victim.index, SIGCONT);
    if (now < victim.stopped_at + (pause ? 2 * kPause : kStopped)) return;
  } else if (now < victim.started + kPatience) {
    return;
  }
  run_.signal_worker(victim.index, SIGKILL);
}

void Storm::rage(size_t least, std::chrono::seconds limit) {
  const Time give_up = std::chrono::steady_clock::now() + limit;
  Time next_look{};
  while (run_.server_runs()) {
    const Time now = std::chrono::steady_clock::now();
    if (now > give_up) return;
    for (Victim& victim : victims_) look_at(victim, now);
    std::erase_if(victims_, [](const Victim& victim) { return victim.over; });
    const auto alive = std::ranges::count_if(victims_, [](const Victim& victim) {
      return !victim.stopped || victim.fault.kind == Kind::kPause;
    });
    if (static_cast<size_t>(alive) < kAtOnce && victims_.size() < 2 * kAtOnce) start_one();
    if (struck() >= least && now > next_look) {
      if (missing().empty()) return;
      next_look = now + seconds(1);
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
}

size_t Storm::struck() const {
  size_t sum = 0;
  for (const auto& count : counts_) sum += count.second;
  return sum;
}

Storm::Held Storm::held() const {
  static const std::regex line(R"(/(\d+) \([^)]*\) gives back (.*))");
  static const std::regex item(R"((\d+) ([A-Za-z]+))");
  Held held;
  std::istringstream lines(run_.server_log());
  for (std::string text; std::getline(lines, text);) {
    std::smatch match;
    if (!std::regex_search(text, match, line)) continue;
    const auto fault = by_index_.find(std::stoul(match[1]));
    if (fault == by_index_.end()) continue;
    const std::string items = match[2];
    for (std::sregex_iterator at(items.begin(), items.end(), item), end; at != end; ++at)
      held[{(*at)[2], fault->second.kind}] += std::stoul((*at)[1]);
  }
  return held;
}

std::vector<std::string> Storm::missing() const {
  std::vector<std::string> missing;
  for (const Fault& fault : faults_) {
    if (!counts_.contains(fault)) missing.push_back(to_string(fault));
  }
  // What a stopped worker held was done by others before it is given up.
  const Held seen = held();
  for (const char* state : {"Leased", "Received", "HeadDone"}) {
    for (const Kind kind : {Kind::kKill, Kind::kLeave}) {
      if (!seen.contains({state, kind})) missing.push_back(to_string({state, kind}));
    }
  }
  return missing;
}

}  // namespace outrigger::integration
