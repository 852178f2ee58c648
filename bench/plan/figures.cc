#include "bench/plan/figures.h"

#include <cstdio>

#include "common/log.h"

namespace outrigger::training {
namespace {

bool& missed() {
  static bool any = false;
  return any;
}

}  // namespace

void judge(const std::string& what, const std::string& figure, const std::string& target,
           bool met) {
  missed() |= !met;
  std::printf("%-74s %14s  %-15s %s\n", what.c_str(), figure.c_str(), target.c_str(),
              met ? "met" : "MISSED");
  std::fflush(stdout);
}

void show(const std::string& what, const std::string& figure) {
  std::printf("%-74s %14s\n", what.c_str(), figure.c_str());
  std::fflush(stdout);
}

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

bool any_missed() { return missed(); }

}  // namespace outrigger::training
