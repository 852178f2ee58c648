#pragma once

#include <string>
#include <vector>

/// Which instructions the engine may use. Results depend on them (sums are grouped by register
/// width), so a job records its set and every process of the job imposes it before its first
/// program.
namespace outrigger::nn::cpu {

/// From least to most: "baseline" (SSE 4.1), "avx2", "avx512", "avx512_bf16", "amx".
std::vector<std::string> instruction_sets();

/// The most this machine has.
std::string best_instruction_set();

/// True where this machine has all of `name`. Throws InvalidInput for a name that is none of
/// instruction_sets().
bool has_instruction_set(const std::string& name);

/// Imposes `name` on this process: oneDNN and our own kernels. Until the first program is compiled
/// the last call counts; later ones may only repeat what is in force (InvalidInput otherwise).
/// Throws InvalidInput where the machine lacks it.
void set_instruction_set(const std::string& name);

/// The one in force: what was set, else the best. Asking settles nothing.
std::string instruction_set();

/// From now on the one in force stays so. Called before the first kernel or primitive is made.
/// Throws Error where oneDNN was used before.
void settle_instruction_set();

/// Whether bfloat16 programs compute in bfloat16 under the set in force; else they compute in
/// float32.
bool computes_bfloat16();

}  // namespace outrigger::nn::cpu
