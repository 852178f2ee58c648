#pragma once

#include "training/planner/model/costs.h"

/// A machine of each side, and a job, that the planner's tests reckon with.
namespace outrigger::training {

constexpr ServerRates kServer{.cores = 2, .decode = 0.1, .shared = true};
constexpr WorkerRates kWorker{
    .stem_speed = 1, .decode = 0.05, .bytes_per_second = 1e9, .latency = 0.0005};

/// Eight micro-batches; behind "Input" one cut that takes a quarter of the work off the device.
inline JobCosts one_cut_job(bool trains = true) {
  JobCosts costs;
  costs.micro_batches = 8;
  costs.pixels = 1e6;
  CutCosts input;
  input.head = 0.4;
  input.server_percent = 100;
  CutCosts stem{.cut = 5, .name = "layer1", .trains = trains};
  stem.stem_forward = 0.04;
  stem.stem_backward = trains ? 0.06 : 0;
  stem.head = 0.3;
  stem.activations = 4e6;
  stem.gradients = trains ? 4e6 : 0;
  stem.weights = 1e5;
  stem.server_percent = 75;
  costs.cuts = {input, stem};
  return costs;
}

/// The same where links take a tenth of what a stem does at each end, and a fifth of decoding.
inline JobCosts one_cut_job_with_link_work(bool trains = true) {
  JobCosts costs = one_cut_job(trains);
  costs.cuts[1].crossing = 4e6;
  costs.link_work = {.frame = 2e-3, .byte = 4e-10, .activations = 4e-10, .gradients = 4e-10};
  return costs;
}

/// A second cut, which takes a half off the device for many bytes.
inline JobCosts two_cut_job() {
  JobCosts costs = one_cut_job();
  costs.cuts.push_back({.cut = 9,
                        .name = "layer2",
                        .trains = true,
                        .stem_forward = 0.08,
                        .stem_backward = 0.12,
                        .head = 0.2,
                        .activations = 2e6,
                        .gradients = 2e6,
                        .weights = 4e5,
                        .server_percent = 50});
  return costs;
}

}  // namespace outrigger::training
