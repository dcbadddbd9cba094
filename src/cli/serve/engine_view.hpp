// One engine as `holdfast serve` sees it: whether it answers, what is held and waited for, what doctor
// finds. A separate thread asks it, and only what somebody wants to know; requests read what it
// found.
#pragma once

#include "cli/connection.hpp"
#include "cli/serve/event_log.hpp"

#include <holdfast/client.hpp>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace holdfast::cli::serve {

// Names of one engine that are shown; all are counted.
inline constexpr std::size_t most_names = 20'000;
// An engine is listed while somebody looks, and at most a tenth of the time.
inline constexpr duration list_every = std::chrono::seconds(1);

struct listed_name {
  std::string name;
  std::string json;  // what is shown of it
};

// Of a listed name: one holder, if it is known.
struct known_holder {
  std::string claim;
  wall_time since{};
  std::string payload;
};
using known_holders = std::unordered_map<std::string, known_holder>;

// What list() answered, at one time.
struct listing {
  std::vector<listed_name> rows;  // at most most_names, in the order of their names
  std::size_t names = 0;          // of all, as are the next three
  std::size_t held = 0;
  std::size_t waiting = 0;
  std::size_t blocked = 0;  // names, by a lock delay
  wall_time at{};
  duration took{};
  std::uint64_t number = 0;
};

struct engine_status {
  bool up = false;
  bool lists = true;    // false: this engine cannot
  std::string trouble;  // why it is not up, or cannot be seen; may be empty
  std::vector<spi::check> checks;
  std::shared_ptr<const listing> last;  // none: never listed, or not since it was down
};

// Thread-safe. Shutdown: stop(), then the destructor; calls under way end within their own deadlines.
class engine_view {
 public:
  engine_view(std::string id, std::size_t number, address to, credentials with, event_log& log,
              log_level level);
  engine_view(const engine_view&) = delete;
  engine_view& operator=(const engine_view&) = delete;
  ~engine_view();

  [[nodiscard]] const std::string& id() const noexcept { return id_; }
  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  [[nodiscard]] std::string shown_url() const { return public_url(to_.url); }
  [[nodiscard]] const std::string& scheme() const noexcept { return to_.engine; }

  // Somebody is looking: the engine is listed for a while from now on.
  void look();
  // What is known now.
  [[nodiscard]] engine_status status() const;
  // Asks for a listing no older than that: it begins at this time or later.
  [[nodiscard]] time_point want_listing(duration no_older_than);
  // What is known, from such a listing if there is one by then; at once if the engine is down.
  [[nodiscard]] engine_status status(time_point begun, time_point by);
  [[nodiscard]] result<spi::resource_state> inspect(const std::string& name);
  [[nodiscard]] result<std::vector<spi::holder>> revoke(const std::string& name,
                                                        const std::string& claim);
  // An engine's error, for people.
  [[nodiscard]] std::string told(const error& why, std::string_view action) const {
    return provenance(to_.engine, action, why);
  }

  void stop();

 private:
  void work();
  void open_engine();
  void subscribe();
  void list_names();
  [[nodiscard]] known_holder holder_of(const std::string& name, const known_holders& before) const;
  void fill_in(listing& made, const std::vector<spi::resource_summary>& all);
  void ask_for_unknown();
  void ping();
  void probe();
  void answered(const std::optional<error>& problem, std::string_view action);
  void down(const std::string& why);
  [[nodiscard]] std::optional<client> connected() const;
  // With mutex_ held, as the next one: false if it cannot list, or is known to be down.
  [[nodiscard]] bool may_list() const;
  [[nodiscard]] bool wants_listing(time_point now) const;

  const std::string id_;
  const std::size_t number_;
  const address to_;
  const credentials with_;
  const log_level level_;
  event_log& log_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All below are guarded by mutex_.
  std::optional<client> client_;
  engine_status status_;
  bool stopped_ = false;
  bool was_down_ = false;
  bool contacted_ = false;  // it has answered, or failed to
  time_point looked_{time_point::min()};
  time_point wanted_{time_point::min()};  // a listing is due that began after this
  time_point listed_{time_point::min()};  // when the last attempt to list began
  time_point list_after_{time_point::min()};
  std::uint64_t lists_ = 0;  // attempts to list that have ended
  time_point asked_{time_point::min()};
  time_point probed_{time_point::min()};
  struct detail {
    spi::resource_state state;
    time_point at;
  };
  std::unordered_map<std::string, detail> details_;
  known_holders known_;

  std::unique_ptr<subscription> subscription_;  // the thread's own
  std::jthread thread_;
};

// What is known of all of them, from listings no older than that of those that answer in time.
std::vector<engine_status> fresh_status(const std::vector<engine_view*>& engines,
                                        duration no_older_than);

}  // namespace holdfast::cli::serve
