// Which engine to use, and how to reach it: --url, else HOLDFAST_URL, else the embedded file of
// this user.
#pragma once

#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/secrets.hpp"

#include <holdfast/client.hpp>
#include <holdfast/observer.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {

// What every command is given.
struct context {
  global_arguments global;
  secrets taken;
  std::optional<passed_url> received;
  char** environment = nullptr;

  // If false: the embedded file is used.
  [[nodiscard]] bool names_engine() const noexcept {
    return global.url || (taken.url && !taken.url->empty());
  }
};

struct address {
  std::string url;
  std::string engine;      // its scheme, for errors
  std::string password{};  // passed with the URL
};

enum class memory_is : std::uint8_t { useless, fine };

// Usage errors: no URL at all, `memory:` where it would exclude nobody, no HOME for the default
// file. Makes the default file's folder.
outcome<address> find_address(const context& context, memory_is memory = memory_is::useless);

// What the engine is opened with besides its URL.
struct credentials {
  std::string space;
  std::string password;
};
outcome<credentials> credentials_for(const context& context, const address& to);

// A single thread has nobody to hand over to; without hand-over fences grow by one.
enum class hand_over : std::uint8_t { never, within_process };

// `payload`: empty for the library's own.
outcome<client> connect(const address& to, const credentials& with,
                        hand_over locally = hand_over::never,
                        std::shared_ptr<observer> observer = {}, std::string payload = {});

// What the library reports while the program runs: lines on stderr, according to --log-level, and
// the reason for the last loss, for the program's last line. Thread-safe.
class log : public observer {
 public:
  explicit log(log_level level) : level_(level) {}

  void on_event(const event& event) override;

  // Why a lease was lost; none if none was.
  [[nodiscard]] std::optional<error> loss() const;

 private:
  const log_level level_;
  mutable std::mutex mutex_;
  std::optional<error> loss_;  // guarded by mutex_
};

// What a command talks to.
struct engine {
  address to;
  credentials with;
  std::shared_ptr<cli::log> log;
  holdfast::client client;

  // Reports an error of the library; returns the exit code.
  int refused(const std::string& what, std::string_view action, const error& why) const {
    return tell(from_engine(what, to.engine, action, why));
  }
  // For commands that are about to wait, or to watch, indefinitely: an outage is waited out, but an
  // engine that was never reached is different. The URL may be wrong, and nobody would learn of it.
  // At most 5 s.
  [[nodiscard]] std::optional<complaint> first_contact(const std::string& name) const;
};
outcome<engine> open_engine(const context& context, std::string payload = {});

}  // namespace holdfast::cli
