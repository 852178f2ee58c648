#pragma once

/// The planner in situations of our own making.
namespace outrigger::training {

/// After a worker, a link or their number has changed, and under a load that is steady.
void run_changes();
/// What comparing plans costs.
void run_costs();
/// A network card that is too narrow for the pixels.
void run_narrow_card();
/// 64 workers and the loss of some. `all`: 512 too, which takes a minute.
void run_sizes(bool all);

}  // namespace outrigger::training
