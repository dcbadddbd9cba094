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

script::script(std::string text, gives what, batching batched, function also, std::string common)
    : text_(std::move(text)),
      hash_(sha1(text_)),
      function_(std::move(also)),
      common_(std::move(common)),
      start_(function_.of != nullptr ? command::opening({"FCALL", function_.name}, common_)
                                     : command::opening({"EVALSHA", hash_}, common_)),
      purpose_(what),
      batched_(std::move(batched)) {}

script script::with_text(std::string text, function also) const {
  return script(std::move(text), purpose_, batched_, std::move(also), common_);
}

command script::call(std::span<const std::string_view> keys,
                     std::span<const std::string_view> arguments) const {
  return command(start_, keys, arguments);
}

command script::call(const command::calls& all) const { return command(start_, all); }

command script::by_hash(const command& made) const {
  return functions() != nullptr ? made.with_start({"EVALSHA", hash_}) : made;
}

command script::in_full(const command& made) const { return made.with_start({"EVAL", text_}); }

bool is_unknown_script(const reply& answer) noexcept {
  return answer.is_error("NOSCRIPT") ||
         (answer.is_error() && answer.text.starts_with("ERR Function not found"));
}

}  // namespace holdfast::redis
