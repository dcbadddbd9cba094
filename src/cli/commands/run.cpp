// holdfast run, elect and multi run: find the command, acquire what is asked for, run the command
// under it, release it.
#include "cli/commands.hpp"
#include "cli/run/child.hpp"
#include "cli/run/guard.hpp"
#include "cli/run/presence.hpp"
#include "cli/run/waiting_note.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "core/names.hpp"
#include "primitives/client_state.hpp"

#include <holdfast/election.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

std::string host_and_pid() {
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '?';
  return std::string(host) + ":" + std::to_string(::getpid());
}

// "host:pid:program", for people who look at holders.
std::string payload_of(const std::string& program) {
  const std::string base = program.substr(program.rfind('/') + 1);
  return core::clean_payload(host_and_pid() + ":" + base);
}

// One run, from the granted lock to its release. Used by the main thread.
class holding {
 public:
  holding(const hold_arguments& how, const std::string& what, engine& engine, presence& presence,
          command_lease held)
      : how_(how),
        what_(what),
        engine_(engine),
        presence_(presence),
        lease_(std::move(held)),
        since_(clock::now()) {}

  int run(const context& context, const std::string& program, const url_for_child& url,
          signal_inbox& inbox) {
    terminal terminal;
    const runtime::descriptor life(engine_.client.inside()->engine->store().life_descriptor());
    std::vector<std::string> variables = lease_.variables();
    variables.insert(variables.end(), url.variables.begin(), url.variables.end());
    const auto passed = how_.pass_notify ? notify_socket::passed_on : notify_socket::kept;
    child_plan plan{.program = program,
                    .arguments = how_.command,
                    .environment = child_environment(context.environment, context.taken, variables,
                                                     service_variables_kept(passed)),
                    .descriptors = {}};
    if (life.get() >= 0) plan.descriptors.push_back(life.get());
    if (url.file.get() >= 0) plan.descriptors.push_back(url.file.get());
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
    // An engine that did not answer that will not answer now: the end of the command does not wait
    // for it.
    const bool silent = !released && released.error() == errc::unavailable;
    const std::optional<duration> limit = silent ? std::optional(duration{0}) : std::nullopt;
    for (const std::string& name : engine_.client.inside()->close(limit)) {
      tell("warning: the release of '" + name + "' was not confirmed; it ends by itself (" +
           engine_.to.engine + ", leave, no answer)");
    }
    if (!released) {
      tell("warning: the release of " + what_ + " failed (" +
           provenance(engine_.to.engine, "leave", released.error()) + ")");
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
    // The guard reads the clock itself, perhaps before the library has reported why.
    const bool renewed = how_.lock.renew == renew::automatic;
    // Its notice is less than half of the longest hold.
    const bool too_long =
        how_.lock.max_hold != forever && clock::now() - since_ >= how_.lock.max_hold / 2;
    const error by_clock(errc::lost, too_long  ? "held for its longest time"
                                     : renewed ? "the lease was not confirmed in time"
                                               : "not renewed, and its ttl has passed");
    const error why = engine_.log->loss().value_or(by_clock);
    const std::string how = verdict.killed ? "SIGTERM and SIGKILL" : "SIGTERM";
    tell("lost " + what_ + " while the command ran; it got " + how + " (" +
         provenance(engine_.to.engine, "hold", why) + ")");
    // The command has stopped. After a revocation this frees the lock; in an outage it has no
    // effect.
    static_cast<void>(lease_.release());
    engine_.client.inside()->close(std::chrono::milliseconds(500));
    return exit_code::lost;
  }

  const hold_arguments& how_;
  const std::string& what_;
  engine& engine_;
  presence& presence_;
  command_lease lease_;
  const time_point since_;
};

// How a command takes its lock; may throw lock_error. Only its acquisition is waited for under the token.
using take_lock = std::function<result<command_lease>(const client&, std::stop_token)>;

template <class Lease>
result<command_lease> as_held(result<Lease> granted) {
  if (!granted) return tl::unexpected(std::move(granted.error()));
  return command_lease(std::move(*granted));
}

// `what`: the lock or locks, for people.
int run_holding(const context& context, const hold_arguments& how, const std::string& what,
                const take_lock& take) {
  const auto program = find_program(how.command.front());
  if (!program) return tell(program.error());
  ::mallopt(M_ARENA_MAX, 1);  // our two other threads hardly allocate: no heaps of their own
  signal_inbox inbox;         // before any thread exists
  interruption interruption(inbox);
  presence presence(how, what);
  if (const auto opened = presence.open(); !opened) return tell(opened.error());
  url_for_child url;
  if (how.pass_url) url = prepare_url();
  auto engine = open_engine(context, payload_of(how.command.front()));
  if (!engine) return tell(engine.error());
  if (how.pass_url) pass_url({engine->to.url, engine->with.password}, engine->with.space, url);
  if (how.acquire.wait > duration{0}) {  // a try reports it by itself
    if (const auto problem = engine->first_contact(how.names.front())) return tell(*problem);
  }
  presence.waiting(engine->client);
  waiting_note note(engine->client, how);
  auto granted = take(engine->client, interruption.waiting());
  note.over();
  const auto signal = interruption.over();
  if (!granted && !signal) return not_granted(how, what, *engine, granted.error());
  if (!granted) {
    engine->client.close();
    return withdrawn(*signal, what, *engine, "attempt");
  }
  holding holding(how, what, *engine, presence, std::move(*granted));
  if (!signal) return holding.run(context, *program, url, inbox);
  holding.give_back();
  return withdrawn(*signal, what, *engine, "attempt");
}

}  // namespace

result<lease> take(const hold_arguments& how, const client& client, std::stop_token token) {
  const std::string& name = how.names.front();
  if (how.max) {
    semaphore permits(client, name, {.max = *how.max, .lock = how.lock});
    return permits.acquire(how.acquire, std::move(token), how.permits);
  }
  if (how.shared) {
    shared_mutex readers(client, name, how.lock);
    return readers.acquire_shared(how.acquire, std::move(token));
  }
  mutex lock(client, name, how.lock);
  return lock.acquire(how.acquire, std::move(token));
}

int not_granted(const hold_arguments& how, const std::string& what, const engine& engine,
                const error& why) {
  const bool busy = why == errc::busy || why == errc::timed_out;
  const bool tried = busy && how.acquire.wait == duration{0};
  const bool several = how.names.size() > 1;
  std::string failed = what + (several ? " were" : " was") + " not granted";
  if (tried) {
    failed = what + (several ? " are busy" : " is busy");
  } else if (busy) {
    failed += " within " + to_text(how.acquire.wait);
  }
  complaint said = from_engine(failed, engine.to.engine, "attempt", why);
  if (busy) said.code = how.busy_exit_code;
  return busy && how.quiet ? said.code : tell(said);
}

int withdrawn(int signal, const std::string& what, const engine& engine,
              const std::string& action) {
  return tell(ended_by_signal(
      signal, "",
      " while waiting for " + what + " (" + engine.to.engine + ", " + action + ", withdrawn)"));
}

int run(const context& context, const hold_arguments& how) {
  return run_holding(context, how, "'" + how.names.front() + "'",
                     [&](const client& client, std::stop_token token) {
                       return as_held(take(how, client, std::move(token)));
                     });
}

int multi_run(const context& context, const hold_arguments& how) {
  return run_holding(context, how, "'" + joined(how.names, "', '") + "'",
                     [&](const client& client, std::stop_token token) {
                       std::vector<lock_part> parts;
                       for (const std::string& name : how.names) {
                         parts.emplace_back(mutex(client, name, how.lock));
                       }
                       multi_lock all(std::move(parts));
                       return as_held(all.acquire(how.acquire, std::move(token)));
                     });
}

// Runs the command while leader.
int elect(const context& context, const hold_arguments& asked) {
  hold_arguments how = asked;
  if (how.id.empty()) how.id = host_and_pid();
  return run_holding(context, how, "the election '" + how.names.front() + "'",
                     [&](const client& client, std::stop_token token) {
                       election campaign(client, how.names.front(), how.id, how.lock);
                       return as_held(campaign.campaign(how.acquire, std::move(token)));
                     });
}

}  // namespace holdfast::cli
