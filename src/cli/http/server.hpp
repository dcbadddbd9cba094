// A small HTTP server for the program: one handler for everything, one request per connection. Only
// module.cpp knows the library that speaks HTTP; it is loaded when it is needed: with its
// dependencies it would make every start of the program a millisecond slower.
//
// Bounded: connections, bytes of a request, and the time that each of its steps may take. A client over
// the limit of connections is answered 503 at once.
#pragma once

#include <tl/expected.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::http {

using header = std::pair<std::string, std::string>;

struct request {
  std::string method;
  std::string target;  // as it was sent, not decoded
  std::vector<header> headers;

  // Empty: there is none. Of several with the same name, the first.
  [[nodiscard]] std::string_view value_of(std::string_view name) const;
  [[nodiscard]] std::size_t count_of(std::string_view name) const;
};

struct response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
  std::vector<header> headers{};
  // Instead of a body: called repeatedly for what to send next, which may be nothing; false: that
  // was the end. Waits a second at most, so that the server can be stopped and a client that is
  // gone is noticed.
  std::function<bool(std::string& into)> stream{};
};

// Called on many threads at once.
using handler = std::function<response(const request&)>;

struct limits {
  std::size_t connections = 64;
  std::size_t request_bytes = 64UL << 10;
  std::chrono::milliseconds read_within{5000};   // a whole request
  std::chrono::milliseconds write_within{5000};  // for the client to read a part of an answer
  std::size_t write_least = 4096;                // bytes of this part
};

class server {
 public:
  server() = default;
  server(const server&) = delete;
  server& operator=(const server&) = delete;
  virtual ~server() = default;

  // Before run(). Port 0: any. The error says why not.
  virtual tl::expected<void, std::string> bind(const std::string& host, std::uint16_t port) = 0;
  [[nodiscard]] virtual std::uint16_t port() const noexcept = 0;
  // Until stop(); answers under way have write_within from then on.
  virtual void run() = 0;
  // From any thread, before or during run().
  virtual void stop() noexcept = 0;
};

// A server that is bound to the address; the caller must still call run(). The error says why there
// is none.
tl::expected<std::unique_ptr<server>, std::string> listen(handler&& answer, const std::string& host,
                                                          std::uint16_t port);
// What the module exports, under this name: server* (handler&&, const limits&).
inline constexpr const char* module_function = "holdfast_http_server";

}  // namespace holdfast::http
