// A connection that speaks gRPC over HTTP/2: net/link.hpp, with calls and streams. libnghttp2 does the framing, on bytes
// that net::stream carries.
#pragma once

#include "net/link.hpp"
#include "stores/etcd/options.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct nghttp2_session;

namespace holdfast::etcd {

class http2_connection;

// The end of a stream, as gRPC reports it.
struct grpc_status {
  int code = 0;  // 0: ok
  std::string text;
};
namespace status_code {
inline constexpr int ok = 0;
inline constexpr int unknown = 2;
inline constexpr int invalid_argument = 3;
inline constexpr int not_found = 5;
inline constexpr int permission_denied = 7;
inline constexpr int exhausted = 8;
inline constexpr int failed_precondition = 9;
inline constexpr int unimplemented = 12;
inline constexpr int unavailable = 14;
inline constexpr int unauthenticated = 16;
}  // namespace status_code

struct http2_event {
  std::int32_t stream = 0;
  bool ended = false;
  std::string message;  // a message of a stream, or the answer to a call together with its end
  grpc_status status;   // with the end
  bool broken = false;  // ended without a gRPC status: the outcome of the call is unknown
};

// Called on the reactor's threads (or from within start()), under no lock, never
// concurrently for one connection.
class http2_user {
 public:
  virtual ~http2_user() = default;
  virtual void opened(http2_connection& which) = 0;
  virtual void received(http2_connection& which, std::vector<http2_event> events) = 0;
  // Once, as the last call; not after close().
  virtual void ended(http2_connection& which, const error& why) = 0;
};

// Thread-safe.
class http2_connection final : public net::link_base,
                               public std::enable_shared_from_this<http2_connection> {
 public:
  // Limits on what the server may send: one message, all messages together, and
  // the headers of one stream.
  static constexpr std::size_t message_limit = std::size_t{64} * 1024 * 1024;
  static constexpr std::size_t buffer_limit = 2 * message_limit;  // of what is incomplete
  static constexpr std::size_t header_limit = 32'768;

  enum class kind : std::uint8_t { call, stream };  // one message each way, or any number

  // Does nothing before start().
  http2_connection(net::network net, net::target where,
                   std::shared_ptr<const server_options> options, std::weak_ptr<http2_user> user);
  ~http2_connection() override;

  void start(time_point deadline);

  // Only once opened. No I/O and no callback: may be called under a lock of the caller's. 0:
  // refused, the connection takes no more calls.
  std::int32_t begin(std::string_view path, std::string_view message, kind what,
                     const std::string& token);
  void send(std::int32_t stream, std::string_view message);
  // Its end is not reported any more.
  void reset(std::int32_t stream);

  // From the stream.
  void received(std::string_view bytes) override;

 private:
  struct one_stream {
    kind what{};
    std::string outgoing;
    std::size_t sent = 0;
    bool finished = false;  // nothing is sent after `outgoing`
    std::string incoming;
    std::string message;  // of a call
    bool answered = false;
    std::size_t counted = 0;  // in buffered_
    std::size_t headers = 0;
    int http_status = 0;
    bool has_status = false;
    grpc_status status;
    std::string problem;  // why it was reset
  };
  struct callbacks;
  friend struct callbacks;

  void connected() override;
  void tell_end(const error& why) override;
  void pump();
  bool take_data(one_stream& into, std::int32_t id, std::string_view bytes);
  void take_header(one_stream& into, std::string_view name, std::string_view value);
  void take_end(std::int32_t id, std::uint32_t code);
  void count(one_stream& of, std::size_t now) noexcept;

  const std::shared_ptr<const server_options> options_;
  const std::string authority_;
  const std::weak_ptr<http2_user> user_;

  // All below: guarded by mutex_.
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, one_stream> streams_;
  std::vector<http2_event> events_;  // of the bytes that are being read
  std::size_t buffered_ = 0;
  bool settings_came_ = false;
  bool going_away_ = false;
  bool opened_ = false;
};

}  // namespace holdfast::etcd
