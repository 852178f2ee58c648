#pragma once

/// The planner in situations of our own making: after changes, with a narrow card, with many
/// workers, and what comparing plans costs.
namespace outrigger::training {

/// `all`: 64 and 512 workers too, which take a minute.
void run_situations(bool all);

}  // namespace outrigger::training
