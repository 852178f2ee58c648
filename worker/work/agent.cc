#include "worker/work/agent.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "common/error.h"

namespace outrigger::worker {
using feed::WorkKind;

namespace {

template <typename Do>
float seconds_of(Quota& quota, int threads, const Do& work) {
  Spent spent;
  {
    const Stopwatch watch(spent);
    work();
  }
  quota.worked(spent.processor, threads);
  return static_cast<float>(spent.lasting(quota.slowdown()));
}

/// For its life the thread does what is done once.
class Once {
 public:
  explicit Once(Quota& quota) : quota_(quota), watch_(std::in_place, spent_) {}
  ~Once() {
    watch_.reset();
    quota_.leave_out(spent_.processor);
  }
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

 private:
  Quota& quota_;
  Spent spent_;
  std::optional<Stopwatch> watch_;
};

}  // namespace

int64_t scored_at_once(int64_t micro_batch) {
  constexpr int64_t kMost = 8;
  return std::min(micro_batch, kMost);
}

Agent::Agent(AgentOptions options, const nn::Graph& graph, const nn::Backend& backend,
             ThreadPool& threads, PixelSource& pixels)
    : options_(std::move(options)),
      graph_(graph),
      threads_(threads),
      pixels_(pixels),
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
  Decoding decoding(lease.samples.size(), graph_.input(),
                    sends_pixels ? options_.pixel_memory.get() : nullptr);
  const feed::WorkKey key = lease.key;
  auto gradient = lease.cut_gradient;
  works_.emplace(key, Work{.lease = std::move(lease),
                           .decoding = std::move(decoding),
                           .gradient = std::move(gradient),
                           .room_given_back = scores});  // it took none
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
  for (const auto& work : works_) cuts.insert(work.second.lease.cut);
  stems_.keep_cuts(cuts);
}

void Agent::take(feed::Farewell&& farewell) { farewell_ = std::move(farewell); }

// ---- work

feed::WorkTimes Agent::times_of(const Work& work) const {
  feed::WorkTimes times = work.times;
  times.cut = work.lease.cut;
  times.decoded_ago =
      std::chrono::duration<float>(std::chrono::steady_clock::now() - work.decoding.made_at())
          .count();
  times.bytes_per_second = link_rate_;
  return times;
}

Agent::Works::iterator Agent::find_ready(Stage stage) {
  return std::ranges::find_if(works_, [&](const auto& entry) {
    const Work& work = entry.second;
    return work.stage == stage &&
           (stage != Stage::kForward || stems_.has(work.lease.stem_version, work.lease.cut));
  });
}

bool Agent::work() {
  if (const auto at = find_ready(Stage::kBackward); at != works_.end()) {
    backward(at);
  } else if (const auto ready = find_ready(Stage::kForward); ready != works_.end()) {
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
  if (next == works_.end() || next->second.lease.kind == WorkKind::kScore) send(room_.ask());
  if (whole != works_.end() && (next == works_.end() || whole->first < next->first)) {
    score(whole);
  } else if (next != works_.end()) {
    decode(next);
  } else {
    return prepare();
  }
  return true;
}

bool Agent::prepare() {
  const Once once(quota_);
  return prepare_stems();
}

// Of one step, whose weights they all wait for: those before have given their tapes back by then.
bool Agent::prepare_stems() {
  const auto waits = [](const auto& entry) { return entry.second.stage == Stage::kForward; };
  const auto first = std::ranges::find_if(works_, waits);
  if (first == works_.end()) return false;
  const int32_t cut = first->second.lease.cut;
  // The others give their tape back before the next one needs it.
  const auto keeps = std::ranges::count_if(works_, [&](const auto& entry) {
    const auto& [key, work] = entry;
    return waits(entry) && key.step == first->first.step && work.lease.cut == cut &&
           work.lease.kind == WorkKind::kForward && work.lease.stem_trains;
  });
  return stems_.prepare(cut, std::max<size_t>(1, static_cast<size_t>(keeps)));
}

// Pixels take much besides to the little that decoding does, stems little to the much that they do.
void Agent::note_kind(bool stem) {
  constexpr uint32_t kNoMoreStems = 64;
  pixels_in_row_ = stem ? 0 : pixels_in_row_ + 1;
  const bool runs_stems = stem || (runs_stems_ && pixels_in_row_ < kNoMoreStems);
  if (runs_stems == runs_stems_) return;
  runs_stems_ = runs_stems;
  quota_.begin_anew();
}

void Agent::decode(Works::iterator at) {
  const Crew crew{threads_, quota_, options_.neighbour};
  Work& work = at->second;
  if (!work.decoding.prefetched()) work.decoding.prefetch(work.lease, pixels_, crew);
  // Another one's files are read while this one is made.
  const auto asked = std::ranges::find_if(works_, [](const auto& entry) {
    return entry.second.stage == Stage::kDecode && !entry.second.decoding.prefetched();
  });
  if (asked != works_.end()) asked->second.decoding.prefetch(asked->second.lease, pixels_, crew);
  work.decoding.make_some(work.lease, pixels_, crew, work.times);
  if (work.decoding.done()) finish_decoding(at);
}

void Agent::finish_decoding(Works::iterator at) {
  Work& work = at->second;
  if (work.decoding.read_error()) {
    outbox_.push_back(feed::ReadFailed{at->first, *work.decoding.read_error()});
    finish(at);
  } else if (auto broken = work.decoding.take_broken(); !broken.empty()) {
    outbox_.push_back(feed::Broken{at->first, std::move(broken)});
    finish(at);
  } else {
    work.pixel_hash = pixel_hash(work.decoding.pixels().view().raw());
    if (work.lease.cut == 0) {
      send_pixels(at);
    } else {
      work.stage = work.lease.kind == WorkKind::kScore ? Stage::kScore : Stage::kForward;
    }
  }
}

void Agent::send_pixels(Works::iterator at) {
  note_kind(false);
  Work& work = at->second;
  outbox_.push_back(
      feed::MicroBatch{.key = at->first,
                       .tensor = std::make_shared<Tensor>(work.decoding.take_pixels()),
                       .pixel_hash = work.pixel_hash,
                       .times = times_of(work)});
  finish(at);
}

void Agent::forward(Works::iterator at) {
  note_kind(true);
  Work& work = at->second;
  const int32_t cut = work.lease.cut;
  {
    const Once once(quota_);  // both are there already, but for a new plan
    stems_.program(cut);
    work.tape = stems_.borrow_tape(cut);
  }
  const nn::Program& program = stems_.program(cut);
  std::vector<uint64_t> slots;
  std::vector<int32_t> labels;
  for (const auto& sample : work.lease.samples) {
    slots.push_back(sample.slot);
    labels.push_back(sample.sample.label);
  }
  const nn::TensorSpec spec = program.output_spec();
  auto output = std::make_shared<Tensor>(spec.type, spec.shape);
  std::vector<float> statistics(static_cast<size_t>(graph_.buffer_range({0, cut}).size), 0.0f);
  const nn::Weights& weights = stems_.weights(work.lease.stem_version, cut);
  work.times.forward += seconds_of(quota_, threads_.size(), [&] {
    program.forward(
        weights, *work.tape,
        {work.decoding.pixels().view(), static_cast<int64_t>(slots.size()), slots, labels},
        {output->view(), statistics});
  });
  if (work.lease.kind == WorkKind::kBackward) {
    work.stage = Stage::kBackward;
    return;
  }
  work.times.layers = program.take_layer_seconds();
  outbox_.push_back(feed::MicroBatch{at->first, work.lease.activations, std::move(output),
                                     std::move(statistics), work.pixel_hash, times_of(work)});
  if (!work.lease.stem_trains) {
    finish(at);
    return;
  }
  work.stage = Stage::kAwaitGradient;
  give_room_back(work);
}

void Agent::backward(Works::iterator at) {
  Work& work = at->second;
  const int32_t cut = work.lease.cut;
  const nn::Program& program = stems_.program(cut);
  const nn::TensorSpec spec = program.output_spec();
  if (work.gradient == nullptr || work.gradient->shape() != spec.shape ||
      work.gradient->type() != spec.type) {
    throw InvalidInput("the gradient at the cut for " + to_string(at->first) +
                       " has a wrong shape");
  }
  auto gradients = std::make_shared<std::vector<float>>(
      static_cast<size_t>(graph_.parameter_range({0, cut}).size));
  work.times.backward += seconds_of(quota_, threads_.size(), [&] {
    program.backward(stems_.weights(work.lease.stem_version, cut), *work.tape,
                     work.gradient->view(), {{}, *gradients});
  });
  work.times.layers = program.take_layer_seconds();
  outbox_.push_back(feed::StemGradient{at->first, std::move(gradients), times_of(work)});
  finish(at);
}

void Agent::score(Works::iterator at) {
  Work& work = at->second;
  if (to_score_) {
    scorer_.load(*to_score_->parameters, *to_score_->buffers);
    scored_ = to_score_->version;
    to_score_.reset();
  }
  if (scored_ != work.lease.stem_version)
    throw InvalidInput("lease " + to_string(at->first) + " wants scores of weights " +
                       std::to_string(work.lease.stem_version) + ", which did not come before it");
  std::vector<int32_t> labels;
  for (const auto& sample : work.lease.samples) labels.push_back(sample.sample.label);
  std::span<const float> rows;
  work.times.forward += seconds_of(quota_, threads_.size(), [&] {
    rows = scorer_.score(work.decoding.pixels().view(), labels);
  });
  outbox_.push_back(feed::Scores{at->first, {rows.begin(), rows.end()}, times_of(work)});
  finish(at);
}

void Agent::give_room_back(Work& work) {
  if (std::exchange(work.room_given_back, true)) return;
  const auto in_hand = std::ranges::count_if(
      works_, [](const auto& entry) { return !entry.second.room_given_back; });
  send(room_.give_back(work.times.decode + work.times.forward, static_cast<size_t>(in_hand)));
}

void Agent::send(const std::optional<feed::Pull>& pull) {
  if (pull && pulling_) outbox_.push_back(*pull);
}

Agent::Works::iterator Agent::finish(Works::iterator at) {
  give_room_back(at->second);
  stems_.give_back_tape(at->second.lease.cut, std::move(at->second.tape));
  return works_.erase(at);
}

// What it would have taken is not known.
Agent::Works::iterator Agent::drop(Works::iterator at) {
  const auto next = finish(at);
  send(room_.ask());
  return next;
}

}  // namespace outrigger::worker
