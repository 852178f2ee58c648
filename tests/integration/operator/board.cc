#include "tests/integration/operator/board.h"

#include <utility>

namespace outrigger::integration {

Board::Board(Surroundings surroundings, int at_once) : surroundings_(surroundings) {
  for (int i = 0; i < at_once; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
}

Board::~Board() {
  const std::scoped_lock lock(mutex_);
  waiting_.clear();
}

void Board::add(const std::string& name, const Case& play) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back({name, "case-" + std::to_string(added_++), &play});
  }
  changed_.notify_all();
}

std::string Board::result(const std::string& name) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return results_.contains(name); });
  return results_.at(name);
}

void Board::run(const std::stop_token& stop) {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) return;
    const Entry entry = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    std::string result = play(entry);
    lock.lock();
    results_[entry.name] = std::move(result);
    lock.unlock();
    changed_.notify_all();
  }
}

std::string Board::play(const Entry& entry) {
  try {
    Scene scene(surroundings_.client, entry.ns, entry.play->ns_labels);
    entry.play->body(scene, surroundings_);
    return {};
  } catch (const std::exception& error) {
    return "namespace " + entry.ns + ", " + error.what();
  }
}

}  // namespace outrigger::integration
