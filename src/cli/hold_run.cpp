#include "cli/hold_run.hpp"

#include "cli/child.hpp"
#include "cli/guard.hpp"
#include "cli/interruption.hpp"
#include "cli/log.hpp"
#include "cli/number_text.hpp"
#include "cli/passed_url.hpp"
#include "cli/presence.hpp"
#include "cli/signal_inbox.hpp"
#include "cli/terminal.hpp"
#include "cli/waiting_note.hpp"
#include "primitives/client_state.hpp"

#include <malloc.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast::cli {

namespace {

// One run, from the granted lock to its release. Used by the main thread.
class holding {
 public:
  holding(const hold_arguments& how, const std::string& what, const std::string& engine,
          std::shared_ptr<log> log, client& client, presence& presence, command_lease held)
      : how_(how),
        what_(what),
        engine_(engine),
        log_(std::move(log)),
        client_(client),
        presence_(presence),
        lease_(std::move(held)),
        since_(clock::now()) {}

  int run(const context& context, const std::string& program, const url_for_child& url,
          signal_inbox& inbox) {
    terminal terminal;
    const descriptor life(client_.inside()->engine->store().life_descriptor());
    std::vector<std::string> variables = lease_.variables();
    variables.insert(variables.end(), url.variables.begin(), url.variables.end());
    const auto passed = how_.pass_notify ? notify_socket::passed_on : notify_socket::kept;
    child_plan plan{.program = program,
                    .arguments = how_.command,
                    .environment = child_environment(context.environment, context.taken, variables,
                                                     service_variables_kept(passed)),
                    .descriptors = {}};
    if (life) plan.descriptors.push_back(life.get());
    if (url.file) plan.descriptors.push_back(url.file.get());
    auto started = child::start(plan, inbox, terminal);
    if (!started) return not_started(started.error());
    presence_.holding(lease_);
    guard guard(*started, lease_, how_.grace, inbox, terminal);
    const guard::verdict verdict = guard.watch();
    if (verdict.lost) return lost(verdict);
    if (how_.at_least > duration{0}) guard.linger(since_ + how_.at_least);
    presence_.ending("releasing");
    give_back();
    if (verdict.ending.signal != 0) {
      tell("the command died of " + signal_name(verdict.ending.signal) + " (" +
           how_.command.front() + ")");
    }
    return verdict.ending.code;
  }

  // A release that fails changes nothing about how the command ended.
  void give_back() {
    const auto released = lease_.release();
    // Whoever did not answer that will not answer now: the command's end is not kept waiting for it.
    const bool silent = !released && released.error() == errc::unavailable;
    const std::optional<duration> limit = silent ? std::optional(duration{0}) : std::nullopt;
    for (const std::string& name : client_.inside()->close(limit)) {
      tell("warning: the release of '" + name + "' was not confirmed; it ends by itself (" +
           engine_ + ", leave, no answer)");
    }
    if (!released) {
      tell("warning: the release of " + what_ + " failed (" +
           provenance(engine_, "leave", released.error()) + ")");
    }
  }

 private:
  int not_started(int number) {
    give_back();
    const bool missing = number == ENOENT || number == ENOTDIR;
    tell("the command cannot be executed: " + how_.command.front() + " (exec, " +
         std::strerror(number) + ")");
    return missing ? exit_code::not_found : exit_code::not_executable;
  }

  int lost(const guard::verdict& verdict) {
    presence_.ending("lost");
    // The guard reads the clock itself, and may do so before the library has told why.
    const bool renewed = how_.lock.renew == renew::automatic;
    // Its notice is less than half of the longest hold.
    const bool too_long =
        how_.lock.max_hold != forever && clock::now() - since_ >= how_.lock.max_hold / 2;
    const error by_clock(errc::lost, too_long  ? "held for its longest time"
                                     : renewed ? "the lease was not confirmed in time"
                                               : "not renewed, and its ttl has passed");
    const error why = log_->loss().value_or(by_clock);
    const std::string how = verdict.killed ? "SIGTERM and SIGKILL" : "SIGTERM";
    tell("lost " + what_ + " while the command ran; it got " + how + " (" +
         provenance(engine_, "hold", why) + ")");
    // The command has stopped. After a revocation that frees the lock; in an outage nobody listens.
    static_cast<void>(lease_.release());
    client_.inside()->close(std::chrono::milliseconds(500));
    return exit_code::lost;
  }

  const hold_arguments& how_;
  const std::string& what_;
  const std::string& engine_;
  const std::shared_ptr<log> log_;
  client& client_;
  presence& presence_;
  command_lease lease_;
  const time_point since_;
};

// Waits, and says so to a person at a terminal.
result<command_lease> take_visibly(const hold_arguments& how, const client& client,
                                   std::stop_token token, std::optional<waiting_note>& note,
                                   const take_lock& take) {
  const bool waits = how.acquire.wait > duration{0};
  if (waits && !how.quiet && waiting_note::wanted()) {
    note.emplace(client, how.names, how.acquire.wait);
  }
  auto granted = take(client, std::move(token));
  if (note) note->over();
  return granted;
}

}  // namespace

int not_granted(const hold_arguments& how, const std::string& what, const std::string& engine,
                const error& why) {
  complaint said = from_engine(what + " was not granted", engine, "attempt", why);
  if (said.code == exit_code::busy) {
    const std::string wait = how.acquire.wait == duration{0}
                                 ? " is busy"
                                 : " was not granted within " + to_text(how.acquire.wait);
    said = from_engine(what + wait, engine, "attempt", why);
    said.code = how.busy_exit_code;
    if (how.quiet) return said.code;
  }
  return tell(said);
}

int run_holding(const context& context, const hold_arguments& how, const std::string& what,
                const take_lock& take) {
  const auto program = find_program(how.command.front());
  if (!program) return tell(program.error());
  const auto to = find_address(context);
  if (!to) return tell(to.error());

  ::mallopt(M_ARENA_MAX, 1);  // two more threads, which hardly allocate, need no heaps of their own
  signal_inbox inbox;         // before any thread exists
  interruption interruption(inbox);
  presence presence(how, what);
  if (const auto problem = presence.open(how.id)) return tell(*problem);
  const auto log = std::make_shared<cli::log>(context.global.level);
  auto with = credentials_for(context, *to);
  if (!with) return tell(with.error());
  const url_for_child url =
      how.pass_url ? pass_url({to->url, with->password}, with->space) : url_for_child{};
  auto client = connect(*to, std::move(*with), log, payload_of(how.command.front()));
  if (!client) return tell(client.error());
  if (how.acquire.wait > duration{0}) {  // a try says it by itself
    if (const auto problem = first_contact(*client, *to, how.names.front())) return tell(*problem);
  }
  presence.waiting(*client);
  std::optional<waiting_note> note;
  auto granted = take_visibly(how, *client, interruption.waiting(), note, take);
  const auto ended_by = interruption.over();
  if (!granted && !ended_by) return not_granted(how, what, to->engine, granted.error());
  if (ended_by) {
    if (granted) {
      holding(how, what, to->engine, log, *client, presence, std::move(*granted)).give_back();
    } else {
      client->close();
    }
    tell("ended by " + signal_name(*ended_by) + " while waiting for " + what + " (" + to->engine +
         ", attempt, withdrawn)");
    return exit_code::signalled + *ended_by;
  }
  return holding(how, what, to->engine, log, *client, presence, std::move(*granted))
      .run(context, *program, url, inbox);
}

}  // namespace holdfast::cli
