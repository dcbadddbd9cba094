// The first words on a connection: who we are, which database, and who answers. Without I/O: it
// says what to send and takes the replies.
#pragma once

#include "stores/redis/client/options.hpp"
#include "stores/redis/client/reply.hpp"
#include "stores/redis/client/server_info.hpp"

#include <holdfast/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::redis {

// Not thread-safe. One pipelined burst, one round trip: AUTH, ACL WHOAMI, SELECT, CLIENT SETNAME,
// ROLE, INFO; and a second one, HELLO, only where ROLE or INFO is not allowed.
//
// A refused AUTH is the end: nobody goes on as the default user. What the server says of it is not
// repeated, since it may repeat the password.
class greeting {
 public:
  explicit greeting(const server_options& options);

  enum class step : std::uint8_t { more, finished };

  // What to send now; empty if nothing new. Holds the password: not for people.
  [[nodiscard]] std::string take_bytes();
  // The next reply. denied, unsupported, or unavailable (worth another try later).
  result<step> take(const reply& answer);

  [[nodiscard]] const server_info& server() const noexcept { return server_; }

 private:
  enum class part : std::uint8_t { auth, whoami, select, name, role, info, hello };

  void ask(part what, std::initializer_list<std::string_view> words);
  result<void> check(part what, const reply& answer);
  [[nodiscard]] result<void> check_auth(const reply& answer) const;
  [[nodiscard]] result<void> check_user(const reply& answer) const;
  result<step> conclude();

  const server_options& options_;
  const std::string where_;
  std::string bytes_;
  std::vector<part> asked_;
  std::size_t answered_ = 0;
  bool in_the_dark_ = false;  // ROLE or INFO was refused
  server_info server_;
};

}  // namespace holdfast::redis
