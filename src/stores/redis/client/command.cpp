#include "stores/redis/client/command.hpp"

#include "core/hex.hpp"
#include "net/openssl.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

namespace holdfast::redis {

namespace {

std::string digest_of(std::string_view text, const EVP_MD* how) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (net::EVP_Digest(text.data(), text.size(), digest.data(), &size, how, nullptr) != 1) {
    throw std::runtime_error("OpenSSL has no such digest");
  }
  return core::hex_of({reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace

std::string sha1_of(std::string_view text) { return digest_of(text, net::EVP_sha1()); }
std::string sha256_of(std::string_view text) { return digest_of(text, net::EVP_sha256()); }

namespace {

// The maximum size of a number, and the sign and the two line ends around a word.
constexpr std::size_t count_size = std::numeric_limits<std::size_t>::digits10 + 1;
constexpr std::size_t frame_size = count_size + 5;

char* put_line_end(char* to) {
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

// Not std::ranges::copy, which is a loop in the library of GCC 12.
char* put(char* to, std::string_view bytes) { return std::copy(bytes.begin(), bytes.end(), to); }

char* put_count(char* to, char sign, std::size_t count) {
  *to++ = sign;
  return put_line_end(std::to_chars(to, to + count_size, count).ptr);
}

char* put_word(char* to, std::string_view word) {
  to = put_count(to, '$', word.size());
  return put_line_end(put(to, word));
}

char* put_number(char* to, std::size_t number) {
  std::array<char, count_size> text;
  char* const end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return put_word(to, {text.data(), static_cast<std::size_t>(end - text.data())});
}

char* put_words(char* to, std::span<const std::string_view> words) {
  for (const std::string_view word : words) to = put_word(to, word);
  return to;
}

// Their maximum size.
std::size_t size_of(std::span<const std::string_view> words) {
  std::size_t size = 0;
  for (const std::string_view word : words) size += word.size() + frame_size;
  return size;
}

void append_word(std::string& to, std::string_view word) {
  const std::size_t before = to.size();
  to.resize(before + frame_size + word.size());
  char* const begin = to.data();
  to.resize(static_cast<std::size_t>(put_word(begin + before, word) - begin));
}

// The position after the line that begins at `at`.
std::size_t next_line(std::string_view bytes, std::size_t at) { return bytes.find("\r\n", at) + 2; }

}  // namespace

command::opening::opening(std::initializer_list<std::string_view> all,
                          std::string_view common_argument)
    : words(all.size() + (common_argument.empty() ? 0 : 1)) {
  for (const std::string_view word : all) append_word(bytes, word);
  if (!common_argument.empty()) append_word(argument_bytes, common_argument);
}

command::command(std::span<const std::string_view> words) {
  bytes_.resize(frame_size + size_of(words));
  finish(put_words(put_count(bytes_.data(), '*', words.size()), words));
}

command::command(const opening& start, std::span<const std::string_view> keys,
                 std::span<const std::string_view> arguments)
    : bytes_(3 * frame_size + start.bytes.size() + size_of(keys) + start.argument_bytes.size() +
                 size_of(arguments),
             '\0'),
      keys_(keys.size()),
      arguments_(arguments.size()) {
  char* to = put_count(bytes_.data(), '*', start.words + 1 + keys_ + arguments_);
  to = put_number(put(to, start.bytes), keys_);
  keys_at_ = offset(to);
  to = put_words(to, keys);
  keys_end_ = offset(to);
  to = put(to, start.argument_bytes);
  arguments_at_ = offset(to);
  finish(put_words(to, arguments));
}

command::command(const opening& start, const calls& all)
    : bytes_(4 * frame_size + start.bytes.size() + all.key_bytes.size() +
                 start.argument_bytes.size() + all.letters.size() + all.argument_bytes.size(),
             '\0'),
      keys_(all.keys),
      arguments_(1 + all.letters.size()) {
  char* to = put_count(bytes_.data(), '*', start.words + 1 + keys_ + arguments_);
  to = put_number(put(to, start.bytes), keys_);
  to = put(to, all.key_bytes);
  to = put(to, start.argument_bytes);
  to = put_word(to, all.letters);
  finish(put(to, all.argument_bytes));
}

void command::calls::add(const command& one, char letter) {
  keys += one.keys_;
  key_bytes.append(one.bytes_, one.keys_at_, one.keys_end_ - one.keys_at_);
  letters += letter;
  argument_bytes.append(one.bytes_, one.arguments_at_);
}

void command::finish(const char* end) {
  bytes_.resize(static_cast<std::size_t>(end - bytes_.data()));
}

command command::with_start(std::initializer_list<std::string_view> words) const {
  command made;
  std::size_t at = next_line(bytes_, 0);
  made.bytes_ = bytes_.substr(0, at);
  for (const std::string_view word : words) {
    append_word(made.bytes_, word);
    // Words are skipped by their announced length: they may hold line ends.
    std::size_t size = 0;
    std::from_chars(bytes_.data() + at + 1, bytes_.data() + bytes_.size(), size);
    at = next_line(bytes_, at) + size + 2;
  }
  made.bytes_.append(bytes_, at);
  return made;
}

std::string_view command::verb() const noexcept {
  if (bytes_.empty()) return {};
  const std::size_t begin = next_line(bytes_, next_line(bytes_, 0));
  return std::string_view(bytes_).substr(begin, bytes_.find("\r\n", begin) - begin);
}

command& command::then(const command& next) {
  bytes_ += next.bytes_;
  replies_ += next.replies_;
  return *this;
}

script::script(std::string text, gives what, batching batched, function also, std::string common,
               repeats again)
    : text_(std::move(text)),
      hash_(sha1_of(text_)),
      function_(std::move(also)),
      common_(std::move(common)),
      start_(function_.of != nullptr ? command::opening({"FCALL", function_.name}, common_)
                                     : command::opening({"EVALSHA", hash_}, common_)),
      purpose_(what),
      repeats_(again),
      batched_(std::move(batched)) {}

script script::with_text(std::string text, function also) const {
  return script(std::move(text), purpose_, batched_, std::move(also), common_, repeats_);
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
