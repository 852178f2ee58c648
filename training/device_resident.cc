#include <algorithm>

#include "common/error.h"
#include "training/device.h"

/// A device that keeps the run's arrays: several micro-batches run as one, and the host does not
/// wait for them.
namespace outrigger::training {

uint32_t Device::most_at_once(int32_t cut) const {
  // A stem of older weights is a program of its own, which hands over one micro-batch at a time.
  return cut == 0 && cut_ > 0 && stem_is_stale() ? 1 : options_.most_at_once;
}

// A gradient at the cut is waited for by a worker, and memory for it is limited: the next may be
// under way meanwhile, no more.
size_t Device::most_started() const {
  if (tells_host()) return 0;
  if (cut_ > 0 && stem_is_stale()) return 0;
  return cut_ > 0 && stem_trains_ ? 1 : SIZE_MAX;
}

Device::Part& Device::chunk_part(int32_t cut, uint32_t groups) {
  Part& part = chunks_[{cut, groups}];
  if (part.program == nullptr) {
    part = make_part({cut, graph_.size()}, cut > 0 && stem_trains_, groups, part, chunk_space_);
    loaded_chunk_ = nullptr;  // the space may have moved
  }
  return part;
}

Device::Part& Device::loaded_chunk_part(int32_t cut, uint32_t groups) {
  Part& part = chunk_part(cut, groups);
  if (loaded_chunk_ != &part) load_part(part, {}, buffers_);
  loaded_chunk_ = &part;
  return part;
}

void Device::stage(Batches batches) {
  if (tells_host() || staged_) return;
  const feed::ReadyMicroBatch& first = batches.front();
  Part& part = chunk_part(first.cut, static_cast<uint32_t>(batches.size()));
  std::vector<nn::ForwardInput> parts;
  for (const auto& batch : batches) {
    check_input(batch, part.program->input_spec(), backend_.unpacks_int8());
    parts.push_back(input_of(batch, batch.tensor->view()));
    parts.back().owner = batch.tensor;
    if (batch.scales != nullptr) parts.back().scales = batch.scales->as<float>();
  }
  resident_->stage(part.pass(), parts);
  staged_ = Staged{first.step, first.index, batches.size()};
}

void Device::start_resident(Batches batches, std::span<float> statistics, bool last) {
  const feed::ReadyMicroBatch& first = batches.front();
  UnderWay under_way;
  under_way.result = {.step = first.step, .first = first.index, .first_slot = first.slots.front()};
  int32_t cut = first.cut;
  if (cut != cut_ && stem_is_stale()) {
    ensure(batches.size() == 1 && !staged_, "an older stem runs one micro-batch at a time");
    forward_stem(first, statistics);
    cut = cut_;
    under_way.stem_after = stem_trains_;
    const nn::ForwardInput input = input_of(first, crossing_.view());
    resident_->stage(chunk_part(cut, 1).pass(), std::span(&input, 1));
  } else {
    if (!staged_) stage(batches);
    ensure(staged_ && staged_->step == first.step && staged_->first == first.index &&
               staged_->count == batches.size(),
           "what is started is what was staged");
    staged_.reset();
  }
  Part& part = loaded_chunk_part(cut, static_cast<uint32_t>(batches.size()));
  if (cut > 0 && stem_trains_) {
    const nn::TensorSpec spec = part.program->input_spec();
    under_way.cut_gradient = Tensor(spec.type, spec.shape);
  }
  under_way_.push_back(std::move(under_way));
  Tensor& gradient = under_way_.back().cut_gradient;
  resident_->train(part.pass(last), {statistics, gradient.empty() ? TensorView{} : gradient.view()},
                   loss_scale_);
}

std::vector<std::shared_ptr<const Tensor>> Device::split(const Tensor& gradient,
                                                         size_t count) const {
  std::vector<std::shared_ptr<const Tensor>> parts;
  Shape shape = gradient.shape();
  shape.front() = options_.micro_batch;
  const ConstTensorView from = gradient.view();
  const size_t bytes = from.bytes() / count;
  for (size_t i = 0; i < count; ++i) {
    auto part = std::make_shared<Tensor>(from.type, shape);
    std::copy_n(from.data + i * bytes, bytes, part->view().data);
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace outrigger::training
