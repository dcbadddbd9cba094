#include "net/tls_context.hpp"

#include "net/address.hpp"
#include "net/openssl.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

namespace holdfast::net {

namespace {

struct free_context {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
using context_ptr = std::unique_ptr<SSL_CTX, free_context>;

tl::unexpected<error> unusable(const std::string& option, const std::string& file) {
  return failure(errc::invalid, "TLS: " + option + "=" + file + ": " + tls_problem());
}

// Without this OpenSSL would ask for a passphrase on the user's terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

result<void> trust(SSL_CTX* context, const std::string& ca) {
  if (ca.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) == 1) return {};
    return failure(errc::invalid, "TLS: the system's certificates: " + tls_problem());
  }
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(ca, ignored);
  const int read = folder ? SSL_CTX_load_verify_dir(context, ca.c_str())
                          : SSL_CTX_load_verify_file(context, ca.c_str());
  if (read != 1) return unusable("ca", ca);
  return {};
}

result<void> identify(SSL_CTX* context, const tls_options& options) {
  if (options.cert.empty()) {
    if (options.key.empty()) return {};
    return failure(errc::invalid, "TLS: key= needs cert=");
  }
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  if (SSL_CTX_use_certificate_chain_file(context, options.cert.c_str()) != 1) {
    return unusable("cert", options.cert);
  }
  const std::string& key = options.key.empty() ? options.cert : options.key;
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return unusable("key", key);
  }
  return {};
}

}  // namespace

std::string tls_problem() {
  const unsigned long code = ERR_get_error();
  const char* reason = ERR_reason_error_string(code);
  std::string text = reason != nullptr ? reason : "unknown error";
  // For a file that is not there the system's words are the reason.
  if (ERR_SYSTEM_ERROR(code)) text = std::system_category().message(ERR_GET_REASON(code));
  ERR_clear_error();
  return text;
}

tls_context::tls_context(tls_options options, ssl_ctx_st* context) noexcept
    : options_(std::move(options)), context_(context) {}

tls_context::~tls_context() { SSL_CTX_free(context_); }

result<std::shared_ptr<const tls_context>> tls_context::make(const tls_options& options) {
  for (const auto* library : {&libcrypto, &libssl}) {
    if (auto loaded = library->load(); !loaded) return tl::unexpected(loaded.error());
  }
  ERR_clear_error();
  context_ptr context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return failure(errc::invalid, "TLS: " + tls_problem());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // Peers that end without a farewell are an end like any other.
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
  if (options.verify == tls_options::verification::full) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    if (auto fine = trust(context.get(), options.ca); !fine) return tl::unexpected(fine.error());
  } else {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  }
  if (auto fine = identify(context.get(), options); !fine) return tl::unexpected(fine.error());
  if (!options.alpn.empty()) {
    const std::string list = static_cast<char>(options.alpn.size()) + options.alpn;
    SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(list.data()),
                            static_cast<unsigned>(list.size()));
  }
  return std::shared_ptr<const tls_context>(new tls_context(options, context.release()));
}

ssl_st* tls_context::new_session(const std::string& host) const {
  const std::string& name = options_.sni.empty() ? host : options_.sni;
  SSL* session = SSL_new(context_);
  if (session == nullptr) return nullptr;
  X509_VERIFY_PARAM* wanted = SSL_get0_param(session);
  bool ready = true;
  if (address::numeric(name, 0)) {
    // An address is looked for among the certificate's addresses, and is no name to tell.
    ready = X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) == 1;
  } else {
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    // For a unix socket without sni= there is no name: the chain alone is verified.
    if (!name.empty()) {
      ready = X509_VERIFY_PARAM_set1_host(wanted, name.c_str(), name.size()) == 1 &&
              SSL_set_tlsext_host_name(session, name.c_str()) == 1;
    }
  }
  if (!ready) {
    SSL_free(session);
    return nullptr;
  }
  SSL_set_connect_state(session);
  return session;
}

}  // namespace holdfast::net
