#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "http/server.h"
#include "tests/integration/operator/scene.h"

namespace outrigger::integration {

/// The status page of a server's pod: what the operator asks for at that pod's address.
/// Thread-safe.
class StatusPage {
 public:
  /// `address`: one of the loopback's, which no other case uses.
  explicit StatusPage(const std::string& address);

  /// The pod's address is this page's from now on.
  void stand_for(Scene& scene, const std::string& pod) const;
  /// How many workers the server says that it can use; below 0: it does not say.
  void set_desired(int workers) { desired_ = workers; }

  /// From now on the server can be told of edits, and was told of none.
  void open_door();
  /// Why it refuses those that come from now on.
  void refuse_edits(const std::string& why);
  /// What it was told.
  struct Told {
    std::string authorization;
    Json body;
  };
  std::vector<Told> told() const;

 private:
  Json page() const;
  http::Response take_edit(const http::Request& request);

  const std::string address_;
  std::atomic<int> desired_{-1};
  mutable std::mutex mutex_;
  std::optional<int64_t> known_;  // the generation told last; nothing: there is no door
  std::string refused_;           // why that was not taken
  std::string why_;               // the next one is not
  std::vector<Told> told_;
  http::Server server_;
};

}  // namespace outrigger::integration
