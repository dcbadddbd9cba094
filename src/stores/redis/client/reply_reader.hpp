// Bytes into replies, by hiredis's parser with creators of our own that set limits: a server, or
// who plays one, must not be able to exhaust our memory with an announcement.
#pragma once

#include "stores/redis/client/reader_limits.hpp"
#include "stores/redis/client/reply.hpp"

#include <holdfast/result.hpp>

#include <memory>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// Not thread-safe. How the bytes are cut into pieces makes no difference to what comes out.
class reply_reader {
 public:
  explicit reply_reader(reader_limits limits = {});
  ~reply_reader();
  reply_reader(const reply_reader&) = delete;
  reply_reader& operator=(const reply_reader&) = delete;

  // Appends the replies that these bytes complete. unavailable: that is not RESP2, or beyond a
  // limit; the replies before it were appended, and the reader answers the same from then on.
  result<void> feed(std::string_view bytes, std::vector<reply>& into);

 private:
  struct parser;

  std::unique_ptr<parser> parser_;
};

}  // namespace holdfast::redis
