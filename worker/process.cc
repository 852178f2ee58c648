#include "worker/process.h"

#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "api/last_words.h"
#include "api/names.h"
#include "api/parse.h"
#include "common/file.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/thread_pool.h"
#include "common/watchdog.h"
#include "nn/cpu/backend.h"
#include "nn/cpu/blocks.h"
#include "nn/cpu/fingerprint.h"
#include "nn/cpu/instruction_set.h"
#include "transport/endpoint.h"
#include "transport/handshake.h"
#include "worker/fault.h"
#include "worker/job.h"
#include "worker/rejoining.h"
#include "worker/session.h"
#include "worker/status.h"
#include "worker/token.h"
#include "worker/work/agent.h"
#include "worker/work/emulation.h"
#include "worker/work/file_pixels.h"

namespace outrigger::worker {
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

/// Everything that is made from the server's first words.
struct Workshop {
  Workshop(const Setup& setup, const api::Launch& launch, ThreadPool& threads)
      : job(parse(setup.job)),
        graph(build_graph(job, setup.classes)),
        pace(launch.emulate_cores),
        times(launch.emulate ? std::optional(read_emulated_times(*launch.emulate)) : std::nullopt),
        backend(times ? make_emulated_cores(*times, pace) : cpu_backend(job)),
        train_root(api::data_path(job, launch, job.spec.data.train.path.value_or(""))),
        pixels(make_pixels(launch)),
        agent({.leases = 4,
               .micro_batch = micro_batch(job),
               .precision = precision(job),
               .seed = seed(job),
               .score_embeddings = scores_embeddings(job),
               .alone = true},
              graph, *backend, threads, *pixels) {}

  std::unique_ptr<PixelSource> make_pixels(const api::Launch& launch) {
    if (times) return std::make_unique<EmulatedPixels>(*times, pace);
    return std::make_unique<FilePixels>(
        pipeline_options(job), train_root,
        job.spec.data.validation
            ? api::data_path(job, launch, job.spec.data.validation->path.value_or(""))
            : "");
  }

  static api::TrainingJob parse(const std::string& text) {
    auto parsed = api::parse_training_job(text);
    if (!parsed.errors.empty())
      throw InvalidInput("the server's job cannot be read: " + parsed.errors.front().message);
    return std::move(parsed.job);
  }

  api::TrainingJob job;
  nn::Graph graph;
  Pace pace;
  std::optional<EmulatedTimes> times;  // of an emulated machine
  std::unique_ptr<nn::Backend> backend;
  std::filesystem::path train_root;
  std::unique_ptr<PixelSource> pixels;
  Agent agent;
};

Hello make_hello(const Setup& setup, const Workshop& shop, const std::string& name,
                 ThreadPool& threads) {
  Hello hello;
  hello.name = name;
  hello.version = OUTRIGGER_VERSION;
  hello.cores = static_cast<uint32_t>(threads.size());
  hello.memory = free_memory();
  try {
    hello.probe = data::probe(shop.train_root, setup.probe);
  } catch (const Error& error) {
    hello.problem = error.what();
  }
  if (shop.times) {
    hello.numerics = kEmulatedNumerics;
    hello.pass_seconds =
        static_cast<float>(shop.times->pass_seconds(setup.deepest_cut) / shop.pace.cores());
    return hello;
  }
  if (nn::cpu::instruction_set() != setup.instruction_set) return hello;
  const int64_t whole = micro_batch(shop.job);
  const int64_t samples =
      setup.only_timed ? nn::cpu::samples_to_time(shop.graph, whole, threads.size()) : whole;
  const auto numerics = nn::cpu::measure_numerics(shop.graph, setup.deepest_cut, samples,
                                                  precision(shop.job), threads);
  hello.numerics = numerics.fingerprint;
  const double of_all = static_cast<double>(whole) / static_cast<double>(samples);
  hello.pass_seconds =
      static_cast<float>(of_all * numerics.seconds * Quota(threads.size(), false).slowdown());
  hello.layers = numerics.layers;
  for (LayerSeconds& layer : hello.layers) {
    layer.forward *= static_cast<float>(of_all);
    layer.backward *= static_cast<float>(of_all);
  }
  return hello;
}

/// Imposes the job's instruction set where this machine has it; else the worker does cut 0 only.
void take_instruction_set(const std::string& wanted) {
  if (nn::cpu::instruction_set() == wanted || !nn::cpu::has_instruction_set(wanted)) return;
  try {
    nn::cpu::set_instruction_set(wanted);
  } catch (const InvalidInput& error) {
    log::warning("{}; this worker makes pixels only", error.what());
  }
}

transport::LinkKind link_kind(const Setup& setup) {
  return Workshop::parse(setup.job).spec.network.link == api::LinkKind::kGloo
             ? transport::LinkKind::kGloo
             : transport::LinkKind::kSockets;
}

/// A link to the server and its first words; nothing where it sends the worker away.
struct Joined {
  std::unique_ptr<transport::Link> link;
  std::variant<Setup, feed::Farewell> words;
};

Joined join_over(transport::LinkKind kind, const api::Launch& launch) {
  const auto address =
      transport::parse_address(launch.server, static_cast<uint16_t>(api::kJoinPort));
  Joined joined{transport::dial(address, read_token(launch.token_file),
                                {.kind = kind, .link = link_options(launch)}),
                {}};
  const auto frame = joined.link->receive(std::chrono::seconds(30));
  if (!frame)
    throw IoError("the server at " + launch.server +
                  " accepted the link and said nothing for 30 s");
  if (frame->type == static_cast<uint16_t>(FrameType::kFarewell))
    joined.words = std::get<feed::Farewell>(read_server_message(*frame, {}));
  else
    joined.words = read_setup(*frame);
  return joined;
}

/// Over sockets first: only then does the worker hear what the job wants its links carried by.
Joined join(const api::Launch& launch) {
  Joined joined = join_over(transport::LinkKind::kSockets, launch);
  const auto* setup = std::get_if<Setup>(&joined.words);
  if (setup == nullptr || link_kind(*setup) == transport::LinkKind::kSockets) return joined;
  joined.link->close("the worker joins again over Gloo");
  return join_over(transport::LinkKind::kGloo, launch);
}

/// Ends this process when a piece of work takes longer than a step may: a file system that hangs
/// lets go of no thread, and whoever started the process starts another.
std::unique_ptr<Watchdog> watch(const api::Launch& launch, const api::TrainingJob& job,
                                const SessionCounters& counters, const Clock& clock) {
  const Duration limit = job.spec.progress_deadline;
  const auto progress = [&counters, waits = uint64_t{0}]() mutable {
    const uint64_t turns = counters.turns;
    return turns % 2 == 1 ? turns : waits += 2;
  };
  const auto bark = [&launch](const std::string& what) {
    const std::string told = what + ": a read that does not end?";
    log::error("{}", told);
    if (launch.termination_file)
      api::write_last_words(*launch.termination_file, {api::ExitCode::kHung, told, {}});
    std::_Exit(static_cast<int>(api::ExitCode::kHung));
  };
  return std::make_unique<Watchdog>(WatchdogOptions{.startup = limit, .progress = limit}, clock,
                                    progress, bark);
}

SessionResult join_once(const api::Launch& launch, const std::string& name, ThreadPool& threads,
                        WorkerPages& pages, const std::stop_token& stop) {
  const auto [link, words] = join(launch);
  if (const auto* farewell = std::get_if<feed::Farewell>(&words)) return result_of(*farewell);
  const Setup& setup = std::get<Setup>(words);
  FaultPoint faults;
  faults.reached("got-setup");
  take_instruction_set(setup.instruction_set);
  Workshop shop(setup, launch, threads);
  const SystemClock clock{};
  const auto watchdog = watch(launch, shop.job, pages.counters(), clock);
  {
    const Turn turn(pages.counters().turns);  // it reads the data
    link->send(to_frame(make_hello(setup, shop, name, threads)));
  }
  if (faults.due("sent-hello")) static_cast<void>(link->flush(std::chrono::seconds(1)));
  faults.reached("sent-hello");
  log::info("joined {} for job '{}' ({} classes, incarnation {})", launch.server,
            shop.job.metadata.name, setup.classes, setup.incarnation);
  pages.joined(true);
  auto result = run_session(*link, shop.agent, {activation_type(shop.job), seed(shop.job)},
                            pages.counters(), stop);
  pages.joined(false);
  return result;
}

void sleep_for(Duration time, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, stop, time, [] { return false; });
}

api::ExitCode join_for_ever(const api::Launch& launch, const std::stop_token& stop) {
  const std::string name = host_name() + "/" + std::to_string(launch.index);
  ThreadPool threads(launch.threads.value_or(available_cores()));
  WorkerPages pages(launch, threads.size());
  Rejoining rejoining(static_cast<uint64_t>(::getpid()));
  while (!stop.stop_requested()) {
    try {
      const SessionResult result = join_once(launch, name, threads, pages, stop);
      if (result.end == SessionEnd::kStopped) break;
      if (result.end == SessionEnd::kFinished) {
        log::info("the server ended the work: {}", result.reason);
        return api::ExitCode::kDone;
      }
      rejoining.session_over(result);
      log::warning("the link is over: {}; joining again", result.reason);
    } catch (const transport::HandshakeRefused& refused) {
      rejoining.refused(refused.what());
      log::warning("{}", refused.what());
    } catch (const IoError& error) {
      log::info("cannot join {} yet: {}", launch.server, error.what());
    }
    pages.joined(false);
    sleep_for(rejoining.next_wait(), stop);
  }
  log::info("stopped");
  return api::ExitCode::kDone;
}

}  // namespace

api::ExitCode run_worker(const api::Launch& launch, const std::stop_token& stop) {
  try {
    return join_for_ever(launch, stop);
  } catch (const std::exception& error) {
    if (launch.termination_file)
      api::write_last_words(*launch.termination_file, {api::exit_code_of(error), error.what(), {}});
    throw;
  }
}

}  // namespace outrigger::worker
