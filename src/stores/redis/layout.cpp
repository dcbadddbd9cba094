
#include "stores/redis/layout.hpp"

#include "core/hex.hpp"
#include "stores/redis/client/command.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

namespace holdfast::redis {

namespace {

// Encoded names up to this length are keys as they are; of longer ones the key has
// only this much, and a hash.
constexpr std::size_t readable = 200;
// Occurs in no encoded name.
constexpr char hash_mark = '~';
using namespace std::string_view_literals;

bool plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

void encode(std::string_view text, std::string& into) {
  while (!text.empty()) {
    // Usually all of it is plain, and copied at once.
    const auto odd = std::ranges::find_if_not(text, plain);
    const auto run = static_cast<std::size_t>(odd - text.begin());
    into.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) return;
    core::append_escaped(into, text.front());
    text.remove_prefix(1);
  }
}

// No '/' in a namespace: the first one separates.
void encode(const std::string& space, const std::string& name, std::string& into) {
  into.reserve(into.size() + space.size() + 3 + name.size() + 16);
  encode(space, into);
  into.append("%2f"sv);
  encode(name, into);
}

std::string encoded(const std::string& space, const std::string& name) {
  std::string text;
  encode(space, name, text);
  return text;
}

}  // namespace

// FNV-1a: the same in every version of holdfast, since it decides where a lock is looked for.
partition partition_of(const spi::resource_id& resource) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto take = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  };
  take(resource.space);
  take("/");
  take(resource.name);
  hash ^= hash >> 32U;
  hash ^= hash >> 16U;
  hash ^= hash >> 8U;
  return static_cast<partition>(hash & 255U);
}

std::string partition_prefix(partition which) {
  return "holdfast:{" + std::to_string(which) + "}:";
}

place place_of(const spi::resource_id& resource) {
  place found;
  found.partition = partition_of(resource);
  // "holdfast:{17}:s:" and the name, written in place: every request begins here.
  const std::string_view mark = observed_key(found.partition);
  found.state.reserve(mark.size() + 1 + resource.space.size() + 3 + resource.name.size() + 16);
  found.state.append(mark.substr(0, mark.size() - 1)).append("s:"sv);
  const std::size_t start = found.state.size();
  encode(resource.space, resource.name, found.state);
  if (found.state.size() - start > readable) {
    const std::string digest = sha256_of(std::string_view(found.state).substr(start));
    found.state.resize(start + readable);
    found.state += hash_mark;
    found.state += digest;
    found.written = resource.space + "/" + resource.name;
  }
  return found;
}

const std::string& observed_key(partition which) {
  // Never destroyed: a client that is a static object may end after this would have.
  static const auto& keys = *[] {
    auto* made = new std::array<std::string, partition_count>;
    for (std::size_t i = 0; i < partition_count; ++i) {
      (*made)[i] = partition_prefix(static_cast<partition>(i)) + "o";
    }
    return made;
  }();
  return keys[which];
}

std::string born_key() { return "holdfast:born"; }

std::string process_channel(partition which, std::string_view process) {
  return partition_prefix(which) + "c:" + std::string(process);
}

std::string event_channel(partition which) { return partition_prefix(which) + "e"; }
std::string latch_channel(partition which) { return partition_prefix(which) + "l"; }

std::string state_pattern(const std::string& space, const std::string& prefix) {
  return "holdfast:{*}:s:" + encoded(space, prefix).substr(0, readable) + "*";
}

std::optional<parsed_state> parse_state(std::string_view key) noexcept {
  constexpr std::string_view start = "holdfast:{";
  constexpr std::string_view middle = "}:s:";
  if (!key.starts_with(start)) return std::nullopt;
  key.remove_prefix(start.size());
  parsed_state parsed;
  const auto [end, problem] =
      std::from_chars(key.data(), key.data() + key.size(), parsed.partition);
  if (problem != std::errc{} || parsed.partition >= partition_count) return std::nullopt;
  key.remove_prefix(static_cast<std::size_t>(end - key.data()));
  if (!key.starts_with(middle)) return std::nullopt;
  parsed.tail = key.substr(middle.size());
  return parsed;
}

std::optional<spi::resource_id> resource_of(std::string_view tail, std::string_view written) {
  std::string text(written);
  if (text.empty()) {
    auto found = core::unescaped(tail);
    if (!found) return std::nullopt;
    text = *std::move(found);
  }
  const auto slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  return spi::resource_id{text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace holdfast::redis
