// The functions of OpenSSL that are called here. If it is a shared library of the system, it is
// loaded with the first URL that asks for TLS; else it is linked.
#pragma once

#include "runtime/lazy_library.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace holdfast::net {

#if defined(HOLDFAST_LOADED_SSL) && defined(HOLDFAST_LOADED_CRYPTO)
inline constexpr runtime::lazy_library libssl(HOLDFAST_LOADED_SSL);
inline constexpr runtime::lazy_library libcrypto(HOLDFAST_LOADED_CRYPTO);
#define HOLDFAST_OPENSSL(from, name) HOLDFAST_LAZY(from, name)
#else
inline constexpr runtime::lazy_library libssl = runtime::linked;
inline constexpr runtime::lazy_library libcrypto = runtime::linked;
#define HOLDFAST_OPENSSL(from, name) using ::name
#endif

// NOLINTBEGIN(readability-identifier-naming): named by OpenSSL
HOLDFAST_OPENSSL(libcrypto, BIO_ctrl);
HOLDFAST_OPENSSL(libcrypto, BIO_new);
HOLDFAST_OPENSSL(libcrypto, BIO_s_mem);
HOLDFAST_OPENSSL(libcrypto, BIO_write);
HOLDFAST_OPENSSL(libcrypto, ERR_clear_error);
HOLDFAST_OPENSSL(libcrypto, ERR_get_error);
HOLDFAST_OPENSSL(libcrypto, ERR_peek_error);
HOLDFAST_OPENSSL(libcrypto, ERR_reason_error_string);
HOLDFAST_OPENSSL(libcrypto, EVP_Digest);
HOLDFAST_OPENSSL(libcrypto, EVP_sha1);
HOLDFAST_OPENSSL(libcrypto, EVP_sha256);
HOLDFAST_OPENSSL(libcrypto, X509_VERIFY_PARAM_set1_host);
HOLDFAST_OPENSSL(libcrypto, X509_VERIFY_PARAM_set1_ip_asc);
HOLDFAST_OPENSSL(libcrypto, X509_VERIFY_PARAM_set_hostflags);
HOLDFAST_OPENSSL(libcrypto, X509_verify_cert_error_string);
HOLDFAST_OPENSSL(libssl, SSL_CTX_check_private_key);
HOLDFAST_OPENSSL(libssl, SSL_CTX_ctrl);
HOLDFAST_OPENSSL(libssl, SSL_CTX_free);
HOLDFAST_OPENSSL(libssl, SSL_CTX_load_verify_dir);
HOLDFAST_OPENSSL(libssl, SSL_CTX_load_verify_file);
HOLDFAST_OPENSSL(libssl, SSL_CTX_new);
HOLDFAST_OPENSSL(libssl, SSL_CTX_set_alpn_protos);
HOLDFAST_OPENSSL(libssl, SSL_CTX_set_default_passwd_cb);
HOLDFAST_OPENSSL(libssl, SSL_CTX_set_default_verify_paths);
HOLDFAST_OPENSSL(libssl, SSL_CTX_set_options);
HOLDFAST_OPENSSL(libssl, SSL_CTX_set_verify);
HOLDFAST_OPENSSL(libssl, SSL_CTX_use_PrivateKey_file);
HOLDFAST_OPENSSL(libssl, SSL_CTX_use_certificate_chain_file);
HOLDFAST_OPENSSL(libssl, SSL_ctrl);
HOLDFAST_OPENSSL(libssl, SSL_do_handshake);
HOLDFAST_OPENSSL(libssl, SSL_free);
HOLDFAST_OPENSSL(libssl, SSL_get0_param);
HOLDFAST_OPENSSL(libssl, SSL_get_error);
HOLDFAST_OPENSSL(libssl, SSL_get_rbio);
HOLDFAST_OPENSSL(libssl, SSL_get_verify_result);
HOLDFAST_OPENSSL(libssl, SSL_get_wbio);
HOLDFAST_OPENSSL(libssl, SSL_new);
HOLDFAST_OPENSSL(libssl, SSL_read);
HOLDFAST_OPENSSL(libssl, SSL_set_bio);
HOLDFAST_OPENSSL(libssl, SSL_set_connect_state);
HOLDFAST_OPENSSL(libssl, SSL_shutdown);
HOLDFAST_OPENSSL(libssl, SSL_write);
HOLDFAST_OPENSSL(libssl, TLS_client_method);
// NOLINTEND(readability-identifier-naming)
#undef HOLDFAST_OPENSSL

}  // namespace holdfast::net
