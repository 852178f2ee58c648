#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "common/error.h"
#include "worker/work/agent.h"

// What an agent does with a piece of work at each stage.
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

bool Agent::prepare() {
  const Once once(quota_);
  return prepare_stems();
}

// Of one step, whose weights they all wait for: those before have given their tapes back by then.
bool Agent::prepare_stems() {
  const auto waits = [](const auto& entry) { return entry.second.stage == Stage::kForward; };
  const auto first = std::ranges::find_if(works_, waits);
  if (first == works_.end()) return false;
  const int32_t cut = first->second.lease->cut;
  // The others give their tape back before the next one needs it.
  const auto keeps = std::ranges::count_if(works_, [&](const auto& entry) {
    const auto& [key, work] = entry;
    return waits(entry) && key.step == first->first.step && work.lease->cut == cut &&
           work.lease->kind == WorkKind::kForward && work.lease->stem_trains;
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

void Agent::offer_leases() {
  // The files of one lease are read while the one before it is made.
  while (decoder_.wants_more()) {
    const auto asked = std::ranges::find_if(works_, [](const auto& entry) {
      return entry.second.stage == Stage::kDecode && !entry.second.decoding->prefetched();
    });
    if (asked == works_.end()) break;
    decoder_.add(asked->first, asked->second.decoding);
  }
}

bool Agent::decode() {
  offer_leases();
  const bool made = decoder_.make_one();
  quota_.worked(decoder_.take_worked(), 1);
  const auto done = find_decoded();
  if (done != works_.end()) finish_decoding(done);
  return made || done != works_.end();
}

Agent::Works::iterator Agent::find_decoded() {
  return std::ranges::find_if(works_, [](const auto& entry) {
    return entry.second.stage == Stage::kDecode && entry.second.decoding->done();
  });
}

void Agent::finish_decoding(Works::iterator at) {
  Work& work = at->second;
  Decoding& decoding = *work.decoding;
  decoding.rethrow();
  quota_.worked(decoder_.take_worked(), 1);
  decoding.tell(work.times, quota_.slowdown(), threads_.size());
  if (decoding.read_error()) {
    outbox_.push_back(feed::ReadFailed{at->first, *decoding.read_error()});
    finish(at);
  } else if (auto broken = decoding.take_broken(); !broken.empty()) {
    outbox_.push_back(feed::Broken{at->first, std::move(broken)});
    finish(at);
  } else {
    work.pixel_hash = pixel_hash(decoding.pixels().view().raw());
    if (work.lease->cut == 0) {
      send_pixels(at);
    } else {
      work.stage = work.lease->kind == WorkKind::kScore ? Stage::kScore : Stage::kForward;
    }
  }
}

void Agent::send_pixels(Works::iterator at) {
  note_kind(false);
  Work& work = at->second;
  outbox_.push_back(
      feed::MicroBatch{.key = at->first,
                       .tensor = std::make_shared<Tensor>(work.decoding->take_pixels()),
                       .pixel_hash = work.pixel_hash,
                       .times = times_of(work)});
  finish(at);
}

void Agent::forward(Works::iterator at) {
  const Decoder::Pause pause(decoder_, options_.stem_threads);
  note_kind(true);
  Work& work = at->second;
  const int32_t cut = work.lease->cut;
  {
    const Once once(quota_);  // both are there already, but for a new plan
    stems_.program(cut);
    work.tape = stems_.borrow_tape(cut);
  }
  const nn::Program& program = stems_.program(cut);
  std::vector<uint64_t> slots;
  std::vector<int32_t> labels;
  for (const auto& sample : work.lease->samples) {
    slots.push_back(sample.slot);
    labels.push_back(sample.sample.label);
  }
  const nn::TensorSpec spec = program.output_spec();
  auto output = std::make_shared<Tensor>(spec.type, spec.shape);
  std::vector<float> statistics(static_cast<size_t>(graph_.buffer_range({0, cut}).size), 0.0f);
  const nn::Weights& weights = stems_.weights(work.lease->stem_version, cut);
  work.times.forward += seconds_of(quota_, threads_.size(), [&] {
    program.forward(
        weights, *work.tape,
        {work.decoding->pixels().view(), static_cast<int64_t>(slots.size()), slots, labels},
        {output->view(), statistics});
  });
  if (work.lease->kind == WorkKind::kBackward) {
    work.stage = Stage::kBackward;
    return;
  }
  work.times.layers = program.take_layer_seconds();
  outbox_.push_back(feed::MicroBatch{at->first, work.lease->activations, std::move(output),
                                     std::move(statistics), work.pixel_hash, times_of(work)});
  if (!work.lease->stem_trains) {
    finish(at);
    return;
  }
  work.stage = Stage::kAwaitGradient;
  give_room_back(work);
}

void Agent::backward(Works::iterator at) {
  const Decoder::Pause pause(decoder_, options_.stem_threads);
  Work& work = at->second;
  const int32_t cut = work.lease->cut;
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
    program.backward(stems_.weights(work.lease->stem_version, cut), *work.tape,
                     work.gradient->view(), {{}, *gradients});
  });
  work.times.layers = program.take_layer_seconds();
  outbox_.push_back(feed::StemGradient{at->first, std::move(gradients), times_of(work)});
  finish(at);
}

void Agent::score(Works::iterator at) {
  const Decoder::Pause pause(decoder_);
  Work& work = at->second;
  if (to_score_) {
    scorer_.load(*to_score_->parameters, *to_score_->buffers);
    scored_ = to_score_->version;
    to_score_.reset();
  }
  if (scored_ != work.lease->stem_version)
    throw InvalidInput("lease " + to_string(at->first) + " wants scores of weights " +
                       std::to_string(work.lease->stem_version) + ", which did not come before it");
  std::vector<int32_t> labels;
  for (const auto& sample : work.lease->samples) labels.push_back(sample.sample.label);
  std::span<const float> rows;
  work.times.forward += seconds_of(quota_, threads_.size(), [&] {
    rows = scorer_.score(work.decoding->pixels().view(), labels);
  });
  outbox_.push_back(feed::Scores{at->first, {rows.begin(), rows.end()}, times_of(work)});
  finish(at);
}

}  // namespace outrigger::worker
