#include "stores/redis/client/digest.hpp"

#include "net/openssl.hpp"

#include <array>
#include <stdexcept>

namespace holdfast::redis {

namespace {

std::string digest_of(std::string_view text, const EVP_MD* how) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (net::EVP_Digest(text.data(), text.size(), digest.data(), &size, how, nullptr) != 1) {
    throw std::runtime_error("OpenSSL has no such digest");
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += digits[digest[i] >> 4U];
    hex += digits[digest[i] & 15U];
  }
  return hex;
}

}  // namespace

std::string sha1_of(std::string_view text) { return digest_of(text, net::EVP_sha1()); }
std::string sha256_of(std::string_view text) { return digest_of(text, net::EVP_sha256()); }

}  // namespace holdfast::redis
