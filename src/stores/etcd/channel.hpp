// The way to a cluster: calls of all threads go over one connection, to one member at a time; when
// that member fails or stops answering, the next one is dialled. Logging in is part of it.
#pragma once

#include "net/connector.hpp"
#include "net/patience.hpp"
#include "net/reconnecting_connection.hpp"
#include "stores/etcd/http2_connection.hpp"
#include "stores/etcd/messages.hpp"
#include "stores/etcd/options.hpp"
#include "stores/flow.hpp"
#include "stores/queued/asking.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::etcd {

struct reply {
  // refusal() tells which of the others are definite: after a timeout of the server, or a change of
  // its leader, the call may still be executed.
  grpc_status status;
  std::string body;
  answer_header header;
  time_point sent{};
  // The last term that this member answered, on the same connection, before
  // this call was sent; 0: none.
  std::uint64_t term_before = 0;
  std::uint64_t connection = 0;

  [[nodiscard]] bool ok() const noexcept { return status.code == status_code::ok; }
};

using asker = stores::asker<reply>;
using answered_one = stores::answered_one<reply>;
using replies = std::vector<result<reply>>;

// The listener of a stream. Called under no lock, never concurrently.
class stream_listener {
 public:
  virtual ~stream_listener() = default;
  virtual void message(std::uint64_t stream, const std::string& body) = 0;
  virtual void stream_ended(std::uint64_t stream, const error& why) = 0;  // once, as the last call
};

// Thread-safe. Its states: net/reconnecting_connection.hpp; it connects to one member after the
// other. A member that is cut off from the others, takes no more calls or stalls is left; a token
// that is no longer valid leads back from open to login.
//
// What must hold:
//  1. What was in flight when a connection ends is unavailable: unknown. It is not sent again.
//  2. When a call's time is over, and no later call was answered, the member is given up.
//  3. No I/O and no call to others under the mutex; queueing bytes is neither.
class channel final : public http2_user,
                      public net::reconnecting_connection<channel, http2_connection> {
 public:
  static constexpr std::size_t call_limit = 100'000;    // in flight or waiting; then overloaded
  static constexpr std::size_t size_limit = 1'400'000;  // of a call; etcd takes 1.5 MiB

  static std::shared_ptr<channel> make(const net::network& net,
                                       std::shared_ptr<const server_options> options);
  ~channel() override;

  // Sends all together, over one connection. `who` must live until every answer has come.
  // unavailable: no answer in time, or the connection broke; it may have been executed, unless it
  // was never sent (error::unsent): no connection, see patience. denied, cancelled, overloaded.
  void ask(std::vector<call> batch, const net::patience& until, asker& who);

  // A stream of messages both ways. Connects if needed; ends with the connection.
  std::uint64_t open_stream(method what, std::string first, std::weak_ptr<stream_listener> who);
  void send(std::uint64_t stream, const std::string& message);
  // Its end is not reported. What is opened next goes out with a new token.
  enum class credentials : std::uint8_t { as_they_are, new_token };
  void abandon(std::uint64_t stream, credentials how);

  // Afterwards every answer has been given; `farewell` goes out first if there is a connection.
  void close(const std::vector<call>& farewell = {}) noexcept;

  void opened(http2_connection& which) override;
  void received(http2_connection& which, std::vector<http2_event> events) override;
  void ended(http2_connection& which, const error& why) override;

 private:
  friend reconnecting_connection;

  struct pending {
    call what;
    asker* who = nullptr;  // null: nobody waits any more
    std::size_t index = 0;
    net::patience until{};
    time_point sent{};
    std::uint64_t term_before = 0;
    bool again = false;  // sent a second time, with a new token
  };
  struct listening {
    method what{};
    std::vector<std::string> unsent;
    std::weak_ptr<stream_listener> who;
    std::int32_t stream = 0;  // 0: not begun
  };
  struct news {  // to be reported when the mutex is free
    std::vector<answered_one> answers;
    struct heard {
      std::weak_ptr<stream_listener> who;
      std::uint64_t stream;
      std::string message;
      std::optional<error> end;
    };
    std::vector<heard> streams;
  };

  channel(const net::network& net, std::shared_ptr<const server_options> options);

  std::shared_ptr<http2_connection> make_link();
  void start_link(http2_connection& made);
  [[nodiscard]] bool needed() const noexcept { return !waiting_.empty() || !streams_.empty(); }
  [[nodiscard]] std::string where() const;
  void check_deadlines();
  void log_in(time_point now);
  void begin_open(time_point now);
  void send_call(pending one, time_point now);
  void retire();
  [[nodiscard]] error goodbye() const;
  void begin_stream(listening& one);
  void take_event(http2_event& event, time_point now, news& told, std::optional<error>& broken);
  void take_token(const http2_event& event, time_point now, std::optional<error>& broken);
  void drop(mutex_lock& lock, const error& why, time_point now);
  void flush();
  void tell(news& told);

  const std::shared_ptr<const server_options> options_;
  // The thread that is running completions: what they send goes out together afterwards.
  std::atomic<std::thread::id> delivering_{};

  // All below: guarded by mutex_.
  std::uint64_t connection_ = 0;  // its number
  bool retiring_ = false;         // it takes no more
  std::string token_;
  std::int32_t login_stream_ = 0;
  std::uint64_t term_ = 0;           // as last answered on this connection
  time_point last_answered_sent_{};  // the latest call on this connection that was answered
  std::unordered_map<std::int32_t, pending> in_flight_;
  std::deque<pending> waiting_;
  std::unordered_map<std::uint64_t, listening> streams_;
  std::uint64_t next_stream_ = 1;
};

using asking = stores::asking<channel, call, reply>;
using stores::flow;
using stores::task;
using stores::value_of;

// What an unexpected status means to the user.
error refusal(const char* doing, std::string_view key, const grpc_status& what);

// One call; a status other than ok is an error. Its arguments must outlive it: to be
// awaited at once. References, because GCC 12 destroys a temporary twice that is an
// argument of an awaited call.
task<result<reply>> ask_one(std::shared_ptr<channel> whom, call& what, const char* doing,
                            std::string_view key, net::patience until);

// What a transaction answers. lost: the lease to which it would attach a key
// is gone; nothing was done.
result<txn_answer> txn_in(const result<reply>& answer, const char* doing, std::string_view key);
// As ask_one().
task<result<txn_answer>> ask_txn(std::shared_ptr<channel> whom, txn_writer& step, const char* doing,
                                 std::string_view key, net::patience until);

}  // namespace holdfast::etcd
