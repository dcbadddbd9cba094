#include "net/tls_context.hpp"

#include "net/address.hpp"
#include "net/openssl.hpp"

#include <algorithm>
#include <array>
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
  // For a missing file the system's message is the reason.
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
  // A peer that ends without a close notification is an end like any other.
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
    // An address is looked for among the certificate's addresses, and is not sent as a name.
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

struct tls_stream::session {
  explicit session(SSL* made) noexcept : ssl(made) {
    BIO* in = BIO_new(BIO_s_mem());
    BIO* out = BIO_new(BIO_s_mem());
    // "Nothing there" means: later, not the end.
    BIO_set_mem_eof_return(in, -1);
    BIO_set_mem_eof_return(out, -1);
    SSL_set_bio(ssl, in, out);
  }
  ~session() { SSL_free(ssl); }
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  SSL* const ssl;
};

std::shared_ptr<tls_stream> tls_stream::make(std::shared_ptr<stream> carrier,
                                             std::shared_ptr<const tls_context> context,
                                             const std::string& host, std::string where) {
  SSL* made = context->new_session(host);
  if (made == nullptr) return nullptr;
  return std::shared_ptr<tls_stream>(new tls_stream(
      std::move(carrier), std::make_unique<session>(made), std::move(context), std::move(where)));
}

tls_stream::tls_stream(std::shared_ptr<stream> carrier, std::unique_ptr<session> made,
                       std::shared_ptr<const tls_context> context, std::string where)
    : carrier_(std::move(carrier)),
      context_(std::move(context)),
      where_(std::move(where)),
      plain_(read_size),
      session_(std::move(made)) {}

tls_stream::~tls_stream() { close(); }

void tls_stream::handshake(spi::completion<void> done) {
  if (guard_.forked()) return done(failure(errc::cancelled, "forked from the client's process"));
  mutex_lock lock(mutex_);
  shaken_ = std::move(done);
  carrier_->start(weak_from_this());
  shake(lock);
}

// Called with the mutex held, which it releases.
void tls_stream::shake(mutex_lock& lock) {
  ERR_clear_error();
  const int code = SSL_do_handshake(session_->ssl);
  carry();
  std::optional<error> why;
  if (code != 1) {
    const int kind = SSL_get_error(session_->ssl, code);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
      lock.unlock();
      return carrier_->flush();
    }
    why = problem(kind);
  } else {
    open_ = true;
  }
  spi::completion<void> done = std::move(shaken_);
  lock.unlock();
  carrier_->flush();
  if (why) close();
  if (!done) return;
  if (why) return done(tl::unexpected(*why));
  done({});
}

void tls_stream::start(std::weak_ptr<stream_user> user) {
  if (guard_.forked()) return;
  const std::scoped_lock lock(mutex_);
  user_ = std::move(user);
}

void tls_stream::queue(std::string_view bytes) {
  if (guard_.forked()) return;
  const std::scoped_lock lock(mutex_);
  if (!closed_) queued_ += bytes;
}

void tls_stream::flush() noexcept {
  if (guard_.forked()) return;
  {
    const std::scoped_lock lock(mutex_);
    if (closed_ || !open_) return;
    encrypt();
  }
  carrier_->flush();
}

std::size_t tls_stream::unsent() const noexcept {
  if (guard_.forked()) return 0;
  const std::scoped_lock lock(mutex_);
  return queued_.size() + carrier_->unsent();
}

void tls_stream::close() noexcept {
  if (guard_.forked()) return;
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(closed_, true)) return;
    shaken_ = nullptr;
    if (open_ && !end_) {
      // A close notification, for the other side's logs; not awaited.
      ERR_clear_error();
      SSL_shutdown(session_->ssl);
      carry();
    }
  }
  carrier_->flush();
  carrier_->close();
}

void tls_stream::received(std::string_view bytes) {
  mutex_lock lock(mutex_);
  if (closed_) return;
  BIO_write(SSL_get_rbio(session_->ssl), bytes.data(), static_cast<int>(bytes.size()));
  if (!open_) {
    shake(lock);
    lock.lock();
    if (!open_ || closed_) return;
  }
  lock.unlock();
  deliver();
}

void tls_stream::ended(const error& why) {
  mutex_lock lock(mutex_);
  if (closed_) return;
  end_ = why;
  spi::completion<void> done = std::move(shaken_);
  lock.unlock();
  if (done) {
    close();
    return done(failure(errc::unavailable, "TLS: ended during the handshake: " + why.detail));
  }
  deliver();
}

// Passes on to the user what was received, and then the end.
void tls_stream::deliver() {
  mutex_lock lock(mutex_);
  const std::shared_ptr<stream_user> user = user_.lock();
  std::optional<error> why;
  std::size_t got = 0;
  while (!closed_ && !(why = read_some(got)) && got > 0) {
    lock.unlock();
    carrier_->flush();
    if (user != nullptr) user->received({plain_.data(), got});
    lock.lock();
  }
  if (closed_) return;
  if (!why) why = end_;
  lock.unlock();
  carrier_->flush();
  if (!why) return;
  close();
  if (user != nullptr) user->ended(*why);
}

// Called with the mutex held. Reading may make the session answer (a key update): that is sent,
// too.
std::optional<error> tls_stream::read_some(std::size_t& got) {
  ERR_clear_error();
  const int read = SSL_read(session_->ssl, plain_.data(), static_cast<int>(plain_.size()));
  carry();
  got = read > 0 ? static_cast<std::size_t>(read) : 0;
  if (read > 0) return std::nullopt;
  const int kind = SSL_get_error(session_->ssl, read);
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return std::nullopt;
  return problem(kind);
}

// Called with the mutex held.
void tls_stream::encrypt() {
  std::size_t done = 0;
  while (done < queued_.size()) {
    ERR_clear_error();
    const std::size_t size = std::min(queued_.size() - done, read_size);
    const int taken = SSL_write(session_->ssl, queued_.data() + done, static_cast<int>(size));
    if (taken <= 0) break;  // broken: reading finds out why
    done += static_cast<std::size_t>(taken);
  }
  queued_.erase(0, done);
  carry();
}

// Called with the mutex held: records must leave in the order in which they were made.
void tls_stream::carry() {
  BIO* out = SSL_get_wbio(session_->ssl);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  if (size <= 0) return;
  carrier_->queue({bytes, static_cast<std::size_t>(size)});
  (void)BIO_reset(out);
}

// Called with the mutex held, right after the call that failed.
error tls_stream::problem(int code) const {
  if (code == SSL_ERROR_ZERO_RETURN) {
    return {errc::unavailable, where_ + ": closed by the server"};
  }
  const long verdict = SSL_get_verify_result(session_->ssl);
  if (!open_ && context_->verifies() && verdict != X509_V_OK) {
    ERR_clear_error();
    return {errc::denied, where_ + ": TLS: the server's certificate is not accepted: " +
                              X509_verify_cert_error_string(verdict)};
  }
  // What the server says about our certificate.
  static constexpr std::array refusals{
      SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, SSL_R_TLSV1_ALERT_UNKNOWN_CA,
      SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,       SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
      SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED,   SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,
      SSL_R_TLSV1_ALERT_ACCESS_DENIED,         SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE};
  const int reason = ERR_GET_REASON(ERR_peek_error());
  const std::string text = tls_problem();
  // Its first bytes are not a TLS record at all.
  if (!open_ && (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)) {
    return {errc::denied, where_ + ": the server does not speak TLS"};
  }
  if (std::ranges::find(refusals, reason) != refusals.end()) {
    return {errc::denied,
            where_ + ": TLS: the server does not accept our certificate (cert=, key=): " + text};
  }
  return {errc::unavailable, where_ + ": TLS: " + text};
}

}  // namespace holdfast::net
