#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/operator/fake_nodes.h"
#include "tests/integration/operator/scene.h"

namespace outrigger::integration {

/// What a case may use besides its own scene.
struct Surroundings {
  kube::Client& client;
  FakeNodes& nodes;
};

/// One behaviour of the operator, seen at the API server.
struct Case {
  std::string name;  // of letters and digits, once in its table
  std::function<void(Scene&, Surroundings&)> body;
  Json ns_labels = Json::object();
};

/// Plays cases, many at a time: most of each is waiting. Cases share one operator and one API
/// server, and nothing else.
class Board {
 public:
  Board(Surroundings surroundings, int at_once);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// They begin in this order. `name` is unique.
  void add(const std::string& name, const Case& play);
  /// Once the case has ended: what went wrong; empty: nothing.
  std::string result(const std::string& name);

 private:
  struct Entry {
    std::string name;
    std::string ns;
    const Case* play;
  };
  void run(const std::stop_token& stop);
  std::string play(const Entry& entry);

  Surroundings surroundings_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Entry> waiting_;
  std::map<std::string, std::string> results_;
  int added_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace outrigger::integration
