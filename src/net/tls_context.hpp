// What TLS trusts and how it identifies itself: certificates and keys, read once per store.
// Everything is verified unless the user explicitly turned that off.
#pragma once

#include "net/stream.hpp"
#include "runtime/fork_guard.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

// OpenSSL's own names, so that its headers stay in two files.
struct ssl_ctx_st;
struct ssl_st;

namespace holdfast::net {

struct tls_options {
  enum class verification : std::uint8_t {
    full,  // the chain, and the name in the certificate
    none,  // anybody may be the server: only with verify=none
  };

  verification verify = verification::full;
  std::string ca;    // a file or folder of certificates to trust; empty: the system's
  std::string cert;  // our own certificate, with its chain, if the server wants one
  std::string key;   // its key, without a passphrase; empty: in the same file
  std::string sni;  // the server's name, sent to it and checked in its certificate; empty: the host
  std::string alpn{};  // the protocol that is asked for ("h2"); empty: none
};

// Thread-safe, immutable.
class tls_context {
 public:
  // Reads the files. invalid, naming the option, if one cannot be used.
  static result<std::shared_ptr<const tls_context>> make(const tls_options& options);

  ~tls_context();
  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;

  // A session that will accept only a server of this name or address (or of options.sni). Null if
  // out of memory. The caller frees it.
  [[nodiscard]] ssl_st* new_session(const std::string& host) const;
  [[nodiscard]] bool verifies() const noexcept {
    return options_.verify == tls_options::verification::full;
  }

 private:
  tls_context(tls_options options, ssl_ctx_st* context) noexcept;

  const tls_options options_;
  ssl_ctx_st* const context_;
};

// The first thing in OpenSSL's queue of errors, which is emptied: "wrong version number".
std::string tls_problem();

// The stream inside TLS: an OpenSSL session between two buffers in memory. Its bytes are carried by
// another stream, so that OpenSSL itself never touches a socket (nor raises SIGPIPE).
//
// States: handshaking, until the completion of handshake(); then open; then ended or closed.
class tls_stream final : public stream,
                         public stream_user,
                         public std::enable_shared_from_this<tls_stream> {
 public:
  // `host`: the name that the certificate must have; `where`: for messages.
  static std::shared_ptr<tls_stream> make(std::shared_ptr<stream> carrier,
                                          std::shared_ptr<const tls_context> context,
                                          const std::string& host, std::string where);
  ~tls_stream() override;
  tls_stream(const tls_stream&) = delete;
  tls_stream& operator=(const tls_stream&) = delete;

  // Called once. denied if one side does not accept the other's certificate; the detail says why.
  // It has no time limit of its own: the caller's limit calls close(), after which there is no
  // completion.
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
  std::optional<error> end_;         // the carrier ended, to be reported after what was received
  bool open_ = false;
  bool closed_ = false;
};

}  // namespace holdfast::net
