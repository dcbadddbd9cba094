// What people and operators ask for: every member is asked, and what a majority may have is shown.
#include "stores/quorum/quorum_store.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::quorum {

namespace {

// Asks every member and collects their answers; completes with all that came when the last one has.
// `ask`: with a member's store and the completion for its answer.
template <class T, class Ask>
void ask_all(const quorum_context& quorum_context, Ask&& ask,
             spi::function<void(const std::vector<result<T>>&)> gathered) {
  struct survey {
    std::mutex mutex;
    std::vector<result<T>> answers;  // guarded by mutex
    std::size_t pending;             // guarded by mutex
    spi::function<void(const std::vector<result<T>>&)> gathered;
  };
  const std::size_t members = quorum_context.members.size();
  const auto asked = std::make_shared<survey>();
  asked->answers.assign(members, failure(errc::unavailable));
  asked->pending = members;
  asked->gathered = std::move(gathered);
  for (std::size_t i = 0; i < members; ++i) {
    ask(*quorum_context.members[i].store, [asked, i](result<T> answer) {
      {
        const std::lock_guard lock(asked->mutex);
        asked->answers[i] = std::move(answer);
        if (--asked->pending > 0) return;
      }
      asked->gathered(asked->answers);
    });
  }
}

template <class T>
std::size_t heard(const std::vector<result<T>>& answers) {
  return static_cast<std::size_t>(
      std::count_if(answers.begin(), answers.end(), [](const auto& each) { return each; }));
}

template <class T>
tl::unexpected<error> too_few(const std::vector<result<T>>& answers) {
  for (const auto& each : answers) {
    if (!each && each.error() != error{}) {
      return failure(each.error().code,
                     "quorum: no majority answered (" + each.error().detail + ")");
    }
  }
  return failure(errc::unavailable, "quorum: no majority answered");
}

// A holder that so many list that, with those that did not answer, it may have a majority.
template <class T, class HoldersOf>
std::vector<spi::holder> likely(const std::vector<result<T>>& answers, HoldersOf holders_of) {
  struct counted {
    spi::holder shown;
    std::vector<std::optional<fence_token>> fences;  // one of each that lists it
  };
  std::map<std::string, counted> all;
  for (const auto& answer : answers) {
    if (!answer) continue;
    for (const spi::holder& each : std::invoke(holders_of, *answer)) {
      counted& at = all[each.claim];
      const bool first = at.fences.empty();
      const auto least = first ? each.remaining : std::min(at.shown.remaining, each.remaining);
      if (first) at.shown = each;
      at.shown.remaining = least;
      at.fences.push_back(each.fence);
    }
  }
  const std::size_t members = answers.size();
  const std::size_t silent = members - heard(answers);
  std::vector<spi::holder> shown;
  for (auto& [claim, each] : all) {
    if (each.fences.size() + silent < majority_of(members)) continue;
    // The lease's own: the greatest that a majority has. A member that was not counted when the claim
    // was granted may have given it a greater one.
    std::sort(each.fences.begin(), each.fences.end(), std::greater<>());
    each.shown.fence = each.fences[std::min(majority_of(members), each.fences.size()) - 1];
    shown.push_back(std::move(each.shown));
  }
  return shown;
}

// So many members are blocked that the rest is no majority: until enough of them are open again.
std::optional<duration> blocked_for(const std::vector<result<spi::resource_state>>& answers) {
  std::vector<duration> times;
  for (const auto& each : answers) {
    times.push_back(each ? each->blocked_for.value_or(duration{0}) : duration{0});
  }
  const std::size_t decisive = times.size() - majority_of(times.size());
  std::sort(times.begin(), times.end(), std::greater<>());
  return times[decisive] > duration{0} ? std::optional(times[decisive]) : std::nullopt;
}

}  // namespace

void quorum_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                           spi::completion<spi::resource_state> done) {
  const spi::op_context soon = context_->soon(context.deadline, forever);
  ask_all<spi::resource_state>(
      *context_,
      [&](spi::store& member, auto answer) { member.inspect(resource, soon, std::move(answer)); },
      [done = std::move(done)](const std::vector<result<spi::resource_state>>& answers) mutable {
        if (heard(answers) < majority_of(answers.size())) return done(too_few(answers));
        auto holders = likely(answers, &spi::resource_state::holders);
        done(spi::resource_state{std::move(holders), {}, blocked_for(answers)});
      });
}

void quorum_store::revoke(const spi::resource_id& resource, spi::revocation how,
                          const std::string& claim, const spi::op_context& context,
                          spi::completion<std::vector<spi::holder>> done) {
  using holders = std::vector<spi::holder>;
  const spi::op_context soon = context_->soon(context.deadline, forever);
  ask_all<holders>(
      *context_,
      [&](spi::store& member, auto answer) {
        member.revoke(resource, how, claim, soon, std::move(answer));
      },
      [done = std::move(done)](const std::vector<result<holders>>& answers) mutable {
        if (heard(answers) < majority_of(answers.size())) return done(too_few(answers));
        done(likely(answers, std::identity()));
      });
}

void quorum_store::probe(const spi::op_context& context,
                         spi::completion<std::vector<spi::check>> done) {
  using status = spi::check::status;
  const auto quorum_context = context_;
  const std::size_t members = quorum_context->members.size();
  auto gathered = [quorum_context, members, done = std::move(done)](
                      const std::vector<result<std::vector<spi::check>>>& answers) mutable {
    const std::size_t up = heard(answers);
    std::vector<spi::check> all;
    const std::string count = std::to_string(up) + " of " + std::to_string(members);
    all.push_back({"quorum", up < majority_of(members) ? status::fail : status::ok,
                   count + " members answer, " + std::to_string(majority_of(members)) + " needed",
                   up < majority_of(members) ? "bring members back" : ""});
    if (members < 3 || members % 2 == 0) {
      all.push_back({"members", status::warn,
                     std::to_string(members) + " members: " +
                         (members < 3 ? "one failure stops everything"
                                      : "one member fewer tolerates as many failures"),
                     "use 3 or 5 members"});
    }
    if (quorum_context->duplicate.load(std::memory_order_acquire)) {
      all.push_back({"members", status::fail, "two members are one and the same server",
                     "list every server once"});
    }
    for (std::size_t i = 0; i < members; ++i) {
      const std::string& name = quorum_context->members[i].name;
      if (!answers[i]) {
        all.push_back({name, up < members ? status::warn : status::fail,
                       answers[i].error().message(), "start it, or look at the network"});
        continue;
      }
      for (spi::check each : *answers[i]) {
        each.name = name + ": " + each.name;
        all.push_back(std::move(each));
      }
    }
    done(std::move(all));
  };
  ask_all<std::vector<spi::check>>(
      *quorum_context,
      [&](spi::store& member, auto answer) { member.probe(context, std::move(answer)); },
      std::move(gathered));
}

// --- not there -----------------------------------------------------------------------------------

void quorum_store::list(const std::string&, const std::string&, const spi::op_context&,
                        spi::completion<std::vector<spi::resource_summary>> done) {
  done(failure(errc::unsupported, caps_.engine + " has no list: ask its members"));
}
result<std::unique_ptr<spi::subscription>> quorum_store::observe(
    const spi::resource_id&, spi::function<void(const spi::store_event&)>) {
  return failure(errc::unsupported, caps_.engine + " has no events: watch its members");
}
void quorum_store::change_latch(const spi::resource_id&, const spi::latch_change&,
                                const spi::op_context&, spi::completion<spi::latch_state> done) {
  done(failure(errc::unsupported, caps_.engine + " has no latches"));
}
void quorum_store::read_latch(const spi::resource_id&, const spi::op_context&,
                              spi::completion<spi::latch_state> done) {
  done(failure(errc::unsupported, caps_.engine + " has no latches"));
}
result<std::unique_ptr<spi::subscription>> quorum_store::watch_latch(const spi::resource_id&,
                                                                     spi::latch_watch) {
  return failure(errc::unsupported, caps_.engine + " has no latches");
}

}  // namespace holdfast::quorum
