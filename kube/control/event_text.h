#pragma once

#include <string>
#include <string_view>

#include "kube/control/events.h"

namespace outrigger::kube {

/// What an Event of events.k8s.io/v1 says beside its subject and what happened.
struct EventTags {
  std::string name;
  std::string ns;
  Timestamp time;
  const EventRecorderOptions& from;  // controller and instance
  std::string series = {};           // as JSON; empty: there was one alone
};

/// The Event as it is sent, without a tree of it.
std::string event_text(const EventSubject& subject, const Event& event, const EventTags& tags);

}  // namespace outrigger::kube
