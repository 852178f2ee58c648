#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/memory_source.h"
#include "common/processor_clock.h"
#include "common/tensor.h"
#include "common/thread_pool.h"
#include "feed/messages.h"
#include "feed/room.h"
#include "nn/graph.h"
#include "nn/program.h"
#include "nn/scorer.h"
#include "worker/work/decoder.h"
#include "worker/work/decoding.h"
#include "worker/work/stems.h"
#include "worker/work/stopwatch.h"

namespace outrigger::worker {

struct AgentOptions {
  uint32_t leases = 4;         // how many forward leases it has room for
  uint32_t asked_at_once = 1;  // how many it asks for with one message, once it has some
  int64_t micro_batch = 1;     // m
  nn::Precision precision = nn::Precision::kFloat32;
  uint64_t seed = 0;
  bool score_embeddings = false;  // whether scores hold embeddings
  /// For about how many threads a stem's pass has work; the others decode meanwhile.
  int stem_threads = std::numeric_limits<int>::max();
  /// Where pixels that are sent to the server's device are made; null: in ordinary memory.
  std::shared_ptr<MemorySource> pixel_memory = nullptr;
  /// Whether all that the process does belongs to the agent's work.
  bool alone = false;
  /// A thread that works on the same cores, whose time is not in what decoding takes.
  std::optional<ProcessorClock> neighbour = std::nullopt;
};

/// What a worker does, without threads and links of its own: messages go in, work() does the most
/// urgent piece, messages collect in an outbox. Urgent first: a backward whose gradient is here, a
/// forward whose pixels and weights are here, then decoding a sample, each in the order of steps;
/// scores of an evaluation when there is nothing else. Not thread-safe; work() spreads over
/// `threads`, and those that it does not need decode by themselves.
class Agent {
 public:
  /// All references must outlive the agent.
  Agent(AgentOptions options, const nn::Graph& graph, const nn::Backend& backend,
        ThreadPool& threads, PixelSource& pixels);

  /// Throws InvalidInput where the server breaks the protocol.
  void receive(feed::ServerMessage message);
  /// False: nothing can be done until a message comes, or a lease is decoded.
  bool work();
  /// As those of Decoder.
  void watch(Decoder::Watch watch) { decoder_.watch(std::move(watch)); }
  double take_busy() { return decoder_.take_busy(); }
  void settle() { decoder_.settle(); }
  std::vector<feed::WorkerMessage> take_outbox();
  /// At which rate the link sends, as results tell the server from now on.
  void set_link_rate(double bytes_per_second) { link_rate_ = static_cast<float>(bytes_per_second); }
  /// Asks for no more leases. Call before leaving; the leases that are under way can still be
  /// finished.
  void stop_pulling() { pulling_ = false; }
  /// Leases that are not finished yet, those that only wait for a gradient among them.
  size_t unfinished() const { return works_.size(); }
  const std::optional<feed::Farewell>& farewell() const { return farewell_; }
  /// Whether any lease has come.
  bool had_work() const { return had_work_; }

 private:
  enum class Stage : uint8_t { kDecode, kForward, kAwaitGradient, kBackward, kScore };
  struct Work {
    std::shared_ptr<const feed::Lease> lease;
    std::shared_ptr<Decoding> decoding;
    Stage stage = Stage::kDecode;
    uint64_t pixel_hash = 0;
    feed::WorkTimes times;
    std::unique_ptr<nn::Tape> tape;
    std::shared_ptr<const Tensor> gradient;
    bool room_given_back = false;
  };
  using Works = std::map<feed::WorkKey, Work>;

  void take(feed::Lease&& lease);
  void take(feed::StemWeights&& weights);
  void take(feed::CutGradient&& gradient);
  void take(feed::Cancel&& cancel);
  void take(feed::Committed&& committed);
  void take(feed::Farewell&& farewell);

  feed::WorkTimes times_of(const Work& work) const;
  /// Of what waits for nothing: decoding, scores, and what stems will need.
  bool work_ahead();
  /// Gives the decoder as many leases as it wants.
  void offer_leases();
  /// Makes a sample of the first lease that lacks one; before that asks for the files of one more.
  /// False: others make what is left to make.
  bool decode();
  /// Of which all pixels are made, or could not be.
  Works::iterator find_decoded();
  void finish_decoding(Works::iterator at);
  void forward(Works::iterator at);
  void backward(Works::iterator at);
  void score(Works::iterator at);
  /// What stems need whose weights have not come yet; whether there was any of that to do.
  bool prepare();
  bool prepare_stems();
  /// A micro-batch is made as pixels, or with a stem.
  void note_kind(bool stem);
  void send_pixels(Works::iterator at);
  void give_room_back(Work& work);
  void send(const std::optional<feed::Pull>& pull);
  Works::iterator finish(Works::iterator at);
  /// It is not wanted any more, however far it is.
  Works::iterator drop(Works::iterator at);
  Works::iterator find_ready(Stage stage);

  const AgentOptions options_;
  const nn::Graph& graph_;
  ThreadPool& threads_;
  Stems stems_;
  nn::Scorer scorer_;
  Quota quota_;
  Decoder decoder_;
  bool runs_stems_ = false;
  uint32_t pixels_in_row_ = 0;                 // micro-batches without a stem
  std::optional<feed::StemWeights> to_score_;  // of an evaluation, until the scorer has them
  std::optional<uint64_t> scored_;             // the evaluation whose weights it has
  Works works_;
  std::vector<feed::WorkerMessage> outbox_;
  feed::Room room_;
  float link_rate_ = 0;
  bool pulling_ = true;
  std::optional<feed::Farewell> farewell_;
  bool had_work_ = false;
};

/// Images of a score lease, at most: few, so that a gradient for a stem does not wait for long.
int64_t scored_at_once(int64_t micro_batch);

}  // namespace outrigger::worker
