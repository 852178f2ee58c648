#pragma once

#include <string>

/// What the benchmark prints: a figure beside its target, met or missed.
namespace outrigger::training {

void judge(const std::string& what, const std::string& figure, const std::string& target, bool met);
void show(const std::string& what, const std::string& figure);
std::string percent(double part);
/// Whether a figure has missed its target so far.
bool any_missed();

}  // namespace outrigger::training
