#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/last_words.h"
#include "common/log.h"
#include "gpu-server/doors.h"
#include "gpu-server/links/tokens.h"
#include "gpu-server/run.h"

/// Everything by which a run is reached from outside: workers, people, signals, and the watchdog.
namespace outrigger::gpu_server {

void Run::want_stop() {
  stop_wanted_ = true;
  if (watchdog_) watchdog_->expect_end();
  if (reducer_ == nullptr) {
    feed_.cancel();
  } else {  // replicas finish the step and stop together
    agreement_.wish_stop();
    evaluation_stop_.request_stop();
  }
}

std::string Run::want_plan(const std::string& split) {
  if (!first_rank()) throw InvalidInput("the first rank's server sets the plan for all");
  const auto newest = [this] {
    const std::scoped_lock lock(wish_mutex_);
    return wanted_edit_ ? *wanted_edit_ : edited_;
  };
  feed::Plan plan = asked_plan(newest(), graph_, size_, split);
  wish(plan, "asked for", Wisher::kPerson);
  const std::scoped_lock lock(wish_mutex_);
  plan.number = last_plan_;
  return reporter_.plan_json(plan);
}

std::string Run::want_edit(const std::string& body) {
  if (!first_rank()) throw InvalidInput("the first rank's server takes edits for all");
  const ToldJob told = read_told_job(body);
  Edits edits{told.generation, ""};
  try {
    api::TrainingJob job = edited_job(job_, told.job, graph_, size_);
    // At once: the trainer may be the one that waits.
    watchdog_->set_progress_limit(job.spec.progress_deadline + patience());
    const std::scoped_lock lock(wish_mutex_);
    if (job.spec.split != (wanted_edit_ ? *wanted_edit_ : edited_).spec.split) {
      plan_fixed_ = false;  // the newest word counts
      wanted_plan_.reset();
    }
    wanted_edit_ = std::move(job);
  } catch (const InvalidInput& error) {
    edits.refused = error.what();
    reporter_.edits(edits);
    throw;
  }
  reporter_.edits(edits);
  return R"({"generation": )" + std::to_string(edits.generation) + "}";
}

void Run::open_doors() {
  feed_.serve_local(local_.take_server_end(), local_.processor_clock());
  acceptor_ = std::jthread([this](const std::stop_token& over) { accept_workers(over); });
  telemetry::StatusServerOptions options;
  options.http.address = launch_.listen;
  options.http.port = launch_.status_port;
  options.control_token = control_token(launch_);
  telemetry::StatusSource source;
  source.not_ready = [this] {
    return ready_ ? std::vector<std::string>{} : std::vector<std::string>{"no step is done yet"};
  };
  source.status_json = [this] { return reporter_.status_json(); };
  source.stop = [this] { want_stop(); };
  source.plan_json = [this] { return reporter_.plan_json(); };
  if (first_rank()) reporter_.edits({job_.metadata.generation.value_or(0), ""});
  source.edit_job = [this](const std::string& body) { return want_edit(body); };
  source.set_plan = [this](const std::string& split) { return want_plan(split); };
  pages_ = std::make_unique<telemetry::StatusServer>(options, metrics_, source);
  write_endpoints(launch_, job_, listener_->port(), pages_->port());
  log::info("workers join at port {}; status at port {}", listener_->port(), pages_->port());
  on_stop_ =
      std::make_unique<std::stop_callback<std::function<void()>>>(stop_, [this] { want_stop(); });
}

void Run::accept_workers(const std::stop_token& over) {
  while (!over.stop_requested()) {
    try {
      if (auto link = listener_->accept(std::chrono::milliseconds(200)))
        feed_.serve(std::move(link));
      feed_.reap();
    } catch (const Cancelled&) {
      return;
    } catch (const std::exception& error) {  // no memory or thread for a link, too
      log::warning("a worker could not be taken in: {}", error.what());
    }
  }
}

// A rank that waits for another learns of its loss from the collective, within progressDeadline.
Duration Run::patience() const {
  return reducer_ == nullptr ? Duration{0} : std::chrono::seconds(30);
}

std::unique_ptr<Watchdog> Run::make_watchdog() {
  const WatchdogOptions options{.startup = job_.spec.startup_deadline + patience(),
                                .progress = job_.spec.progress_deadline + patience(),
                                .stop = job_.spec.checkpoint.grace_period + patience()};
  return std::make_unique<Watchdog>(
      options, clock_, [this] { return feed_.handed_out() + agreement_.waits(); },
      [this](const std::string& what) {
        log::error("{}: {}", what, feed_.describe_wait());
        if (launch_.termination_file) {
          api::write_last_words(*launch_.termination_file,
                                {api::ExitCode::kHung, what + ": " + feed_.describe_wait(),
                                 nlohmann::json::parse(progress())});
        }
        std::_Exit(static_cast<int>(api::ExitCode::kHung));
      });
}

}  // namespace outrigger::gpu_server
