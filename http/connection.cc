#include "http/connection.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "common/error.h"

namespace outrigger::http {
namespace {

// A TLS record. What is larger than this grows it, as far as a head may.
constexpr size_t kBuffer = 16 << 10;

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

void add_field(std::string& head, std::string_view name, std::string_view value) {
  // A line break would begin a field, or a request, that nobody asked for.
  if (std::ranges::any_of(value, is_control))
    throw InvalidInput("header field " + std::string(name) +
                       ": its value holds a control character");
  head.append(name).append(": ").append(value).append("\r\n");
}

bool is_target_char(char c) {
  return !is_control(c) && c != ' ' && static_cast<unsigned char>(c) < 0x80;
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

std::string Connection::written(const ClientRequest& request) const {
  if (!request.target.starts_with('/') || !std::ranges::all_of(request.target, is_target_char))
    throw InvalidInput("target '" + request.target + "': wanted is a path, percent-encoded");
  std::string text;
  text.reserve(request.body.size() + request.target.size() + 1024);
  text.append(request.method).append(" ").append(request.target).append(" HTTP/1.1\r\n");
  add_field(text, "Host", host_);
  for (const auto& [name, value] : options_.headers) add_field(text, name, value);
  for (const auto& [name, value] : request.headers) add_field(text, name, value);
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

void Connection::let_gather(std::chrono::milliseconds time) const {
  const Duration left = came_ + time - system_now();
  if (left > left.zero() && channel_.idle()) std::this_thread::sleep_for(left);
}

void Connection::receive(ResponseParser& parser, const Pace& pace) {
  while (!parser.done()) {
    make_room();
    if (pace.gather > pace.gather.zero()) let_gather(pace.gather);
    const size_t count = channel_.read(std::span(buffer_).subspan(end_), pace.silence);
    if (pace.gather > pace.gather.zero()) came_ = system_now();
    if (count == 0) return parser.finish();
    end_ += count;
    begin_ += parser.feed({buffer_.data() + begin_, end_ - begin_});
  }
}

Response Connection::send(const ClientRequest& request, const Pace& pace,
                          const ResponseParser::Receiver& receiver, const std::stop_token& stop) {
  usable_ = false;
  const std::string text = written(request);
  const std::stop_callback breaking(stop, [this] { channel_.break_off(); });
  if (!connected_) connect();
  channel_.write(text, options_.timeout);
  ResponseParser parser(receiver);
  receive(parser, pace);
  // What came behind the response belongs to nobody.
  usable_ = parser.keeps_connection() && begin_ == end_;
  return std::move(parser.head());
}

}  // namespace outrigger::http
