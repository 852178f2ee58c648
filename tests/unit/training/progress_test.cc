#include "training/progress.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "common/log.h"

namespace outrigger::training {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

/// A stream into memory.
class Captured {
 public:
  Captured() : stream_(::open_memstream(&data_, &size_)) {}
  ~Captured() {
    std::fclose(stream_);
    std::free(data_);
  }
  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    return {data_, size_};
  }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
  std::FILE* stream_;
};

Progress sample() {
  Progress p;
  p.epoch = 2.4;
  p.epochs = 40;
  p.step = 1200;
  p.total_steps = 26000;
  p.images_per_second = 512.3;
  p.loss = 0.23412;
  p.accuracy = 0.9312;
  p.stall_percent = 3.2;
  p.stall_cause = "Decode";
  p.plan = "cut layer1, share 75%";
  p.time_left = minutes(12) + seconds(30);
  return p;
}

TEST(FormatDuration, UsesTwoUnitsAtMost) {
  EXPECT_EQ(format_duration(milliseconds(0)), "0ms");
  EXPECT_EQ(format_duration(milliseconds(-5)), "0ms");
  EXPECT_EQ(format_duration(milliseconds(850)), "850ms");
  EXPECT_EQ(format_duration(milliseconds(12400)), "12s");
  EXPECT_EQ(format_duration(milliseconds(59600)), "1m00s");
  EXPECT_EQ(format_duration(seconds(185)), "3m05s");
  EXPECT_EQ(format_duration(hours(2) + minutes(7)), "2h07m");
  EXPECT_EQ(format_duration(hours(23) + minutes(59) + seconds(45)), "1d00h");
  EXPECT_EQ(format_duration(hours(99)), "4d03h");
}

TEST(FormatCount, KeepsThreeDigitsAndALittle) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(7.32), "7.3");
  EXPECT_EQ(format_count(512.3), "512");
  EXPECT_EQ(format_count(9999), "9999");
  EXPECT_EQ(format_count(12400), "12.4k");
  EXPECT_EQ(format_count(3.1e6), "3.1M");
  EXPECT_EQ(format_count(31e6), "31.0M");
}

TEST(FormatProgress, TellsEverythingWhereThereIsRoom) {
  EXPECT_EQ(format_progress(sample()),
            "epoch 3/40 | step 1200/26000 | 512 images/s | loss 0.234 | accuracy 93.1% | stall 3% "
            "(Decode) | "
            "cut layer1, share 75% | 12m30s left");
}

TEST(FormatProgress, LeavesOutWhatIsAbsent) {
  Progress p;
  p.step = 7;
  EXPECT_EQ(format_progress(p), "step 7");
  p.total_steps = 9;
  p.loss = 12.5;
  EXPECT_EQ(format_progress(p), "step 7/9 | loss 12.5");
}

TEST(FormatProgress, NamesTheLastEpochWhenAllAreDone) {
  Progress p = sample();
  p.epoch = 40;
  EXPECT_EQ(format_progress(p).substr(0, 11), "epoch 40/40");
}

TEST(FormatProgress, FitsAnyWidthAndLosesTheLeastImportantFirst) {
  for (int width = 1; width < 140; ++width) {
    const std::string line = format_progress(sample(), width);
    EXPECT_LE(line.size(), static_cast<size_t>(width));
    EXPECT_TRUE(line.starts_with("step") || line.starts_with("epoch") || width < 4) << line;
  }
  EXPECT_EQ(format_progress(sample(), 80),
            "step 1200/26000 | 512 images/s | loss 0.234 | accuracy 93.1% | 12m30s left");
  EXPECT_EQ(format_progress(sample(), 45), "step 1200/26000 | loss 0.234 | 12m30s left");
}

TEST(ProgressLine, RedrawsInPlaceOnATerminalAndNotTooOften) {
  FakeClock clock;
  Captured out;
  {
    ProgressLine line(clock, {.stream = out.stream(), .columns = 45});
    line.show(sample());
    line.show(sample());
    clock.advance(milliseconds(200));
    line.show(sample());
  }
  const std::string drawn = "\rstep 1200/26000 | loss 0.234 | 12m30s left\x1b[K";
  EXPECT_EQ(out.text(), drawn + drawn + "\n");
}

TEST(ProgressLine, WritesPlainLinesNowAndThenElsewhere) {
  FakeClock clock;
  Captured out;
  Progress p;
  {
    ProgressLine line(clock, {.stream = out.stream(), .columns = std::nullopt});
    for (p.step = 0; p.step < 25; ++p.step) {
      line.show(p);
      clock.advance(seconds(1));
    }
    line.finish(p);
  }
  EXPECT_EQ(out.text(), "step 0\nstep 10\nstep 20\nstep 25\n");
}

TEST(ProgressLine, IsTakenAwayByWhatIsLoggedAndComesBack) {
  FakeClock clock;
  Captured out;
  Progress p;
  {
    ProgressLine line(clock, {.stream = out.stream(), .columns = 80});
    line.show(p);
    log::warning("a worker left");
    log::warning("and another one");
    EXPECT_EQ(out.text(), "\rstep 0\x1b[K\r\x1b[K") << "once";
    clock.advance(milliseconds(200));
    line.show(p);
    log::warning("the run ends");
  }
  EXPECT_EQ(out.text(), "\rstep 0\x1b[K\r\x1b[K\rstep 0\x1b[K\r\x1b[K");
}

TEST(ProgressLine, GoesOnWhereItsStreamTakesNothing) {
  FakeClock clock;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> full(std::fopen("/dev/full", "w"),
                                                             &std::fclose);
  ASSERT_NE(full, nullptr);
  std::setvbuf(full.get(), nullptr, _IONBF, 0);  // as standard error
  for (const std::optional<int> columns : {std::optional<int>(80), std::optional<int>()}) {
    ProgressLine line(clock, {.stream = full.get(), .columns = columns});
    EXPECT_NO_THROW(line.show(sample()));
    EXPECT_NO_THROW(line.finish(sample()));
  }
}

TEST(TerminalColumns, AreAbsentForAFile) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  EXPECT_FALSE(terminal_columns(file.get()).has_value());
}

}  // namespace
}  // namespace outrigger::training
