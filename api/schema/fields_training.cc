#include "api/schema/fields.h"

namespace outrigger::api::schema {

void describe(Struct<SoftmaxCrossEntropy>& s) {
  s.add("labelSmoothing", &SoftmaxCrossEntropy::label_smoothing,
        "Part of the target spread over all classes.")
      .at_least(0)
      .less_than(1);
}

void describe(Struct<PartialFc>& s) {
  s.add("sampleRate", &PartialFc::sample_rate,
        "Part of its classes that a rank compares a micro-batch with: those of its samples, and "
        "others drawn anew.")
      .more_than(0)
      .between(0, 1);
}

void describe(Struct<ArcFace>& s) {
  s.add("margin", &ArcFace::margin, "Added to the angle of the true class, in radians.")
      .between(0, 1.5);
  s.add("scale", &ArcFace::scale, "Length that embeddings are scaled to.")
      .more_than(0)
      .between(0, 1000);
  s.add("partialFC", &ArcFace::partial_fc,
        "Shares the classes out over the ranks, and may train on a sample of them.")
      .absent("every rank has all classes");
}

void describe(Struct<Loss>& s) {
  const auto itself = [](auto& loss) -> auto& { return loss; };
  s.alternative<SoftmaxCrossEntropy>("softmaxCrossEntropy", itself,
                                     "Cross-entropy of the classes' softmax.");
  s.alternative<ArcFace>("arcFace", itself, "Additive angular margin, for faces.");
}

void describe(Struct<Sgd>& s) {
  s.add("momentum", &Sgd::momentum, "Part of the last step that is kept.").at_least(0).less_than(1);
  s.add("nesterov", &Sgd::nesterov, "Nesterov's momentum. Needs momentum above 0.");
  s.add("weightDecay", &Sgd::weight_decay, "Times the weight, added to its gradient.")
      .between(0, 1);
  s.add("decayNormAndBias", &Sgd::decay_norm_and_bias, "Weight decay on norms and biases too.");
}

void describe(Struct<Optimizer>& s) {
  const auto itself = [](auto& optimizer) -> auto& { return optimizer; };
  s.alternative<Sgd>("sgd", itself, "Stochastic gradient descent.");
}

template <typename S>
void describe_start(Struct<S>& s) {
  s.add("base", &S::base, "Learning rate after the warm-up.")
      .required()
      .more_than(0)
      .between(0, 1e6);
  s.add("warmupSteps", &S::warmup_steps, "Steps over which the rate rises to base in a line.")
      .between(0, kMostSteps);
}

void describe(Struct<ConstantSchedule>& s) { describe_start(s); }

void describe(Struct<StepSchedule>& s) {
  describe_start(s);
  s.add("atSteps", &StepSchedule::at_steps,
        "Steps at which the rate is multiplied by factor, ascending.")
      .required()
      .most_items(256)
      .between(1, kMostSteps);
  s.add("factor", &StepSchedule::factor, "What the rate is multiplied by.")
      .more_than(0)
      .between(0, 1);
}

void describe(Struct<CosineSchedule>& s) {
  describe_start(s);
  s.add("final", &CosineSchedule::final_rate, "Learning rate at the last step.").between(0, 1e6);
}

void describe(Struct<Schedule>& s) {
  const auto itself = [](auto& schedule) -> auto& { return schedule; };
  s.alternative<ConstantSchedule>("constant", itself, "The base rate throughout.");
  s.alternative<StepSchedule>("step", itself, "Falls at given steps.");
  s.alternative<CosineSchedule>("cosine", itself, "Falls along half a cosine until the last step.");
}

void describe(Struct<EvaluateSpec>& s) {
  s.add("everySteps", &EvaluateSpec::every_steps, "Steps from one evaluation to the next.")
      .absent("after every epoch; after the last step in any case")
      .between(1, kMostSteps);
  s.add("metric", &EvaluateSpec::metric,
        "Accuracy: top-1 of the classes. Verification: same person or not, 10-fold over pairs. "
        "Identification: rank-1 against the other images. Both also of people who are not in "
        "data.train; accuracy and loss are not measured then.");
  s.add("keepBest", &EvaluateSpec::keep_best,
        "Keeps a checkpoint of the best value beside the newest.");
  s.add("stopAfterNoGain", &EvaluateSpec::stop_after_no_gain,
        "Ends after so many evaluations without a better value.")
      .absent("never ends early")
      .between(1, 1'000'000);
  s.add(
      "place", &EvaluateSpec::place,
      "Server: training stands still meanwhile. Workers: those that run stems make it beside "
      "training, in time they have to spare. Auto: what is measured to cost training less; Server "
      "with stopAfterNoGain.");
}

void describe(Struct<TrainingSpec>& s) {
  s.add("epochs", &TrainingSpec::epochs,
        "Passes over the data. Exactly one of epochs and steps is given.")
      .absent("steps are given")
      .between(1, 1'000'000);
  s.add("steps", &TrainingSpec::steps, "Optimizer steps.")
      .absent("epochs are given")
      .between(1, kMostSteps);
  s.add("batchSize", &TrainingSpec::batch_size,
        "Samples of one optimizer step, over all ranks; a multiple of ranks x microBatchSize.")
      .required()
      .between(1, 1 << 24);
  s.add("microBatchSize", &TrainingSpec::micro_batch_size,
        "Samples of one micro-batch: the unit of a lease, of batch norm and of the wire.")
      .absent("the largest divisor of a rank's part of the batch that is at most 32")
      .between(1, 65536);
  s.add("loss", &TrainingSpec::loss, "What is minimised.").absent("softmaxCrossEntropy: {}");
  s.add("optimizer", &TrainingSpec::optimizer, "How weights follow gradients.").absent("sgd: {}");
  s.add("schedule", &TrainingSpec::schedule, "Learning rate by step.").required();
  s.add("clipGradientNorm", &TrainingSpec::clip_gradient_norm,
        "Longest gradient; a longer one is scaled down to it.")
      .absent("no clipping")
      .more_than(0);
  s.add("averageWeights", &TrainingSpec::average_weights,
        "Decay of an exponential moving average of the weights.")
      .absent("no average")
      .more_than(0)
      .less_than(1);
  s.add("precision", &TrainingSpec::precision,
        "Type that layers compute in; weights are kept in Float32. A worker that lacks it computes "
        "in Float32.");
  s.add("staleness", &TrainingSpec::staleness,
        "Steps by which a stem's weights may be behind; 0: the result is that of one process.")
      .between(0, 16);
  s.add("syncEverySteps", &TrainingSpec::sync_every_steps,
        "1: ranks add their gradients in every step. More: each steps by itself on its part of the "
        "batch, and after so many steps all take the mean of their weights; checkpoints, "
        "evaluations, stops and new plans wait for that.")
      .between(1, 10'000);
  s.add("allReducePrecision", &TrainingSpec::all_reduce_precision,
        "Type that gradients travel in between ranks. BFloat16 halves their bytes; the optimizer "
        "works in Float32 all the same.");
  s.add("recompute", &TrainingSpec::recompute,
        "Activations: computed again in the backward pass, to save memory.");
  s.add("evaluate", &TrainingSpec::evaluate, "Evaluation on data.validation.")
      .absent("after every epoch by Accuracy where there is data.validation");
  s.add("seed", &TrainingSpec::seed, "All that is random in the run follows from it.")
      .between(0, 9007199254740991.0);
}

}  // namespace outrigger::api::schema
