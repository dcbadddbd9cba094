// holdfast acquire, renew and release --token: a lease that lives between processes. Its token is a secret.
#include "cli/commands.hpp"
#include "cli/hold_run.hpp"
#include "cli/interruption.hpp"
#include "cli/json_value.hpp"
#include "cli/log.hpp"
#include "cli/printer.hpp"
#include "cli/signal_inbox.hpp"
#include "cli/waiting_note.hpp"
#include "core/lease_token.hpp"
#include "runtime/password_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

// A file with the token of a lease, which is a secret: nobody but its owner can read it.
//
// Made before the lock is taken, so that it is not taken for nothing, under another name, so that a token
// that is there already stays until there is a new one. Removed again unless it was filled.
class new_token_file {
 public:
  // usage: it cannot be made there.
  static outcome<new_token_file> make(const std::string& path);
  new_token_file(new_token_file&& other) noexcept;
  new_token_file& operator=(new_token_file&&) = delete;
  new_token_file(const new_token_file&) = delete;
  new_token_file& operator=(const new_token_file&) = delete;
  ~new_token_file();

  // Writes the token, and gives the file its name. An errno, or 0.
  [[nodiscard]] int fill(const std::string& token) noexcept;

 private:
  new_token_file(std::string path, std::string draft, int file)
      : path_(std::move(path)), draft_(std::move(draft)), file_(file) {}

  std::string path_;
  std::string draft_;  // empty: nothing to remove
  int file_ = -1;
};

outcome<new_token_file> new_token_file::make(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return usage("--token-file: it is not a file", "acquire");
  }
  std::string draft = path + ".XXXXXX";
  const int file = ::mkostemp(draft.data(), O_CLOEXEC);  // 0600
  if (file < 0) {
    return usage("--token-file: it cannot be written: " + std::string(std::strerror(errno)),
                 "acquire");
  }
  return new_token_file(path, std::move(draft), file);
}

new_token_file::new_token_file(new_token_file&& other) noexcept
    : path_(std::move(other.path_)),
      draft_(std::exchange(other.draft_, {})),
      file_(std::exchange(other.file_, -1)) {}

new_token_file::~new_token_file() {
  if (file_ >= 0) ::close(file_);
  if (!draft_.empty()) ::unlink(draft_.c_str());
}

int new_token_file::fill(const std::string& token) noexcept {
  std::string_view rest = token;
  bool ended = false;
  while (!rest.empty() || !ended) {
    if (rest.empty()) {
      rest = "\n";
      ended = true;
    }
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written == 0 ? EIO : errno;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::close(std::exchange(file_, -1)) != 0) return errno;
  if (::rename(draft_.c_str(), path_.c_str()) != 0) return errno;
  draft_.clear();
  return 0;
}

complaint about_token(const std::string& what, const std::string& engine, const char* verb,
                      const error& why) {
  complaint said = from_engine(what, engine, verb, why);
  if (why == errc::lost || why == errc::not_held) said.code = exit_code::lost;
  return said;
}

std::string as_json(const std::string& name, const std::string& token, fence_token fence,
                    duration ttl) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(ttl).count();
  json::value document;
  document["name"] = name;
  document["fence"] = fence.value();
  document["ttl_ms"] = milliseconds;
  if (!token.empty()) document["token"] = token;
  return json::line(document);
}

// To where it was asked for. A token that nobody gets to know is released.
int hand_out(const client& client, const hold_arguments& how, const token_arguments& where,
             new_token_file* file, const std::string& token, fence_token fence) {
  const std::string& name = how.names.front();
  if (file != nullptr) {
    if (const int problem = file->fill(token); problem != 0) {
      static_cast<void>(client.release(token));
      tell("the token of '" + name + "' cannot be written; the lock was released (write, " +
           std::strerror(problem) + ")");
      return exit_code::engine;
    }
  }
  std::string text;
  if (where.json) {
    text = as_json(name, file == nullptr ? token : std::string(), fence, how.lock.ttl);
  } else if (file == nullptr) {
    text = token + "\n";
  }
  const int printed = text.empty() ? exit_code::ok : print_all(text);
  if (printed != exit_code::ok && file == nullptr) static_cast<void>(client.release(token));
  return printed;
}

outcome<std::string> token_of(const token_arguments& what, const char* command) {
  if (!what.token_file) return what.token;
  auto read = runtime::read_password_file(*what.token_file);
  if (!read) return usage("--token-file: " + read.error().detail, command);
  if (!core::parse_token(*read)) {
    return usage("--token-file: its first line is not a token, or not all of one", command);
  }
  return *std::move(read);
}

template <class Verb>
int use_token(const context& context, const token_arguments& what, const char* command,
              const std::string& failed, Verb&& verb) {
  const auto token = token_of(what, command);
  if (!token) return tell(token.error());
  const auto to = find_address(context);
  if (!to) return tell(to.error());
  const auto client = connect(context, *to, std::make_shared<log>(context.global.level));
  if (!client) return tell(client.error());
  const result<void> done = verb(*client, *token);
  if (done) return exit_code::ok;
  return tell(about_token(failed, to->engine, command, done.error()));
}

}  // namespace

int acquire(const context& context, const hold_arguments& how, const token_arguments& where) {
  const std::string what = "'" + how.names.front() + "'";
  const auto to = find_address(context);
  if (!to) return tell(to.error());
  signal_inbox inbox;  // before any thread exists
  interruption interruption(inbox);
  const auto client = connect(context, *to, std::make_shared<log>(context.global.level));
  if (!client) return tell(client.error());
  if (how.acquire.wait > duration{0}) {
    if (const auto problem = first_contact(*client, *to, how.names.front())) return tell(*problem);
  }
  std::stop_token stop = interruption.waiting();  // from here on a signal lets us clean up
  std::optional<new_token_file> file;
  if (where.token_file) {
    auto made = new_token_file::make(*where.token_file);
    if (!made) return tell(made.error());
    file.emplace(*std::move(made));
  }
  std::optional<waiting_note> note;
  if (how.acquire.wait > duration{0} && !how.quiet && waiting_note::wanted()) {
    note.emplace(*client, how.names, how.acquire.wait);
  }
  auto granted = take(how, *client, std::move(stop));
  if (note) note->over();
  if (const auto ended_by = interruption.over()) {
    if (granted) static_cast<void>(granted->release());
    tell("ended by " + signal_name(*ended_by) + " while waiting for " + what + " (" + to->engine +
         ", attempt, withdrawn)");
    return exit_code::signalled + *ended_by;
  }
  if (!granted) return not_granted(how, what, to->engine, granted.error());
  const fence_token fence = granted->fence();
  const auto token = granted->detach();
  if (!token) {
    return tell(about_token(what + " was not handed over", to->engine, "detach", token.error()));
  }
  return hand_out(*client, how, where, file ? &*file : nullptr, *token, fence);
}

int renew_token(const context& context, const token_arguments& what) {
  return use_token(context, what, "renew", "the lease was not renewed",
                   [&](const client& client, const std::string& token) {
                     return client.renew(token, what.ttl);
                   });
}

int release_token(const context& context, const token_arguments& what) {
  return use_token(
      context, what, "release", "the lease was not released",
      [](const client& client, const std::string& token) { return client.release(token); });
}

}  // namespace holdfast::cli
