#include "nn/cuda/pass_plan.h"

#include <algorithm>
#include <utility>

#include "common/error.h"
#include "nn/recompute.h"

namespace outrigger::nn::cuda {
namespace {

class PassPlanner {
 public:
  PassPlanner(Compilation& c, const std::vector<int>& cuts) : c_(c), cuts_(cuts) {
    plan_.steps = make_steps(c);
    plan_.unkept = plan_.steps.size();
  }

  PassPlan run() {
    for (size_t i = 0; i < plan_.steps.size(); ++i) plan_forward(*plan_.steps[i], i);
    const int last_forward = c_.moment() - 1;
    if (c_.training()) plan_backward(last_forward);
    c_.buffers().finish(last_forward, static_cast<int>(plan_.unkept));
    plan_.buffers = std::move(c_.buffers());
    return std::move(plan_);
  }

 private:
  void plan_forward(Step& step, size_t i) {
    c_.begin_step(i, step.output());
    step.plan_forward(c_);
    c_.next_moment();
  }
  bool wanted(const Step& step) const { return c_.value(step.output()).wants_gradient; }

  // A legal cut splits no step.
  size_t steps_before(int cut) const {
    const auto behind =
        std::ranges::find_if(plan_.steps, [&](const auto& step) { return step->output() >= cut; });
    return static_cast<size_t>(behind - plan_.steps.begin());
  }

  // The first step has what comes from outside, which is there once.
  void plan_backward(int last_forward) {
    if (cuts_.empty() || !wanted(*plan_.steps.back())) {
      add_backward(plan_.steps, 0, plan_.steps.size());
      return;
    }
    for (const int cut : cuts_) c_.value(cut - 1).kept = true;
    c_.buffers().use(c_.value(cuts_.back() - 1).data, last_forward + 1);
    plan_.again = make_steps(c_);
    plan_.unkept = steps_before(cuts_.back());
    add_backward(plan_.steps, plan_.unkept, plan_.steps.size());
    for (size_t piece = cuts_.size(); piece-- > 0;)
      add_again(piece == 0 ? 1 : steps_before(cuts_[piece - 1]), steps_before(cuts_[piece]));
    add_backward(plan_.steps, 0, 1);
  }

  void add_backward(const Steps& steps, size_t first, size_t end) {
    for (size_t i = end; i-- > first;) {
      if (!wanted(*steps[i])) continue;
      steps[i]->plan_backward(c_);
      plan_.backward.push_back({steps[i].get(), false});
      c_.next_moment();
    }
  }

  void add_again(size_t first, size_t end) {
    const bool trains = std::any_of(plan_.again.begin() + static_cast<ptrdiff_t>(first),
                                    plan_.again.begin() + static_cast<ptrdiff_t>(end),
                                    [&](const auto& step) { return wanted(*step); });
    if (!trains) return;
    for (size_t i = first; i < end; ++i) {
      plan_forward(*plan_.again[i], i);
      plan_.backward.push_back({plan_.again[i].get(), true});
    }
    add_backward(plan_.again, first, end);
  }

  Compilation& c_;
  const std::vector<int>& cuts_;
  PassPlan plan_;
};

}  // namespace

PassPlan plan_pass(Compilation& compilation, const std::vector<int>& cuts) {
  return PassPlanner(compilation, cuts).run();
}

std::vector<int> choose_pieces(const Graph& graph, const ProgramOptions& options, Engine& engine) {
  if (options.mode == Mode::kInference) return {};
  const auto bytes = [&](const std::vector<int>& cuts) {
    Compilation compilation(graph, options, engine);
    const BufferPlan buffers = plan_pass(compilation, cuts).buffers;
    return buffers.tape_bytes() + buffers.scratch_bytes();
  };
  const auto lock = engine.enter();
  const Segment whole = options.segment;
  const Segment trained{options.input_gradient ? whole.begin : recompute_begin(graph, whole),
                        whole.end};
  std::vector<int> best;
  size_t least = bytes(best);
  for (auto& cuts : recompute_divisions(graph, trained)) {
    if (trained.begin > whole.begin) cuts.insert(cuts.begin(), trained.begin);
    const size_t takes = bytes(cuts);
    if (takes >= least) continue;
    least = takes;
    best = std::move(cuts);
  }
  return best;
}

}  // namespace outrigger::nn::cuda
