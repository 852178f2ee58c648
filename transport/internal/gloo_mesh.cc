#include "transport/internal/gloo_mesh.h"

#include <poll.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "common/bytes.h"
#include "common/error.h"
#include "common/log.h"
#include "transport/endpoint.h"
#include "transport/internal/acceptor.h"
#include "transport/internal/dialer.h"
#include "transport/internal/signals.h"
#include "transport/internal/socket.h"

namespace outrigger::transport {
namespace {

/// A rank that has proved the token says who it is within this time, or others would wait for it.
constexpr Duration kIntroduction = std::chrono::seconds(5);
constexpr Duration kDialAgain = std::chrono::milliseconds(100);
/// Between two looks at whether the run was asked to stop.
constexpr std::chrono::milliseconds kStopLook{100};
/// Ranks that are all there connect within this time.
constexpr Duration kConnect = std::chrono::seconds(60);
constexpr Duration kTellAgain = std::chrono::seconds(60);

using AddressList = std::vector<std::vector<char>>;  ///< by rank; one's own is empty

TimePoint time_in(Duration time) { return SystemClock().now() + time; }

struct Introduction {
  uint32_t rank = 0;
  uint32_t size = 0;
  int64_t attempt = 0;
};

AddressList create_pairs(const GlooContext& gloo, const CollectiveOptions& options) {
  AddressList addresses(static_cast<size_t>(options.size));
  for (int peer = 0; peer < options.size; ++peer) {
    if (peer != options.rank)
      addresses[static_cast<size_t>(peer)] = gloo.context->createPair(peer)->address().bytes();
  }
  return addresses;
}

void connect_pairs(const GlooContext& gloo, const AddressList& peers, int rank) {
  for (int peer = 0; peer < static_cast<int>(peers.size()); ++peer) {
    if (peer != rank) gloo.context->getPair(peer)->connect(peers[static_cast<size_t>(peer)]);
  }
}

void write_list(int fd, const AddressList& list, TimePoint deadline) {
  for (const auto& address : list) write_blob(fd, address, deadline);
}

AddressList read_list(int fd, int size, TimePoint deadline) {
  AddressList list;
  for (int i = 0; i < size; ++i) list.push_back(read_blob(fd, kMaxAddressBytes, deadline));
  return list;
}

struct Guest {
  FileDescriptor fd;
  AddressList addresses;
};

bool is_expected(const Introduction& who, const std::string& peer,
                 const CollectiveOptions& options) {
  const auto size = static_cast<uint32_t>(options.size);
  if (who.size != size || who.rank == 0 || who.rank >= size) {
    log::error("{} says that it is rank {} of {}; there are {} ranks here", peer, who.rank,
               who.size, size);
    return false;
  }
  if (who.attempt != options.attempt) {
    log::warning("rank {} at {} is refused: it is of attempt {} of the job, and this is attempt {}",
                 who.rank, peer, who.attempt, options.attempt);
    return false;
  }
  return true;
}

/// Takes one rank in; a rank that comes again replaces its former life. What makes no sense is
/// logged and dropped.
void welcome(Connection connection, const CollectiveOptions& options,
             std::map<int, Guest>& guests) {
  const TimePoint deadline = time_in(kIntroduction);
  try {
    Introduction who;
    read_all(connection.fd.get(), std::as_writable_bytes(std::span(&who, 1)), deadline);
    if (!is_expected(who, connection.peer, options)) return;
    AddressList addresses = read_list(connection.fd.get(), options.size, deadline);
    guests[static_cast<int>(who.rank)] = {std::move(connection.fd), std::move(addresses)};
  } catch (const IoError& failure) {
    log::warning("a rank at {} left before it said which: {}", connection.peer, failure.what());
  }
}

void heed(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled("the run was asked to stop");
}

std::string missing(const std::map<int, Guest>& guests, int size) {
  std::string ranks;
  for (int rank = 1; rank < size; ++rank) {
    if (!guests.contains(rank)) ranks += " " + std::to_string(rank);
  }
  return ranks;
}

/// Nobody takes workers yet: after some seconds of silence they dial again, and what they left
/// would fill the port.
void drop_workers(Listener& listener) {
  while (listener.acceptor().accept(Duration{0})) {
  }
}

std::map<int, Guest> gather(Listener& listener, const CollectiveOptions& options) {
  const TimePoint deadline = time_in(options.join_limit);
  TimePoint tell_at = time_in(kIntroduction);
  TimePoint clear_at = tell_at;
  std::map<int, Guest> guests;
  while (guests.size() + 1 < static_cast<size_t>(options.size)) {
    heed(options.stop);
    const TimePoint now = SystemClock().now();
    if (now >= deadline)
      throw IoError("ranks have not come in time:" + missing(guests, options.size));
    if (now >= tell_at) {
      log::info("waiting for ranks:{}", missing(guests, options.size));
      tell_at = now + kTellAgain;
    }
    auto connection =
        listener.acceptor().accept(std::min<Duration>(kStopLook, deadline - now), Visitor::kRank);
    if (connection) welcome(std::move(*connection), options, guests);
    if (now >= clear_at) {
      drop_workers(listener);
      clear_at = now + kIntroduction;
    }
  }
  return guests;
}

FileDescriptor dial_until(const Address& address, const std::string& token,
                          const CollectiveOptions& options, TimePoint deadline) {
  for (;;) {
    heed(options.stop);
    try {
      return dial_and_prove(address, token, Purpose::kCollective,
                            std::min<Duration>(kIntroduction, deadline - system_now()));
    } catch (const IoError&) {
      if (time_in(kDialAgain) >= deadline) throw;
      std::this_thread::sleep_for(kDialAgain);
    }
  }
}

/// Rank 0 answers once all are there; when it ends, too.
void await_answer(int fd, const std::stop_token& stop, TimePoint deadline) {
  pollfd waits{.fd = fd, .events = POLLIN, .revents = 0};
  while (::poll(&waits, 1, static_cast<int>(kStopLook.count())) == 0) {
    heed(stop);
    if (SystemClock().now() >= deadline)
      throw IoError("rank 0 does not say that all ranks have come");
  }
  heed(stop);  // rank 0 may have ended on the same
}

/// Says who this is and where its pairs listen; where all others' do.
AddressList meet_first(int fd, const AddressList& own, const CollectiveOptions& options,
                       TimePoint deadline) {
  const Introduction who{.rank = static_cast<uint32_t>(options.rank),
                         .size = static_cast<uint32_t>(options.size),
                         .attempt = options.attempt};
  try {
    write_all(fd, std::as_bytes(std::span(&who, 1)), time_in(kIntroduction));
    write_list(fd, own, time_in(kIntroduction));
    await_answer(fd, options.stop, deadline);
    return read_list(fd, options.size, time_in(kConnect));
  } catch (const LinkClosed& closed) {
    throw IoError(std::string("rank 0 has ended, or refuses this rank, as its log says: ") +
                  closed.what());
  }
}

template <typename Make>
GlooContext translated(const Make& make) {
  const NoSigpipe no_sigpipe;
  try {
    return make();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& failure) {
    throw IoError(std::string("Gloo could not connect the ranks: ") + failure.what());
  }
}

}  // namespace

GlooContext host_mesh(Listener& listener, const CollectiveOptions& options) {
  return translated([&] {
    const std::map<int, Guest> guests = gather(listener, options);
    const TimePoint deadline = time_in(kConnect);
    const std::string here = local_host(guests.begin()->second.fd.get());
    GlooContext gloo = make_gloo_context(here, 0, options.size, deadline);
    const AddressList own = create_pairs(gloo, options);
    AddressList to_connect(static_cast<size_t>(options.size));
    for (const auto& [rank, guest] : guests) {
      const auto r = static_cast<size_t>(rank);
      AddressList theirs(static_cast<size_t>(options.size));
      theirs[0] = own[r];
      for (const auto& [other, other_guest] : guests) {
        if (other != rank) theirs[static_cast<size_t>(other)] = other_guest.addresses[r];
      }
      write_list(guest.fd.get(), theirs, deadline);
      to_connect[r] = guest.addresses[0];
    }
    connect_pairs(gloo, to_connect, 0);
    return gloo;
  });
}

GlooContext join_mesh(const Address& address, const std::string& token,
                      const CollectiveOptions& options) {
  return translated([&] {
    const TimePoint deadline = time_in(options.join_limit);
    const FileDescriptor fd = dial_until(address, token, options, deadline);
    GlooContext gloo =
        make_gloo_context(local_host(fd.get()), options.rank, options.size, time_in(kConnect));
    connect_pairs(gloo, meet_first(fd.get(), create_pairs(gloo, options), options, deadline),
                  options.rank);
    return gloo;
  });
}

}  // namespace outrigger::transport
