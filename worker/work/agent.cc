#include "worker/work/agent.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "common/error.h"

namespace outrigger::worker {
using feed::WorkKind;

int64_t scored_at_once(int64_t micro_batch) {
  constexpr int64_t kMost = 8;
  return std::min(micro_batch, kMost);
}

Agent::Agent(AgentOptions options, const nn::Graph& graph, const nn::Backend& backend,
             ThreadPool& threads, PixelSource& pixels)
    : options_(std::move(options)),
      graph_(graph),
      threads_(threads),
      stems_(graph, backend,
             {.segment = {},
              .batch = options_.micro_batch,
              .precision = options_.precision,
              .mode = nn::Mode::kTraining,
              .input_gradient = false,
              .seed = options_.seed,
              .time_layers = true},
             threads),
      scorer_(graph, backend, threads,
              {.batch = scored_at_once(options_.micro_batch),
               .precision = options_.precision,
               .embeddings = options_.score_embeddings}),
      quota_(threads.size(), options_.alone),
      decoder_(threads, pixels, options_.neighbour),
      room_(options_.leases, options_.asked_at_once) {
  outbox_.push_back(feed::Pull{options_.leases});
}

std::vector<feed::WorkerMessage> Agent::take_outbox() { return std::exchange(outbox_, {}); }

// ---- messages

void Agent::receive(feed::ServerMessage message) {
  std::visit([this](auto& one) { take(std::move(one)); }, message);
}

void Agent::take(feed::Lease&& lease) {
  if (lease.samples.empty())
    throw InvalidInput("lease " + to_string(lease.key) + " without samples");
  const bool scores = lease.kind == WorkKind::kScore;
  if (scores && static_cast<int64_t>(lease.samples.size()) > scored_at_once(options_.micro_batch)) {
    throw InvalidInput("lease " + to_string(lease.key) + " wants " +
                       std::to_string(lease.samples.size()) + " scores, " +
                       std::to_string(scored_at_once(options_.micro_batch)) + " are allowed");
  }
  if (!scores && lease.cut > 0 &&
      static_cast<int64_t>(lease.samples.size()) != options_.micro_batch) {
    throw InvalidInput("lease " + to_string(lease.key) + " has " +
                       std::to_string(lease.samples.size()) + " samples, a micro-batch has " +
                       std::to_string(options_.micro_batch));
  }
  had_work_ = true;
  // Others are not for the server's device as they are.
  const bool sends_pixels = lease.kind == WorkKind::kForward && lease.cut == 0;
  const feed::WorkKey key = lease.key;
  auto gradient = std::move(lease.cut_gradient);
  const auto shared = std::make_shared<const feed::Lease>(std::move(lease));
  auto decoding = std::make_shared<Decoding>(shared, graph_.input(),
                                             sends_pixels ? options_.pixel_memory.get() : nullptr);
  const auto [at, is_new] = works_.emplace(key, Work{.lease = shared,
                                                     .decoding = std::move(decoding),
                                                     .gradient = std::move(gradient),
                                                     .room_given_back = scores});  // it took none
  if (is_new && !scores) room_.take();
}

void Agent::take(feed::StemWeights&& weights) {
  if (weights.cut != graph_.size()) {
    stems_.add(std::move(weights));
    return;
  }
  const bool fit = weights.parameters != nullptr && weights.buffers != nullptr &&
                   static_cast<int64_t>(weights.parameters->size()) == graph_.parameter_count() &&
                   static_cast<int64_t>(weights.buffers->size()) == graph_.buffer_count();
  if (!fit)
    throw InvalidInput("the weights to evaluate, version " + std::to_string(weights.version) +
                       ", do not fit the network");
  to_score_ = std::move(weights);
}

void Agent::take(feed::CutGradient&& gradient) {
  const auto found = works_.find(gradient.key);
  if (found == works_.end()) return;  // given up meanwhile; the server leases the backward again
  if (found->second.stage != Stage::kAwaitGradient) {
    throw InvalidInput("gradient at the cut for " + to_string(gradient.key) +
                       ", which has no activations");
  }
  found->second.gradient = std::move(gradient.gradient);
  found->second.stage = Stage::kBackward;
}

void Agent::take(feed::Cancel&& cancel) {
  const auto found = works_.find(cancel.key);
  if (found != works_.end()) drop(found);
}

void Agent::take(feed::Committed&& committed) {
  for (auto at = works_.begin(); at != works_.end();) {
    at = at->first.step < committed.step ? drop(at) : std::next(at);
  }
  stems_.drop_before(committed.oldest_version);
  std::set<int32_t> cuts;
  for (const auto& work : works_) cuts.insert(work.second.lease->cut);
  stems_.keep_cuts(cuts);
}

void Agent::take(feed::Farewell&& farewell) { farewell_ = std::move(farewell); }

// ---- work

feed::WorkTimes Agent::times_of(const Work& work) const {
  feed::WorkTimes times = work.times;
  times.cut = work.lease->cut;
  times.decoded_ago =
      std::chrono::duration<float>(std::chrono::steady_clock::now() - work.decoding->made_at())
          .count();
  times.bytes_per_second = link_rate_;
  return times;
}

Agent::Works::iterator Agent::find_ready(Stage stage) {
  return std::ranges::find_if(works_, [&](const auto& entry) {
    const Work& work = entry.second;
    return work.stage == stage &&
           (stage != Stage::kForward || stems_.has(work.lease->stem_version, work.lease->cut));
  });
}

bool Agent::work() {
  if (const auto made = find_decoded(); made != works_.end()) {
    finish_decoding(made);
  } else if (const auto at = find_ready(Stage::kBackward); at != works_.end()) {
    backward(at);
  } else if (const auto ready = find_ready(Stage::kForward); ready != works_.end()) {
    if (threads_.size() > options_.stem_threads) offer_leases();  // to those who have no part in it
    forward(ready);
  } else {
    return work_ahead();
  }
  return true;
}

bool Agent::work_ahead() {
  const auto next = find_ready(Stage::kDecode);
  const auto whole = find_ready(Stage::kScore);
  // Scores do not keep the worker from what training has for it.
  if (next == works_.end() || next->second.lease->kind == WorkKind::kScore) send(room_.ask());
  const bool score_first =
      whole != works_.end() && (next == works_.end() || whole->first < next->first);
  if (!score_first && next != works_.end() && decode()) return true;
  // Nor from what others still have to decode for it.
  if (whole == works_.end() || (!score_first && decoder_.has_some())) return prepare();
  score(whole);
  return true;
}

void Agent::give_room_back(Work& work) {
  if (std::exchange(work.room_given_back, true)) return;
  send(room_.give_back(work.times.decode + work.times.forward));
}

void Agent::send(const std::optional<feed::Pull>& pull) {
  if (pull && pulling_) outbox_.push_back(*pull);
}

Agent::Works::iterator Agent::finish(Works::iterator at) {
  give_room_back(at->second);
  decoder_.remove(at->first);
  stems_.give_back_tape(at->second.lease->cut, std::move(at->second.tape));
  return works_.erase(at);
}

// What it would have taken is not known.
Agent::Works::iterator Agent::drop(Works::iterator at) {
  const auto next = finish(at);
  send(room_.ask());
  return next;
}

}  // namespace outrigger::worker
