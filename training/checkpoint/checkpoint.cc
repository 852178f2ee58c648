#include "training/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <cstdio>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <span>

#include "common/file.h"
#include "common/hash.h"
#include "common/log.h"
#include "training/checkpoint/checkpoint_directory.h"

namespace outrigger::training {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAttempt = "attempt";
constexpr std::string_view kStep = "step-";
constexpr const char* kBest = "best";

std::optional<uint64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kStep)) return std::nullopt;
  uint64_t step = 0;
  const auto [end, error] =
      std::from_chars(name.data() + kStep.size(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return step;
}

/// Ascending; none where the directory is absent. Throws IoError where it cannot be listed.
std::vector<uint64_t> steps_under(const fs::path& directory) {
  std::vector<uint64_t> steps;
  try {
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (const auto step = step_of(entry.path()); step && entry.is_directory())
        steps.push_back(*step);
    }
  } catch (const fs::filesystem_error& error) {
    if (error.code() != std::errc::no_such_file_or_directory)
      throw IoError("listing the checkpoints in " + directory.string() + ": " +
                    error.code().message());
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

fs::path step_path_under(const fs::path& directory, uint64_t step) {
  return directory / (std::string(kStep) + std::to_string(step));
}

std::optional<int64_t> read_attempt(const fs::path& directory) {
  const fs::path file = directory / kAttempt;
  std::error_code unreadable;  // then reading says why
  if (!fs::exists(file, unreadable) && !unreadable) return std::nullopt;
  const std::string text = read_file(file, 64);
  int64_t attempt = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), attempt).ec != std::errc()) {
    throw InvalidInput(file.string() + " holds '" + text + "' instead of the number of an attempt");
  }
  return attempt;
}

/// Puts `from` at `to` in one step even where `to` is a directory that is not empty; `from` then
/// holds what was there. File systems that cannot exchange (NFS) get two renames: a crash between
/// them leaves the checkpoints before `to`.
void put_in_place(const fs::path& from, const fs::path& to) {
  if (!fs::exists(to)) {
    if (::rename(from.c_str(), to.c_str()) != 0)
      throw_errno("renaming " + from.string() + " to " + to.string(), errno);
    return;
  }
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS)
    throw_errno("exchanging " + from.string() + " with " + to.string(), errno);
  const fs::path aside = from.string() + ".former";
  if (::rename(to.c_str(), aside.c_str()) != 0) throw_errno("renaming " + to.string(), errno);
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw_errno("renaming " + from.string() + " to " + to.string(), errno);
  if (::rename(aside.c_str(), from.c_str()) != 0) throw_errno("renaming " + aside.string(), errno);
}

/// A directory's removal is not one step; under a hidden name no reader takes what is left for a
/// checkpoint.
void remove_directory(const fs::path& path) {
  const fs::path hidden = path.parent_path() / ("." + path.filename().string() + ".removed");
  std::error_code ignored;  // what cannot be removed costs space, nothing else, and is tried again
                            // at the next start
  fs::remove_all(hidden, ignored);
  fs::rename(path, hidden, ignored);
  fs::remove_all(hidden, ignored);
}

bool is_left_over(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(".step-") || name.starts_with(".best.") ||
         name.starts_with("attempt.tmp.");
}

[[noreturn]] void not_written(uint64_t step, const std::exception& error) {
  throw IoError("the checkpoint of step " + std::to_string(step) +
                " could not be written, the former ones are untouched: " + error.what());
}

/// A directory to write a checkpoint in: whatever it holds at the end goes (after an exchange, the
/// former checkpoint).
class Scratch {
 public:
  explicit Scratch(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    if (!fs::create_directory(path_, error))
      throw IoError("making " + path_.string() + ": " + error.message());
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// load_newest_checkpoint, and which steps it passed over.
std::optional<Checkpoint> find_newest(const fs::path& directory, const nn::Graph& graph,
                                      std::set<uint64_t>& passed_over) {
  const std::vector<uint64_t> steps = steps_under(directory);
  std::string newest_error;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const fs::path path = step_path_under(directory, *step);
    try {
      return load_checkpoint(path, graph);
    } catch (const IoError& error) {
      log::warning("passing over the checkpoint of step {}: {}", *step, error.what());
      passed_over.insert(*step);
      if (newest_error.empty()) newest_error = error.what();
    }
  }
  if (steps.empty()) return std::nullopt;
  throw IoError("of the checkpoints in " + directory.string() + " (" +
                std::to_string(steps.size()) + ") none can be read, the newest because " +
                newest_error + "; see that the file system is well, or remove " +
                directory.string() + " to begin anew");
}

}  // namespace

Checkpoint load_checkpoint(const fs::path& path, const nn::Graph& graph) {
  return read_checkpoint_files(path, graph);
}

std::optional<Checkpoint> load_newest_checkpoint(const fs::path& directory,
                                                 const nn::Graph& graph) {
  std::set<uint64_t> passed_over;
  return find_newest(directory, graph, passed_over);
}

CheckpointStore::CheckpointStore(fs::path directory, CheckpointOptions options)
    : directory_(std::move(directory)), options_(std::move(options)) {
  if (options_.keep < 1) {
    throw InvalidInput("checkpoint.keep is " + std::to_string(options_.keep) + ": at least 1");
  }
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) throw IoError("making " + directory_.string() + ": " + error.message());
  check_attempt();
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    if (is_left_over(entry.path())) fs::remove_all(entry.path(), error);
  }
  if (read_attempt(directory_).value_or(-1) != options_.attempt) {
    write_file_atomically(directory_ / kAttempt, std::to_string(options_.attempt) + "\n");
    sync_directory(directory_);
  }
}

std::optional<Checkpoint> CheckpointStore::load_newest(const nn::Graph& graph) {
  damaged_.clear();
  return find_newest(directory_, graph, damaged_);
}

void CheckpointStore::save(const TrainingState& state, const nn::Graph& graph,
                           const CheckpointMetadata& metadata) {
  replace(step_path(state.step).filename().string(), state, graph, metadata);
  damaged_.erase(state.step);
  prune(state.step);
}

void CheckpointStore::save_best(const TrainingState& state, const nn::Graph& graph,
                                const CheckpointMetadata& metadata) {
  replace(kBest, state, graph, metadata);
}

fs::path CheckpointStore::step_path(uint64_t step) const {
  return step_path_under(directory_, step);
}
fs::path CheckpointStore::best_path() const { return directory_ / kBest; }
std::vector<uint64_t> CheckpointStore::steps() const { return steps_under(directory_); }

void CheckpointStore::replace(const std::string& name, const TrainingState& state,
                              const nn::Graph& graph, const CheckpointMetadata& metadata) {
  try {
    // A name of its own: a server of an earlier attempt may not have noticed yet that it is one.
    const auto unique = random_bytes(8);
    const Scratch scratch(directory_ /
                          ("." + name + "." + to_hex(std::as_bytes(std::span(unique)))));
    reached("made the directory");
    write_checkpoint_files(scratch.path(), state, graph, metadata,
                           [this](std::string_view at) { reached(at); });
    check_attempt();
    put_in_place(scratch.path(), directory_ / name);
    reached("renamed");
    sync_directory(directory_);
  } catch (const IoError& error) {
    not_written(state.step, error);
  } catch (const fs::filesystem_error& error) {
    not_written(state.step, error);
  }
}

void CheckpointStore::check_attempt() const {
  const auto claimed = read_attempt(directory_);
  if (claimed && *claimed > options_.attempt) {
    throw Superseded(directory_.string() + " belongs to attempt " + std::to_string(*claimed) +
                     " of the job, this is attempt " + std::to_string(options_.attempt) +
                     "; once no server of the job lives, " + (directory_ / kAttempt).string() +
                     " may be removed to go on from here with any attempt");
  }
}

void CheckpointStore::prune(uint64_t newest) {
  std::vector<uint64_t> older;
  try {
    older = steps();
  } catch (const IoError& error) {
    log::warning("former checkpoints are kept for now: {}", error.what());
    return;
  }
  // Later steps than the one just written were damaged, else the run would have gone on from them:
  // they neither count nor go, the run replaces them when it comes to them.
  std::erase_if(older, [&](uint64_t step) { return step > newest; });
  const auto good = std::stable_partition(older.begin(), older.end(),
                                          [&](uint64_t step) { return damaged_.contains(step); });
  const auto keep = std::min<ptrdiff_t>(options_.keep, older.end() - good);
  for (const uint64_t step : std::span(older.begin(), older.end() - keep)) {
    remove_directory(step_path(step));
    reached("removed the oldest");
  }
}

void CheckpointStore::reached(std::string_view fault_point) const {
  if (options_.at_fault_point) options_.at_fault_point(fault_point);
}

}  // namespace outrigger::training
