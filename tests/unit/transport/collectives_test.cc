#include "transport/collectives.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include "common/error.h"
#include "common/random.h"
#include "common/tensor.h"
#include "link_pairs.h"
#include "transport/handshake.h"

namespace outrigger::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const CollectiveOptions kQuick{.join_limit = seconds(20), .limit = seconds(20)};

CollectiveOptions options_for(int rank, int size, Duration limit = kQuick.limit) {
  return {.rank = rank, .size = size, .join_limit = kQuick.join_limit, .limit = limit};
}

/// Runs `work` on `size` ranks, each on a thread with a collective of its own.
void on_ranks(int size, const std::function<void(std::unique_ptr<Collective>)>& work,
              Duration limit = kQuick.limit) {
  Listener listener({"127.0.0.1", 0}, "token");
  const Address address{"127.0.0.1", listener.port()};
  const auto run = [&](int rank) {
    const CollectiveOptions options = options_for(rank, size, limit);
    try {
      work(rank == 0 ? Collective::host(listener, options)
                     : Collective::join(address, "token", options));
    } catch (const std::exception& failure) {
      ADD_FAILURE() << "rank " << rank << " of " << size << ": " << failure.what();
    }
  };
  std::vector<std::jthread> ranks;
  for (int rank = 1; rank < size; ++rank) ranks.emplace_back(run, rank);
  run(0);
}

std::vector<float> values_of(int rank, size_t count) {
  std::vector<float> values(count);
  RandomStream stream(3, RandomUse::kSyntheticData, static_cast<uint64_t>(rank));
  for (float& value : values) value = stream.normal() * 1000.0F;
  return values;
}

TEST(CollectivesTest, InBFloat16EveryRanksValuesAreRoundedAddedInFloat32AndRoundedAgain) {
  for (const int size : {1, 2, 3}) {
    on_ranks(size, [&](const std::unique_ptr<Collective>& collective) {
      for (const size_t count : {0U, 1U, 7U, 1001U}) {
        std::vector<float> expected(count);
        for (int rank = 0; rank < size; ++rank) {
          const std::vector<float> more = values_of(rank, count);
          for (size_t i = 0; i < count; ++i) expected[i] += from_bfloat16(to_bfloat16(more[i]));
        }
        for (float& value : expected) value = from_bfloat16(to_bfloat16(value));
        std::vector<float> values = values_of(collective->rank(), count);
        collective->all_reduce_bfloat16(values);
        ASSERT_EQ(values, expected);
      }
    });
  }
}

TEST(CollectivesTest, AllReduceAddsInTheOrderOfTheRanksOnEveryRank) {
  for (const int size : {1, 2, 3, 5}) {
    on_ranks(size, [&](const std::unique_ptr<Collective>& collective) {
      for (const size_t count : {0U, 1U, 2U, 7U, 1000U, 30'001U}) {
        std::vector<float> expected = values_of(0, count);
        for (int rank = 1; rank < size; ++rank) {
          const std::vector<float> more = values_of(rank, count);
          for (size_t i = 0; i < count; ++i) expected[i] += more[i];
        }
        std::vector<float> values = values_of(collective->rank(), count);
        collective->all_reduce(values);
        ASSERT_EQ(values, expected);
      }
    });
  }
}

TEST(CollectivesTest, BroadcastGivesEveryRankTheBytesOfTheRoot) {
  on_ranks(3, [](const std::unique_ptr<Collective>& collective) {
    for (int root = 0; root < 3; ++root) {
      Bytes bytes = pattern(100'000, static_cast<uint32_t>(collective->rank()));
      collective->broadcast(bytes, root);
      ASSERT_EQ(bytes, pattern(100'000, static_cast<uint32_t>(root)));
    }
  });
}

TEST(CollectivesTest, NobodyLeavesABarrierBeforeAllHaveCome) {
  std::atomic<int> arrived = 0;
  on_ranks(4, [&](const std::unique_ptr<Collective>& collective) {
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      collective->barrier();
      ASSERT_GE(arrived, 4 * round);
      collective->barrier();
    }
  });
}

TEST(CollectivesTest, WhatARankSentBeforeItLeftArrives) {
  for (int round = 0; round < 10; ++round) {
    on_ranks(6, [](const std::unique_ptr<Collective>& collective) {
      Bytes bytes = pattern(300'000, static_cast<uint32_t>(collective->rank()));
      collective->broadcast(bytes, 1);
      ASSERT_EQ(bytes, pattern(300'000, 1));
    });
  }
}

TEST(CollectivesTest, ARankThatLeavesMakesTheOthersFailAtOnce) {
  const TimePoint start = SystemClock().now();
  on_ranks(3, [](std::unique_ptr<Collective> collective) {
    collective->barrier();
    if (collective->rank() == 1) {
      collective.reset();
      return;
    }
    std::vector<float> values(100'000);
    EXPECT_THROW(
        {
          for (;;) collective->all_reduce(values);
        },
        IoError);
    EXPECT_THROW(collective->barrier(), IoError) << "it stays broken";
  });
  EXPECT_LT(SystemClock().now() - start, seconds(10));
}

TEST(CollectivesTest, ARankThatStandsStillMakesTheOthersFailWithinTheLimit) {
  std::atomic<int> failed = 0;
  on_ranks(
      3,
      [&](const std::unique_ptr<Collective>& collective) {
        if (collective->rank() == 2) {
          while (failed < 2) std::this_thread::yield();
          return;
        }
        const TimePoint start = SystemClock().now();
        EXPECT_THROW(collective->barrier(), IoError);
        EXPECT_LT(SystemClock().now() - start, seconds(5));
        ++failed;
      },
      milliseconds(300));
}

TEST(CollectivesTest, MissingRanksAreNamed) {
  Listener listener({"127.0.0.1", 0}, "token");
  try {
    Collective::host(listener, {.rank = 0, .size = 3, .join_limit = milliseconds(100)});
    FAIL() << "nobody came, yet the ranks are together";
  } catch (const IoError& failure) {
    EXPECT_NE(std::string(failure.what()).find("1 2"), std::string::npos) << failure.what();
  }
}

TEST(CollectivesTest, AStopEndsTheWaitForRanks) {
  Listener listener({"127.0.0.1", 0}, "token");
  const Address address{"127.0.0.1", listener.port()};
  std::stop_source stop;
  const auto waiting = [&](int rank) {
    CollectiveOptions options = options_for(rank, 3);
    options.join_limit = seconds(3600);
    options.stop = stop.get_token();
    EXPECT_THROW(rank == 0 ? Collective::host(listener, options)
                           : Collective::join(address, "token", options),
                 Cancelled);
  };
  std::jthread first(waiting, 0);   // both wait for rank 2,
  std::jthread second(waiting, 1);  // whether they have met already or not
  std::this_thread::sleep_for(milliseconds(300));
  stop.request_stop();
}

TEST(CollectivesTest, ARankThatComesLateIsWaitedFor) {
  Listener listener({"127.0.0.1", 0}, "token");
  const Address address{"127.0.0.1", listener.port()};
  std::jthread early([&] { Collective::join(address, "token", options_for(1, 3))->barrier(); });
  std::jthread late([&] {
    std::this_thread::sleep_for(milliseconds(500));
    Collective::join(address, "token", options_for(2, 3))->barrier();
  });
  const auto all = Collective::host(listener, options_for(0, 3));
  EXPECT_EQ(all->size(), 3);
  EXPECT_NO_THROW(all->barrier());
}

TEST(CollectivesTest, WorkersThatComeMeanwhileKeepNoRankOut) {
  Listener listener({"127.0.0.1", 0}, "token", {.max_waiting = 1});
  const Address address{"127.0.0.1", listener.port()};
  const auto early = dial(address, "token");
  std::jthread late([&] {
    std::this_thread::sleep_for(milliseconds(300));
    Collective::join(address, "token", options_for(1, 2))->barrier();
  });
  EXPECT_NO_THROW(Collective::host(listener, options_for(0, 2))->barrier());
}

TEST(CollectivesTest, ARankWithAnotherTokenIsRefused) {
  Listener listener({"127.0.0.1", 0}, "token");
  EXPECT_THROW(Collective::join({"127.0.0.1", listener.port()}, "other", options_for(1, 2)),
               HandshakeRefused);
}

TEST(CollectivesTest, ARankOfAnotherAttemptIsRefusedAndTakesNobodysPlace) {
  for (const int64_t other : {0, 6, 8}) {
    Listener listener({"127.0.0.1", 0}, "token");
    const Address address{"127.0.0.1", listener.port()};
    CollectiveOptions host = options_for(0, 3);
    host.attempt = 7;
    std::jthread first([&] { EXPECT_NO_THROW(Collective::host(listener, host)->barrier()); });
    CollectiveOptions stranger = options_for(1, 3);
    stranger.attempt = other;
    EXPECT_THROW(Collective::join(address, "token", stranger), IoError) << other;
    std::vector<std::jthread> own;
    for (const int rank : {1, 2}) {
      own.emplace_back([&, rank] {
        CollectiveOptions options = options_for(rank, 3);
        options.attempt = 7;
        EXPECT_NO_THROW(Collective::join(address, "token", options)->barrier()) << other;
      });
    }
  }
}

TEST(CollectivesTest, ARankThatNeverReachesTheHostGivesUp) {
  EXPECT_THROW(Collective::join({"127.0.0.1", 1}, "token",
                                {.rank = 1, .size = 2, .join_limit = milliseconds(200)}),
               IoError);
}

TEST(CollectivesTest, ImpossibleRanksAreRefused) {
  Listener listener({"127.0.0.1", 0}, "token");
  EXPECT_THROW(Collective::host(listener, options_for(0, 0)), InvalidInput);
  EXPECT_THROW(Collective::join({"127.0.0.1", listener.port()}, "token", options_for(2, 2)),
               InvalidInput);
}

TEST(CollectivesTest, WorkersAndRanksMeetOnTheSamePort) {
  Listener listener({"127.0.0.1", 0}, "token");
  const Address address{"127.0.0.1", listener.port()};
  std::thread rank([&] { Collective::join(address, "token", options_for(1, 2))->barrier(); });
  const auto worker = dial(address, "token");
  const auto collective = Collective::host(listener, options_for(0, 2));
  const auto link = listener.accept(seconds(10));
  ASSERT_TRUE(link);
  worker->send(frame_of(1));
  EXPECT_EQ(receive_one(*link).type, 1);
  collective->barrier();
  rank.join();
}

}  // namespace
}  // namespace outrigger::transport
