#include "http/connection.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "common/error.h"

namespace outrigger::http {
namespace {

// A TLS record. What is larger than this grows it, as far as a head may.
constexpr size_t kBuffer = 16 << 10;

bool is_target_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte < 0x7f;
}

}  // namespace

Connection::Connection(const ServerAddress& address, const ClientOptions& options,
                       std::shared_ptr<const TlsContext> tls, Use use)
    : options_(options),
      host_(address.authority()),
      use_(use),
      channel_(address, std::move(tls)),
      buffer_(kBuffer) {}

void Connection::connect() {
  channel_.connect(std::min(options_.timeout, options_.connect_timeout));
  if (use_ == Use::kWaiting) channel_.keep_no_buffers();
  connected_ = true;
}

std::string Connection::written(const ClientRequest& request, FieldLines more) const {
  const auto is_path = [](const std::string& text) {
    return text.starts_with('/') && std::ranges::all_of(text, is_target_char);
  };
  if (!is_path(request.target) || (!options_.prefix.empty() && !is_path(options_.prefix)))
    throw InvalidInput("target '" + options_.prefix + request.target +
                       "': wanted is a path, percent-encoded");
  size_t size = request.body.size() + request.target.size() + 1024;
  for (const std::string_view line : more) size += line.size();
  std::string text;
  text.reserve(size);
  text.append(request.method).append(" ").append(options_.prefix).append(request.target);
  text.append(" HTTP/1.1\r\n");
  add_field(text, "Host", host_);
  for (const auto& [name, value] : options_.headers) add_field(text, name, value);
  for (const auto& [name, value] : request.headers) add_field(text, name, value);
  for (const std::string_view line : more) {
    ensure(line.empty() || line.ends_with("\r\n"), "a header field without its line's end");
    text.append(line);
  }
  if (!request.body.empty() || request.method != "GET")
    add_field(text, "Content-Length", std::to_string(request.body.size()));
  text.append("\r\n").append(request.body);
  return text;
}

void Connection::make_room() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (end_ == buffer_.size()) {  // part of a head or of a chunk's size
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  }
}

void Connection::let_gather(std::chrono::milliseconds time, const std::stop_token& stop) const {
  const Duration left = came_ + time - system_now();
  if (left <= left.zero() || !channel_.idle()) return;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, stop, left, [] { return false; });
}

void Connection::receive(ResponseParser& parser, const Pace& pace, const std::stop_token& stop) {
  const TimePoint deadline = system_now() + pace.whole;
  while (!parser.done()) {
    make_room();
    if (pace.gather > pace.gather.zero()) let_gather(pace.gather, stop);
    const size_t count = channel_.read(std::span(buffer_).subspan(end_), pace.silence);
    const TimePoint now = system_now();
    if (pace.gather > pace.gather.zero()) came_ = now;
    if (now > deadline)
      throw IoError("the answer took longer than " + std::to_string(pace.whole.count()) + " ms");
    if (count == 0) return parser.finish();
    end_ += count;
    begin_ += parser.feed({buffer_.data() + begin_, end_ - begin_});
  }
}

Response Connection::send(const ClientRequest& request, FieldLines more, const Pace& pace,
                          const ResponseParser::Receiver& receiver, const std::stop_token& stop) {
  usable_ = false;
  const std::string text = written(request, more);
  const std::stop_callback breaking(stop, [this] { channel_.break_off(); });
  if (!connected_) connect();
  channel_.write(text, options_.timeout);
  ResponseParser parser(receiver);
  receive(parser, pace, stop);
  // What came behind the response belongs to nobody.
  usable_ = parser.keeps_connection() && begin_ == end_;
  return std::move(parser.head());
}

}  // namespace outrigger::http
