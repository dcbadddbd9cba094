// The stream inside TLS: a session of OpenSSL between two buffers in memory. Its bytes travel by
// another stream, so that OpenSSL itself never touches a socket (nor raises SIGPIPE).
#pragma once

#include "net/stream.hpp"
#include "net/tls_context.hpp"
#include "runtime/fork_guard.hpp"

#include <holdfast/spi/store.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::net {

// States: handshaking, until the completion of handshake(); then open; then ended or closed.
class tls_stream final : public stream,
                         public stream_user,
                         public std::enable_shared_from_this<tls_stream> {
 public:
  // `host`: whom the certificate must name; `where`: for messages.
  static std::shared_ptr<tls_stream> make(std::shared_ptr<stream> carrier,
                                          std::shared_ptr<const tls_context> context,
                                          const std::string& host, std::string where);
  ~tls_stream() override;
  tls_stream(const tls_stream&) = delete;
  tls_stream& operator=(const tls_stream&) = delete;

  // Once. denied if one side does not accept the other's certificate; the detail says why. Without
  // a limit of its own: whoever loses patience calls close(), after which nothing is told.
  void handshake(spi::completion<void> done);

  // To be called from within the completion of handshake(): bytes may have come along with its end.
  void start(std::weak_ptr<stream_user> user) override;
  void queue(std::string_view bytes) override;
  void flush() noexcept override;
  [[nodiscard]] std::size_t unsent() const noexcept override;
  void close() noexcept override;

  // From the carrier.
  void received(std::string_view bytes) override;
  void ended(const error& why) override;

 private:
  struct session;
  static constexpr std::size_t read_size = 16'384;  // what one record holds

  using mutex_lock = std::unique_lock<std::mutex>;

  tls_stream(std::shared_ptr<stream> carrier, std::unique_ptr<session> made,
             std::shared_ptr<const tls_context> context, std::string where);

  void shake(mutex_lock& lock);
  void deliver();
  std::optional<error> read_some(std::size_t& got);
  void encrypt();
  void carry();
  [[nodiscard]] error problem(int code) const;

  const runtime::fork_guard guard_;
  const std::shared_ptr<stream> carrier_;
  const std::shared_ptr<const tls_context> context_;
  const std::string where_;
  std::vector<char> plain_;  // only within the carrier's callbacks

  mutable std::mutex mutex_;
  // All below: guarded by mutex_. OpenSSL's calls are computation only, and are made under it.
  std::unique_ptr<session> session_;
  spi::completion<void> shaken_;     // set while handshaking
  std::weak_ptr<stream_user> user_;  // set once started
  std::string queued_;               // not yet encrypted
  std::optional<error> end_;         // the carrier ended, to be told after what was received
  bool open_ = false;
  bool closed_ = false;
};

}  // namespace holdfast::net
