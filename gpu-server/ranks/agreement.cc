#include "gpu-server/ranks/agreement.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <numeric>
#include <string>
#include <utility>

#include "common/bytes.h"
#include "common/error.h"
#include "common/log.h"
#include "common/thread_name.h"
#include "nn/cpu/instruction_set.h"

namespace outrigger::gpu_server {
namespace {

// Where things lie in the sum over ranks. It carries the first rank's plan, since the others add
// zeros; every number is small enough for a float to hold exactly.
constexpr size_t kStop = 0;
constexpr size_t kStopEarly = 1;
constexpr size_t kPlan = 2;
constexpr size_t kHears = 9;
constexpr size_t kDeadline = 10;  // in seconds
constexpr size_t kTellsBroken = 11;
constexpr size_t kWaitOn = 12;
constexpr size_t kVotes = 13;
using Votes = std::array<float, kVotes>;

void write_plan(const feed::Plan& plan, std::span<float> to) {
  to[0] = 1;
  to[1] = static_cast<float>(plan.number);
  to[2] = static_cast<float>(plan.cut);
  to[3] = static_cast<float>(plan.stems_away);
  to[4] = static_cast<float>(plan.activations);
  to[5] = static_cast<float>(plan.gradients);
  to[6] = static_cast<float>(plan.local_inputs);
}

feed::Plan read_plan(std::span<const float> from) {
  feed::Plan plan;
  plan.number = static_cast<uint64_t>(from[1]);
  plan.cut = static_cast<int32_t>(from[2]);
  plan.stems_away = static_cast<uint32_t>(from[3]);
  plan.activations = static_cast<WireFormat>(static_cast<int>(from[4]));
  plan.gradients = static_cast<WireFormat>(static_cast<int>(from[5]));
  plan.local_inputs = static_cast<uint32_t>(from[6]);
  return plan;
}

Votes votes_of(const Wishes& mine, bool first_rank) {
  Votes votes{};
  votes[kStop] = mine.stop ? 1.0f : 0.0f;
  votes[kStopEarly] = mine.stop_early ? 1.0f : 0.0f;
  votes[kTellsBroken] = mine.tells_broken ? 1.0f : 0.0f;
  if (first_rank) {
    if (mine.plan) write_plan(*mine.plan, std::span(votes).subspan<kPlan>());
    votes[kHears] = mine.hears ? 1.0f : 0.0f;
    votes[kDeadline] = static_cast<float>(to_seconds(mine.progress_deadline));
  }
  return votes;
}

Wishes wishes_of(const Votes& votes) {
  const std::span<const float> plan = std::span(votes).subspan<kPlan>();
  Wishes all{.stop = votes[kStop] > 0,
             .stop_early = votes[kStopEarly] > 0,
             .hears = votes[kHears] > 0,
             .progress_deadline = std::chrono::duration_cast<Duration>(
                 std::chrono::duration<double>(votes[kDeadline])),
             .tells_broken = votes[kTellsBroken] > 0};
  if (plan[0] > 0) all.plan = read_plan(plan);
  return all;
}

// Byte by byte: a float holds every whole number up to 2^24, and not all beyond.
std::vector<float> to_floats(const Start& start) {
  ByteWriter writer;
  writer.number(start.step);
  writer.number(start.total_steps);
  writer.number(start.samples);
  writer.raw(start.data.data(), start.data.size());
  std::vector<float> floats;
  for (const std::byte byte : writer.take())
    floats.push_back(static_cast<float>(std::to_integer<uint8_t>(byte)));
  return floats;
}

Start to_start(std::span<const float> floats) {
  Bytes bytes;
  for (const float value : floats) bytes.push_back(static_cast<std::byte>(value));
  ByteReader reader(bytes);
  Start start;
  start.step = reader.number<uint64_t>();
  start.total_steps = reader.number<uint64_t>();
  start.samples = reader.number<uint32_t>();
  std::ranges::copy(reader.raw(start.data.size()), start.data.begin());
  return start;
}

std::string data_of(const Start& start) {
  constexpr size_t kEnough = 16;
  return std::to_string(start.samples) + " samples (" + to_hex(start.data).substr(0, kEnough) + ")";
}

/// `of`: what they must have in common, as text.
template <typename Of>
void refuse_unlike(const std::vector<Start>& starts, const Of& of, const std::string& what,
                   const std::string& hint) {
  std::string all;
  bool same = true;
  for (const Start& start : starts) {
    all += (all.empty() ? "" : ", ") + of(start);
    same = same && of(start) == of(starts.front());
  }
  if (!same) throw IoError("the replicas " + what + ", by rank " + all + ": " + hint);
}

}  // namespace

Wishes Agreement::settle(const Wishes& mine) {
  if (reducer_ == nullptr) return mine;
  const Votes told = votes_of(mine, reducer_->rank() == 0);
  while (true) {
    Votes all = told;
    if (stop_) all[kStop] = 1;
    reducer_->all_reduce(all);
    if (all[kWaitOn] == 0) return wishes_of(all);
    ++waits_;
  }
}

// Sums, to which the others add zeros.
std::vector<std::vector<float>> Agreement::gather(std::span<const float> mine) {
  const uint32_t rank = reducer_->rank();
  std::vector<float> sizes(reducer_->replicas());
  sizes[rank] = static_cast<float>(mine.size());
  reducer_->all_reduce(sizes);
  const auto begin_of = [&](size_t which) {
    return static_cast<size_t>(std::accumulate(sizes.begin(), sizes.begin() + which, 0.0));
  };
  std::vector<float> all(begin_of(sizes.size()));
  std::ranges::copy(mine, all.begin() + static_cast<ptrdiff_t>(begin_of(rank)));
  if (!all.empty()) reducer_->all_reduce(all);
  std::vector<std::vector<float>> told;
  for (size_t i = 0; i < sizes.size(); ++i)
    told.emplace_back(all.begin() + static_cast<ptrdiff_t>(begin_of(i)),
                      all.begin() + static_cast<ptrdiff_t>(begin_of(i + 1)));
  return told;
}

void Agreement::agree_on_instruction_set() {
  if (reducer_ == nullptr) return;
  const std::vector<std::string> sets = nn::cpu::instruction_sets();
  const std::string own = nn::cpu::instruction_set();
  auto least = std::ranges::find(sets, own) - sets.begin();
  const std::array mine{static_cast<float>(least)};
  for (const std::vector<float>& theirs : gather(mine))
    least = std::min(least, static_cast<ptrdiff_t>(theirs.at(0)));
  const std::string& all = sets.at(static_cast<size_t>(least));
  if (all != own) log::info("computing with {} instead of {}: another rank has no more", all, own);
  nn::cpu::set_instruction_set(all);
}

void Agreement::check_start(const Start& mine) {
  if (reducer_ == nullptr) return;
  std::vector<Start> starts;
  for (const std::vector<float>& theirs : gather(to_floats(mine)))
    starts.push_back(to_start(theirs));
  refuse_unlike(
      starts, [](const Start& start) { return std::to_string(start.step); },
      "start from different steps", "do they see the same checkpoints?");
  refuse_unlike(starts, data_of, "list different data for spec.data.train",
                "did files come or go while they started, or do they read copies that differ?");
  refuse_unlike(
      starts, [](const Start& start) { return std::to_string(start.total_steps); },
      "would end at different steps", "were they started with the same job?");
}

KeepWaiting::KeepWaiting(training::Reducer& reducer, Duration every,
                         std::function<void()> interrupt)
    : reducer_(reducer), every_(every), interrupt_(std::move(interrupt)) {
  thread_ = std::jthread([this](const std::stop_token& over) { loop(over); });
}

void KeepWaiting::loop(const std::stop_token& over) {
  name_thread("ranks-wait");
  std::unique_lock lock(mutex_);
  try {
    while (true) {
      wake_.wait_for(lock, over, every_, [] { return false; });
      if (over.stop_requested()) return;
      Votes votes{};
      votes[kWaitOn] = 1;
      reducer_.all_reduce(votes);
      if (votes[kStop] > 0) interrupt_();
    }
  } catch (const std::exception& error) {
    log::warning("while the first rank works alone: {}", error.what());
    interrupt_();
  }
}

}  // namespace outrigger::gpu_server
