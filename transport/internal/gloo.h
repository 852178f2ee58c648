#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "common/clock.h"

/// What the Gloo link and the collectives share. Included by source files only.
namespace outrigger::transport {

/// A device (one event thread) that listens on `host`, and a context on it. Throws IoError.
struct GlooContext {
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<gloo::transport::Context> context;
};
GlooContext make_gloo_context(const std::string& host, int rank, int size, TimePoint deadline);

/// At least 1 ms, since Gloo takes 0 for "no limit".
std::chrono::milliseconds gloo_timeout(Duration time);

/// The numeric address by which the other end of a connected socket knows this machine.
std::string local_host(int fd);

constexpr size_t kMaxAddressBytes = 1024;

/// Addresses of pairs as they travel over an authenticated connection. Reading refuses more than
/// `limit` bytes.
void write_blob(int fd, const std::vector<char>& bytes, TimePoint deadline);
std::vector<char> read_blob(int fd, size_t limit, TimePoint deadline);

}  // namespace outrigger::transport
