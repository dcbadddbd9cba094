// See the header.
#include "stores/redis/client/script.hpp"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace holdfast::redis {

namespace {

std::string sha1(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (::EVP_Digest(text.data(), text.size(), digest.data(), &size, ::EVP_sha1(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL has no SHA-1");
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

script::script(std::string text, gives what, bundling bundled)
    : text_(std::move(text)),
      hash_(sha1(text_)),
      by_hash_({"EVALSHA", hash_}),
      purpose_(what),
      bundled_(std::move(bundled)) {}

command script::by_hash(std::span<const std::string_view> keys,
                        std::span<const std::string_view> arguments) const {
  return command(by_hash_, keys, arguments);
}

command script::by_hash(const command::calls& all) const { return command(by_hash_, all); }

command script::in_full(const command& made) const { return made.with_start({"EVAL", text_}); }

command script::load() const { return command{"SCRIPT", "LOAD", text_}; }

void run_script(const std::shared_ptr<connection>& with, const script& what,
                std::span<const std::string_view> keys, std::span<const std::string_view> arguments,
                const net::patience& until, spi::completion<reply> done) {
  with->call(what, what.by_hash(keys, arguments), until, std::move(done));
}

}  // namespace holdfast::redis
