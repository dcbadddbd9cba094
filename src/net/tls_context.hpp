// What TLS trusts and how it shows itself: certificates and keys, read once per store. Everything
// is verified unless the user spelled out that it is not.
#pragma once

#include <holdfast/result.hpp>

#include <cstdint>
#include <memory>
#include <string>

// OpenSSL's own names, so that its headers stay in two files.
struct ssl_ctx_st;
struct ssl_st;

namespace holdfast::net {

struct tls_options {
  enum class verification : std::uint8_t {
    full,  // the chain, and the name in the certificate
    none,  // anybody may be the server: only as asked for by verify=none
  };

  verification verify = verification::full;
  std::string ca;    // a file or folder of certificates to trust; empty: the system's
  std::string cert;  // our own certificate, with its chain, if the server wants one
  std::string key;   // its key, without a passphrase; empty: in the same file
  std::string
      sni;  // the server's name, told to it and looked for in its certificate; empty: the host
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
  // memory is out. The caller frees it.
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

}  // namespace holdfast::net
