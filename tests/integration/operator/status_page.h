#pragma once

#include <atomic>
#include <string>

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

 private:
  const std::string address_;
  std::atomic<int> desired_{-1};
  http::Server server_;
};

}  // namespace outrigger::integration
