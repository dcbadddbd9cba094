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

script::script(std::string text, gives what)
    : text_(std::move(text)), hash_(sha1(text_)), purpose_(what) {}

command script::by_hash(std::span<const std::string_view> keys,
                        std::span<const std::string_view> arguments) const {
  const std::string count = std::to_string(keys.size());
  const std::array<std::string_view, 3> start{"EVALSHA", hash_, count};
  return command(start, keys, arguments);
}

command script::in_full(const command& made) const { return made.with_start({"EVAL", text_}); }

command script::load() const { return command{"SCRIPT", "LOAD", text_}; }

void run_script(const std::shared_ptr<connection>& with, const script& what,
                std::span<const std::string_view> keys, std::span<const std::string_view> arguments,
                time_point deadline, spi::completion<reply> done) {
  struct call_state {
    command sent;
    spi::completion<reply> done;
  };
  auto kept =
      std::make_unique<call_state>(call_state{what.by_hash(keys, arguments), std::move(done)});
  const command& sent = kept->sent;
  // Not the connection itself, which keeps this until it is answered.
  with->run(what, sent, deadline,
            [weak = std::weak_ptr(with), &what, deadline,
             state = std::move(kept)](result<reply> answer) mutable {
              if (!answer || !answer->is_error("NOSCRIPT")) return state->done(std::move(answer));
              const std::shared_ptr<connection> again = weak.lock();
              if (again == nullptr) return state->done(failure(errc::unavailable, "closed"));
              again->run(what, state->sent, deadline, std::move(state->done));
            });
}

}  // namespace holdfast::redis
