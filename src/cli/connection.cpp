#include "cli/connection.hpp"

#include "cli/text.hpp"
#include "core/hex.hpp"
#include "core/names.hpp"

#include <holdfast/spi/url.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::cli {

namespace {

outcome<std::string> namespace_of(const global_arguments& global) {
  const char* variable = std::getenv("HOLDFAST_NAMESPACE");
  std::string space = global.space.value_or(variable != nullptr ? variable : "");
  if (auto fine = core::check_space(space); !fine) return usage(fine.error().detail);
  return space;
}

// The file, else the URL, else the environment: what is closer to this call wins. What was passed
// to us was decided by the same rule, by a holdfast around us. An engine without a server has no
// password, and the environment may be meant for others.
outcome<std::string> password_of(const context& context, const address& to) {
  std::string password = context.taken.password.value_or(to.password);
  const auto parsed = spi::parse_url(to.url);
  const bool was_passed = !to.password.empty() && !context.taken.password;
  if (parsed && !parsed->password.empty() && !was_passed) password.clear();
  if (context.global.password_file) {
    auto read = read_secret("--password-file", *context.global.password_file);
    if (!read) return read;
    password = std::move(*read);
  }
  return parsed && parsed->hosts.empty() ? std::string{} : password;
}

namespace fs = std::filesystem;

outcome<fs::path> state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  // The specification says to ignore relative paths.
  if (state != nullptr && *state == '/') return fs::path(state);
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return fs::path(home) / ".local" / "state";
  const bool relative = home != nullptr && *home != '\0';
  return usage(std::string(relative ? "HOME is not an absolute path" : "HOME is not set") +
               ": name the file with --url sqlite:FILE, or an engine with --url");
}

// The embedded store's file, used if no URL is given. Makes its folder (0700) if it is missing.
outcome<std::string> default_file() {
  auto folder = state_folder();
  if (!folder) return tl::unexpected(folder.error());
  *folder /= "holdfast";
  std::error_code problem;
  fs::create_directories(folder->parent_path(), problem);
  // Created with its mode, not changed afterwards: nobody can get in between.
  if (!problem && ::mkdir(folder->c_str(), 0700) != 0 && errno != EEXIST) {
    problem.assign(errno, std::system_category());
  }
  if (problem) {
    return tl::unexpected(complaint{
        exit_code::engine,
        "cannot make the folder of the default file; name another with --url (sqlite, mkdir " +
            folder->string() + ", " + problem.message() + ")"});
  }
  return (*folder / "holdfast.db").string();
}

}  // namespace

outcome<address> find_address(const context& context, memory_is memory) {
  address found;
  if (context.global.url) {
    found.url = *context.global.url;
  } else if (context.taken.url && !context.taken.url->empty()) {
    found.url = *context.taken.url;
  } else {
    auto file = default_file();
    if (!file) return tl::unexpected(std::move(file.error()));
    found.url = "sqlite:" + core::path_in_url(*file);
  }
  const auto& received = context.received;
  if (received && found.url == public_url(received->url)) {
    found.url = received->url;
    found.password = received->password;
  }
  const auto parsed = spi::parse_url(found.url);
  if (!parsed) return usage(parsed.error().detail);
  found.engine = parsed->scheme;
  if (found.engine == "memory" && memory == memory_is::useless) {
    return usage("memory: ends with this process and would exclude nobody; use another --url");
  }
  const auto degrade = parsed->options.find("degrade");
  if (degrade != parsed->options.end() && degrade->second == "local") {
    return usage("degrade=local is a lock of this process and would exclude nobody");
  }
  return found;
}

outcome<credentials> credentials_for(const context& context, const address& to) {
  auto space = namespace_of(context.global);
  if (!space) return tl::unexpected(std::move(space.error()));
  auto password = password_of(context, to);
  if (!password) return tl::unexpected(std::move(password.error()));
  return credentials{std::move(*space), std::move(*password)};
}

outcome<client> connect(const address& to, const credentials& with, hand_over locally,
                        std::shared_ptr<observer> observer, std::string payload) {
  client_options options;
  options.name_space = with.space;
  options.password = with.password;
  options.observer = std::move(observer);
  options.payload = std::move(payload);
  options.hand_over_locally = locally == hand_over::within_process;
  auto opened = client::open(to.url, std::move(options));
  if (!opened) {
    return tl::unexpected(from_engine("cannot open the engine", to.engine, "open", opened.error()));
  }
  return std::move(*opened);
}

outcome<engine> open_engine(const context& context, std::string payload) {
  auto to = find_address(context);
  if (!to) return tl::unexpected(std::move(to.error()));
  auto with = credentials_for(context, *to);
  if (!with) return tl::unexpected(std::move(with.error()));
  auto log = std::make_shared<cli::log>(context.global.level);
  auto opened = connect(*to, *with, hand_over::never, log, std::move(payload));
  if (!opened) return tl::unexpected(std::move(opened.error()));
  return engine{std::move(*to), std::move(*with), std::move(log), *opened};
}

std::optional<complaint> engine::first_contact(const std::string& name) const {
  if (to.engine == "sqlite") return std::nullopt;  // it was opened already
  const auto seen = client.inspect(name);
  if (seen || seen.error() != errc::unavailable) return std::nullopt;
  return from_engine("the engine cannot be reached", to.engine, "inspect", seen.error());
}

namespace {

// What the program reports anyway in its own words (lost, busy, failed) is only repeated on demand.
log_level level_of(event_kind kind) {
  switch (kind) {
    case event_kind::renewal_failed:
    case event_kind::release_abandoned:
    case event_kind::degraded:
      return log_level::warn;
    case event_kind::renewed:
    case event_kind::self_wait:
    case event_kind::foreign_unlock:
    case event_kind::handed_over:
    case event_kind::callback_threw:
      return log_level::debug;
    default:
      return log_level::info;
  }
}

}  // namespace

void log::on_event(const event& event) {
  if (event.kind == event_kind::lost && event.cause != nullptr) {
    const std::lock_guard lock(mutex_);
    loss_ = *event.cause;
  }
  const log_level level = level_of(event.kind);
  if (level > level_) return;
  std::string line = level == log_level::warn   ? "warning: "
                     : level == log_level::info ? "info: "
                                                : "debug: ";
  line += to_string(event.kind);
  if (!event.name.empty()) line += " '" + std::string(event.name) + "'";
  if (!event.claim.empty()) line += " claim " + std::string(event.claim);
  if (event.fence.value() != 0) line += " fence " + std::to_string(event.fence.value());
  if (event.took > duration{0}) line += " after " + to_text(event.took);
  if (event.cause != nullptr) line += ": " + event.cause->message();
  tell(line);
}

std::optional<error> log::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_;
}

}  // namespace holdfast::cli
