// The first exchange on a connection: who we are, which database, and who answers. Without I/O: it
// returns what to send and takes the replies.
#pragma once

#include "net/backoff.hpp"
#include "net/target.hpp"
#include "net/tls_context.hpp"
#include "stores/redis/client/batch.hpp"
#include "stores/redis/client/reply.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/url.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// Which server, and as whom.

struct server_options {
  enum class role : std::uint8_t {
    master,  // any other role is refused at connect; disconnects when it is demoted
    any,
  };

  net::target where;
  std::shared_ptr<const net::tls_context> tls;  // null: none
  std::string user;                             // empty: the default user
  spi::secret password;                         // neither: no AUTH at all
  std::uint32_t database = 0;
  std::string name;  // for CLIENT LIST; no spaces; empty: none
  role wanted = role::master;
  std::uint32_t wait_replicas = 0;                   // a grant counts once this many have it
  bool functions = true;                             // false: scripts, as before Redis 7
  duration connect_limit = std::chrono::seconds(5);  // resolve, connect, TLS and greeting together
  net::backoff_limits backoff;
  reader_limits limits;
  pacing::settings pace;
};

// Who answers: version, role, mode and identity of a server, as it reports them.
struct server_version {
  int major = 0;
  int minor = 0;
  int patch = 0;

  // "7.0.15"; what is missing or not a number is 0.
  static server_version parse(std::string_view text) noexcept;
  [[nodiscard]] std::string text() const;

  friend auto operator<=>(const server_version&, const server_version&) = default;
};

inline constexpr server_version oldest_version{6, 2, 0};
inline constexpr server_version first_with_functions{7, 0, 0};

struct server_info {
  enum class role : std::uint8_t { unknown, master, replica, sentinel };

  server_version version;
  role part = role::unknown;
  std::string mode;    // standalone, cluster, sentinel
  std::string run_id;  // changes with every start; empty if INFO is not allowed

  // From the answers of ROLE, INFO server and HELLO. What is not in them stays as it is.
  void take_role(const reply& answer);
  void take_info(const reply& answer);
  void take_hello(const reply& answer);
};

// Not thread-safe. One pipelined burst, one round trip: AUTH, ACL WHOAMI, SELECT, CLIENT SETNAME,
// ROLE, INFO; and a second one, HELLO, only if ROLE or INFO is not allowed.
//
// A refused AUTH is final: we never continue as the default user. The server's message is not
// repeated, since it may contain the password.
class greeting {
 public:
  explicit greeting(const server_options& options);

  enum class step : std::uint8_t { more, finished };

  // What to send now; empty if nothing new. Contains the password: not for people.
  [[nodiscard]] std::string take_bytes();
  // The next reply. denied, unsupported, or unavailable (worth another attempt later).
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
