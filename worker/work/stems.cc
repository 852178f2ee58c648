#include "worker/work/stems.h"

#include <string>
#include <utility>

#include "common/error.h"

namespace outrigger::worker {
namespace {

std::unique_ptr<nn::Tape> take_from(std::vector<std::unique_ptr<nn::Tape>>& tapes) {
  auto tape = std::move(tapes.back());
  tapes.pop_back();
  return tape;
}

}  // namespace

void Stems::add(feed::StemWeights weights) {
  const nn::Segment stem{0, weights.cut};
  graph_.cut_at(weights.cut);  // throws where the cut is not legal
  if (weights.parameters == nullptr || weights.buffers == nullptr ||
      weights.parameters->size() < weights.parameter_count ||
      weights.buffers->size() < weights.buffer_count ||
      static_cast<int64_t>(weights.parameter_count) != graph_.parameter_range(stem).size ||
      static_cast<int64_t>(weights.buffer_count) != graph_.buffer_range(stem).size) {
    throw InvalidInput("stem weights of version " + std::to_string(weights.version) +
                       " do not fit the cut behind layer " + std::to_string(weights.cut));
  }
  Version& version = versions_[weights.version];
  if (version.raw.cut < weights.cut || version.raw.parameters == nullptr)
    version.raw = std::move(weights);
}

void Stems::drop_before(uint64_t oldest_version) {
  while (!versions_.empty() && versions_.begin()->first < oldest_version) {
    for (auto& [cut, packed] : versions_.begin()->second.packed)
      made(cut).free_weights.push_back(std::move(packed));
    versions_.erase(versions_.begin());
  }
}

void Stems::keep_cuts(const std::set<int32_t>& cuts) {
  const auto goes = [&](const auto& entry) {
    return entry.first != last_cut_ && !cuts.contains(entry.first);
  };
  for (auto& version : versions_) std::erase_if(version.second.packed, goes);
  std::erase_if(made_, goes);
}

bool Stems::has(uint64_t version, int32_t cut) const {
  const auto found = versions_.find(version);
  return found != versions_.end() && found->second.raw.cut >= cut;
}

Stems::Made& Stems::made(int32_t cut) {
  auto found = made_.find(cut);
  if (found == made_.end()) {
    nn::ProgramOptions options = options_;
    options.segment = {0, graph_.cut_at(cut).layers};
    found = made_.emplace(cut, Made{backend_.compile(graph_, options, threads_)}).first;
  }
  return found->second;
}

const nn::Program& Stems::program(int32_t cut) {
  last_cut_ = cut;
  return *made(cut).program;
}

const nn::Weights& Stems::weights(uint64_t version, int32_t cut) {
  Version& held = versions_.at(version);
  auto& packed = held.packed[cut];
  if (packed == nullptr) {
    const nn::Program& compiled = program(cut);
    auto& free = made(cut).free_weights;
    if (free.empty()) {
      packed = compiled.new_weights();
    } else {
      packed = std::move(free.back());
      free.pop_back();
    }
    const nn::Segment stem{0, cut};
    const std::span<const float> parameters(*held.raw.parameters);
    const std::span<const float> buffers(*held.raw.buffers);
    compiled.load(*packed, parameters.first(static_cast<size_t>(graph_.parameter_range(stem).size)),
                  buffers.first(static_cast<size_t>(graph_.buffer_range(stem).size)));
  }
  return *packed;
}

std::unique_ptr<nn::Tape> Stems::new_tape(Made& of_cut) {
  ++of_cut.tapes;
  // What lies about is of a plan that is over, or nearly.
  for (auto& [cut, other] : made_) {
    if (&other == &of_cut || other.free_tapes.empty()) continue;
    --other.tapes;
    return of_cut.program->new_tape_in(take_from(other.free_tapes));
  }
  return of_cut.program->new_tape();
}

std::unique_ptr<nn::Tape> Stems::borrow_tape(int32_t cut) {
  Made& of_cut = made(cut);
  return of_cut.free_tapes.empty() ? new_tape(of_cut) : take_from(of_cut.free_tapes);
}

bool Stems::prepare(int32_t cut, size_t micro_batches) {
  const bool is_new = !made_.contains(cut);
  Made& of_cut = made(cut);
  if (is_new) return true;
  if (of_cut.tapes >= micro_batches) return false;
  auto tape = new_tape(of_cut);
  of_cut.program->use_memory_of(*tape);
  of_cut.free_tapes.push_back(std::move(tape));
  return true;
}

void Stems::give_back_tape(int32_t cut, std::unique_ptr<nn::Tape> tape) {
  if (tape != nullptr) made(cut).free_tapes.push_back(std::move(tape));
}

}  // namespace outrigger::worker
