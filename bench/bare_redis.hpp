// The fastest bare driver we can write, to measure the Redis store against: hiredis, TCP_NODELAY,
// commands formatted once, one connection.
#pragma once

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::bench {

class bare_redis {
 public:
  explicit bare_redis(std::uint16_t port) : context_(::redisConnect("127.0.0.1", port)) {
    const int on = 1;
    ::setsockopt(context_->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~bare_redis() { ::redisFree(context_); }
  bare_redis(const bare_redis&) = delete;
  bare_redis& operator=(const bare_redis&) = delete;

  using answer = std::unique_ptr<redisReply, decltype(&::freeReplyObject)>;

  static std::string formatted(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& each : words) {
      texts.push_back(each.data());
      sizes.push_back(each.size());
    }
    char* made = nullptr;
    const long long size =
        ::redisFormatCommandArgv(&made, static_cast<int>(words.size()), texts.data(), sizes.data());
    const std::string bytes(made, static_cast<std::size_t>(size));
    ::redisFreeCommand(made);
    return bytes;
  }

  void post(const std::string& bytes) const {
    ::redisAppendFormattedCommand(context_, bytes.data(), bytes.size());
  }
  answer take() const {
    void* raw = nullptr;
    if (::redisGetReply(context_, &raw) != REDIS_OK) std::abort();
    auto* const made = static_cast<redisReply*>(raw);
    if (made->type == REDIS_REPLY_ERROR) std::abort();
    return {made, &::freeReplyObject};
  }
  answer call(const std::string& bytes) const {
    post(bytes);
    return take();
  }
  answer call(const std::vector<std::string>& words) const { return call(formatted(words)); }
  [[nodiscard]] int descriptor() const noexcept { return context_->fd; }

 private:
  redisContext* context_;
};

}  // namespace holdfast::bench
