#pragma once

#include <stop_token>

#include "api/launch.h"

namespace outrigger::gpu_server {

/// What is told the process of one of the ranks of `all`, `index` behind the first: its ports, its
/// part of the cores and with how many others it shares the machine.
api::Launch launch_of_rank(const api::Launch& all, int index);

/// Runs the ranks of a launch with several (`--ranks`): a process of this program for each, with
/// ports in a row, its part of the cores and its own device, and this process, which computes
/// nothing, as their parent. A stop request goes on to them. Nothing is restarted: when one fails,
/// the others are ended too.
///
/// Returns the exit status of the first that failed, rather of one that did not fail because it
/// lost another; else that of a stop, else 0. The termination file gets the last words of that
/// rank, and stays as it is where it left none. Throws InvalidInput, IoError before anything runs.
int run_ranks(const api::Launch& launch, const std::stop_token& stop);

}  // namespace outrigger::gpu_server
