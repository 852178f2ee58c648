#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kube/client/config.h"
#include "tests/fakes/api_store.h"

namespace outrigger::fakes {

/// What goes wrong with a request instead of its answer.
struct Fault {
  int status = 0;  // answered so
  std::string reason = "ScriptedFault";
  std::optional<int> retry_after = std::nullopt;  // seconds
  bool hang = false;   // no answer until the server stops or release_hanging()
  bool after = false;  // the request is carried out first, and the answer lost
};

/// An API server over HTTP on loopback, with a script: requests fail, watches end, break, fall
/// silent, slow down, or say what the test wants. Thread-safe.
class ApiServer {
 public:
  ApiServer();
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  std::string url() const;
  kube::Config config() const { return {.server = url()}; }
  ApiStore& store() { return store_; }

  /// A request as it came.
  struct Request {
    std::string line;  // "GET /api/v1/pods?limit=500"
    std::string authorization;
    std::string body;
  };
  std::vector<Request> requests(const std::string& containing = "") const;
  /// Waits until that many such requests have come; false after ten seconds.
  bool wait_for_requests(const std::string& containing, size_t count) const;

  /// The next `times` requests whose line contains `containing` fail.
  void fail(const std::string& containing, const Fault& fault, int times = 1);
  void release_hanging();
  /// Bearer token that requests must show; empty: any.
  void require_token(const std::string& token);

  /// Watches: how many are open, and what becomes of those.
  bool wait_for_watches(size_t count) const;
  void end_watches();
  void break_watches();
  void silence_watches();
  /// Sends `text` as it is, after all that was to be sent before.
  void say_to_watches(const std::string& text);
  void bookmark_watches();
  /// From now on every line is sent in pieces of so many bytes.
  void send_in_pieces(size_t bytes);

  /// The process goes away, and comes back on the same port with what is stored.
  void stop();
  void start();

 private:
  struct Watch;
  struct Library;
  struct Script {
    std::string containing;
    Fault fault;
    int times;
  };

  std::optional<Fault> next_fault(const std::string& line);
  void for_watches(const std::function<void(Watch&)>& change);
  bool serve(Watch& watch, const std::function<bool(const std::string&)>& write);
  std::string collect(Watch& watch);

  ApiStore store_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Request> requests_;
  std::deque<Script> script_;
  std::list<std::shared_ptr<Watch>> watches_;
  std::string token_;
  size_t piece_ = 0;
  uint64_t released_ = 0;
  bool stopping_ = false;
  int port_ = 0;
  std::unique_ptr<Library> library_;
};

}  // namespace outrigger::fakes
