// Gathers the facts that `doctor` judges: asks every node, and tries everything that the store
// needs, on keys that expire by themselves.
#pragma once

#include "stores/redis/client/greeting.hpp"
#include "stores/redis/topology.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// The checks of `doctor` for a Redis server, each from facts to a verdict.

// The value of "name:value" in INFO's answer; empty if it is not there.
std::string_view info_field(std::string_view info, std::string_view name) noexcept;

spi::check check_server(const server_info& server, const std::string& where);
// A node of a cluster does not accept the keys of all partitions.
spi::check check_eviction(std::string_view info);
spi::check check_memory(std::string_view info);
// `fsync`: appendfsync; none: not allowed to read it.
spi::check check_persistence(std::string_view info, const std::optional<std::string>& fsync);
spi::check check_replicas(std::string_view info);
// The permissions that the store needs and does not have: "+hset".
spi::check check_permissions(const std::vector<std::string>& refused, const std::string& user,
                             const std::string& untried);
// ok, or why a subscription was refused. grants: what would allow it.
spi::check check_channels(const std::optional<error>& refusal, const std::string& grants);
// functions: whether they are functions of a library, else scripts.
spi::check check_scripts(bool functions, const std::optional<error>& refusal);
// Wall clocks, as times since the epoch: the server read its own at some time between `asked` and
// `heard`, and differs from ours by at least the result. A slow answer alone is not a difference.
duration clock_ahead(duration theirs, duration asked, duration heard) noexcept;
// How far the server's wall clock is ahead of ours.
spi::check check_clock(duration ahead);
spi::check check_transport(const server_options& options);
spi::check check_access(const server_options& options);

// What a dialect needs of a server.
struct requirements {
  struct call {
    std::vector<std::string> words;
    std::string keys;  // what to grant if its key is refused
  };
  std::vector<call> calls;
  std::string channel;                  // one to listen to; empty: none is needed
  std::string channels;                 // what to grant if it is refused
  std::string listening;                // including the commands for it
  std::string untried;                  // for people
  std::shared_ptr<const script> tried;  // without keys and arguments; does nothing
};
// Of native claims. tried: of the library.
requirements native_requirements(std::shared_ptr<const script> tried);

// One examination of one node; keeps itself alive until it is answered.
class doctor : public channel_listener, public std::enable_shared_from_this<doctor> {
 public:
  using checks = std::vector<spi::check>;
  static void start(std::shared_ptr<spi::runtime> runtime, const std::shared_ptr<topology>& servers,
                    requirements needed, const net::patience& until, spi::completion<checks> done);

  // From the subscription that is tried out.
  void confirmed() override;
  void message(std::string_view) override {}
  void interrupted(const error& why) override;

 private:
  doctor(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<node> patient,
         std::shared_ptr<const requirements> needed, const net::patience& until,
         spi::completion<checks> done);

  // One thing to try: what to grant if it, or its key, is refused.
  struct trial {
    command what;
    std::string grant;
    std::string keys;
  };

  struct round;
  static void examine_next(const std::shared_ptr<round>& all);
  void begin();
  void ask(std::size_t index);
  void take(std::size_t index, const result<reply>& answer);
  void take_channels(std::optional<error> refusal);
  void arrived();
  [[nodiscard]] std::vector<std::string> refused() const;
  [[nodiscard]] spi::check script_check() const;
  void conclude();

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<node> node_;
  const std::shared_ptr<const requirements> needed_;
  const net::patience until_;
  duration asked_{};  // when, by the wall clock; set before anything is sent
  std::vector<trial> trials_;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  spi::completion<checks> done_;
  std::vector<std::optional<result<reply>>> answers_;
  std::size_t missing_ = 0;
  bool channels_known_ = false;
  std::optional<error> channels_refusal_;
  std::unique_ptr<spi::subscription> subscription_;
  spi::runtime::timer_id timer_ = 0;  // for the subscription
  std::shared_ptr<doctor> keep_;      // ourselves, until all is answered
};

}  // namespace holdfast::redis
