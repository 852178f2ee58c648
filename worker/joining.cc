#include "worker/joining.h"

#include <chrono>

#include "api/names.h"
#include "common/clock.h"
#include "common/error.h"
#include "transport/endpoint.h"
#include "worker/job.h"
#include "worker/token.h"
#include "worker/work/emulation.h"

namespace outrigger::worker {
namespace {

transport::LinkKind link_kind(const Setup& setup) {
  return read_job(setup.job).spec.network.link == api::LinkKind::kGloo
             ? transport::LinkKind::kGloo
             : transport::LinkKind::kSockets;
}

transport::ReceivedFrame first_frame(transport::Link& link, const api::Launch& launch,
                                     const std::stop_token& stop) {
  const TimePoint give_up = system_now() + std::chrono::seconds(30);
  while (system_now() < give_up) {
    if (stop.stop_requested()) throw Cancelled("asked to stop");
    if (auto frame = link.receive(std::chrono::milliseconds(200))) return std::move(*frame);
  }
  throw IoError("the server at " + launch.server + " accepted the link and said nothing for 30 s");
}

bool is_farewell(const transport::ReceivedFrame& frame) {
  return frame.type == static_cast<uint16_t>(FrameType::kFarewell);
}

feed::Farewell read_farewell(const transport::ReceivedFrame& frame) {
  return std::get<feed::Farewell>(read_server_message(frame, {}));
}

Joined join_over(transport::LinkKind kind, const api::Launch& launch, const std::stop_token& stop) {
  const auto address =
      transport::parse_address(launch.server, static_cast<uint16_t>(api::kJoinPort));
  Joined joined{transport::dial(address, read_token(launch.token_file),
                                {.kind = kind, .link = link_options(launch)}),
                {}};
  const auto frame = first_frame(*joined.link, launch, stop);
  if (is_farewell(frame))
    joined.words = read_farewell(frame);
  else
    joined.words = read_setup(frame);
  return joined;
}

/// What the server said before it ended the link.
std::optional<feed::Farewell> farewell_left_in(transport::Link& link) {
  try {
    while (const auto frame = link.receive(Duration{0})) {
      if (is_farewell(*frame)) return read_farewell(*frame);
    }
  } catch (const transport::LinkClosed&) {
    // All has been read.
  }
  return std::nullopt;
}

}  // namespace

// Over sockets first: only then does the worker hear what the job wants its links carried by.
Joined join(const api::Launch& launch, const std::stop_token& stop) {
  Joined joined = join_over(transport::LinkKind::kSockets, launch, stop);
  const auto* setup = std::get_if<Setup>(&joined.words);
  if (setup == nullptr || link_kind(*setup) == transport::LinkKind::kSockets) return joined;
  joined.link->close("the worker joins again over Gloo");
  return join_over(transport::LinkKind::kGloo, launch, stop);
}

std::optional<feed::Farewell> answer(transport::Link& link, const Hello& hello) {
  try {
    link.send(to_frame(hello));
    return std::nullopt;
  } catch (const transport::LinkClosed&) {
    if (auto farewell = farewell_left_in(link)) return farewell;
    throw;
  }
}

}  // namespace outrigger::worker
