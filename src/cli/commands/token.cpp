// holdfast acquire, renew and release --token: a lease that lives between processes. Its token is a secret.
#include "cli/commands.hpp"
#include "cli/inspection.hpp"
#include "cli/run/waiting_note.hpp"
#include "cli/signals.hpp"
#include "core/lease_token.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stop_token>
#include <string>
#include <utility>

namespace holdfast::cli {

namespace {

// A file with the token of a lease, which is a secret: only its owner can read it.
//
// Made before the lock is acquired, so that it is not acquired for nothing; under another name, so
// that an existing token stays until there is a new one. Removed again unless it was filled.
class new_token_file {
 public:
  new_token_file() = default;
  new_token_file(const new_token_file&) = delete;
  new_token_file& operator=(const new_token_file&) = delete;
  ~new_token_file() {
    if (file_ >= 0) ::close(file_);
    if (!draft_.empty()) ::unlink(draft_.c_str());
  }

  // usage: it cannot be made there.
  outcome<void> make(const std::string& path) {
    struct stat there {};
    if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
      return usage("--token-file: it is not a file", "acquire");
    }
    std::string draft = path + ".XXXXXX";
    file_ = ::mkostemp(draft.data(), O_CLOEXEC);  // 0600
    if (file_ < 0) {
      return usage("--token-file: it cannot be written: " + std::string(std::strerror(errno)),
                   "acquire");
    }
    path_ = path;
    draft_ = std::move(draft);
    return {};
  }
  [[nodiscard]] bool made() const noexcept { return file_ >= 0; }

  // Writes the token, and gives the file its name. False: failed, see errno.
  [[nodiscard]] bool fill(const std::string& token) noexcept {
    if (!write_all(file_, token) || !write_all(file_, "\n")) return false;
    if (::close(std::exchange(file_, -1)) != 0) return false;
    if (::rename(draft_.c_str(), path_.c_str()) != 0) return false;
    draft_.clear();
    return true;
  }

 private:
  std::string path_;
  std::string draft_;  // empty: nothing to remove
  int file_ = -1;
};

int refused_token(const engine& engine, const std::string& what, const std::string& verb,
                  const error& why) {
  complaint said = from_engine(what, engine.to.engine, verb, why);
  if (why == errc::lost || why == errc::not_held) said.code = exit_code::lost;
  return tell(said);
}

// Writes the token where it was asked for. A token that cannot be delivered is released.
int hand_out(const client& client, const hold_arguments& how, const token_arguments& where,
             new_token_file& file, const std::string& token, fence_token fence) {
  const std::string& name = how.names.front();
  const bool filed = file.made();
  if (filed && !file.fill(token)) {
    const int problem = errno;
    static_cast<void>(client.release(token));
    return tell({exit_code::engine, "the token of '" + name +
                                        "' cannot be written; the lock was released (write, " +
                                        std::strerror(problem) + ")"});
  }
  std::string text = filed ? "" : token + "\n";
  if (where.json) {
    json::value document{
        {"name", name}, {"fence", fence.value()}, {"ttl_ms", json::milliseconds(how.lock.ttl)}};
    if (!filed) document["token"] = token;
    text = json::line(document);
  }
  const int printed = text.empty() ? exit_code::ok : print_all(text);
  if (printed != exit_code::ok && !filed) static_cast<void>(client.release(token));
  return printed;
}

outcome<std::string> token_of(const token_arguments& what, const std::string& command) {
  if (!what.token_file) return what.token;
  auto read = read_secret("--token-file", *what.token_file, command);
  if (read && !core::parse_token(*read)) {
    return usage("--token-file: the token in its first line is malformed or incomplete", command);
  }
  return read;
}

template <class Verb>
int use_token(const context& context, const token_arguments& what, const std::string& command,
              const std::string& failed, const Verb& verb) {
  const auto token = token_of(what, command);
  if (!token) return tell(token.error());
  const auto engine = open_engine(context);
  if (!engine) return tell(engine.error());
  const result<void> done = verb(engine->client, *token);
  if (done) return exit_code::ok;
  return refused_token(*engine, failed, command, done.error());
}

}  // namespace

int acquire(const context& context, const hold_arguments& how, const token_arguments& where) {
  const std::string what = "'" + how.names.front() + "'";
  signal_inbox inbox;  // before any thread exists
  interruption interruption(inbox);
  const auto engine = open_engine(context);
  if (!engine) return tell(engine.error());
  if (how.acquire.wait > duration{0}) {
    if (const auto problem = engine->first_contact(how.names.front())) return tell(*problem);
  }
  std::stop_token stop = interruption.waiting();  // from here on a signal lets us clean up
  new_token_file file;
  if (where.token_file) {
    if (const auto made = file.make(*where.token_file); !made) return tell(made.error());
  }
  waiting_note note(engine->client, how);
  auto granted = take(how, engine->client, std::move(stop));
  note.over();
  if (const auto signal = interruption.over()) {
    if (granted) static_cast<void>(granted->release());
    return withdrawn(*signal, what, *engine, "attempt");
  }
  if (!granted) return not_granted(how, what, *engine, granted.error());
  const fence_token fence = granted->fence();
  const auto token = granted->detach();
  if (!token) {
    return refused_token(*engine, what + " was not handed over", "detach", token.error());
  }
  return hand_out(engine->client, how, where, file, *token, fence);
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
