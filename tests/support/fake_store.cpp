#include "support/fake_store.hpp"

#include <utility>

namespace holdfast::test {

namespace {

tl::unexpected<error> down() { return failure(errc::unavailable, "closed"); }
tl::unexpected<error> not_faked() { return failure(errc::unsupported, "not faked"); }

template <class Calls, class Answer>
bool answer_oldest(Calls& calls, Answer answer) {
  if (calls.empty()) return false;
  auto call = std::move(calls.front());
  calls.pop_front();
  call.done(std::move(answer));
  return true;
}

}  // namespace

bool fake_store::answer_attempt(result<spi::outcome> answer) {
  return answer_oldest(attempts, std::move(answer));
}
bool fake_store::answer_watch(result<spi::armed> answer) {
  return answer_oldest(watches, std::move(answer));
}
bool fake_store::answer_leave(result<spi::departure> answer) {
  return answer_oldest(leaves, std::move(answer));
}
bool fake_store::answer_renewal(result<std::vector<spi::renewal>> answer) {
  return answer_oldest(renewals, std::move(answer));
}
bool fake_store::answer_change(result<spi::granted> answer) {
  return answer_oldest(changes, std::move(answer));
}

bool fake_store::answer_transfer(result<spi::granted> answer) {
  return answer_oldest(transfers, std::move(answer));
}

std::string fake_store::name_of(const spi::claim& claim) {
  const auto known = names_.find(claim.id);
  if (known != names_.end()) return known->second;
  std::string name(1, static_cast<char>('a' + names_.size() % 26));
  if (names_.size() >= 26) name += std::to_string(names_.size() / 26);
  names_.emplace(claim.id, name);
  return name;
}

std::string fake_store::take_log() {
  std::string text;
  for (const std::string& line : std::exchange(log, {})) text += (text.empty() ? "" : ", ") + line;
  return text;
}

void fake_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                         const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (closed) return done(down());
  const std::string name = name_of(*claim);
  log.push_back("attempt " + name);
  wakeups_[name] = std::move(wakeup);
  attempts.push_back({std::move(claim), context, std::move(done)});
}

void fake_store::watch(spi::claim_ptr claim, const spi::blocked& seen,
                       const spi::op_context& context, spi::completion<spi::armed> done) {
  if (closed) return done(down());
  log.push_back("watch " + name_of(*claim));
  last_seen = seen;
  watches.push_back({std::move(claim), context, std::move(done)});
}

void fake_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                       spi::completion<spi::departure> done) {
  if (closed) return done(down());
  log.push_back((context.unanswered ? "leave+tombstone " : "leave ") + name_of(*claim));
  leaves.push_back({std::move(claim), context, std::move(done)});
}

void fake_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                       spi::completion<std::vector<spi::renewal>> done) {
  if (closed) return done(down());
  std::string line = "renew";
  for (const spi::claim_ptr& claim : claims) line += " " + name_of(*claim);
  log.push_back(std::move(line));
  renewals.push_back({std::move(claims), context, std::move(done)});
}

void fake_store::change(spi::claim_ptr claim, spi::mode, const spi::op_context& context,
                        spi::completion<spi::granted> done) {
  if (closed) return done(down());
  log.push_back("change " + name_of(*claim));
  changes.push_back({std::move(claim), context, std::move(done)});
}

void fake_store::transfer(const spi::claim_id& from, spi::claim_ptr to,
                          std::shared_ptr<spi::wakeup> wakeup, const spi::op_context& context,
                          spi::completion<spi::granted> done) {
  if (closed) return done(down());
  spi::claim before;
  before.id = from;
  const std::string held = name_of(before);
  const std::string name = name_of(*to);
  if (wakeup) wakeups_[name] = std::move(wakeup);
  log.push_back((context.unanswered ? "transfer+tombstone " : "transfer ") + held + " " + name);
  transfers.push_back({std::move(to), context, std::move(done)});
}

void fake_store::close() noexcept {
  closed = true;
  while (answer_attempt(down()) || answer_watch(down()) || answer_leave(down()) ||
         answer_renewal(down()) || answer_change(down()) || answer_transfer(down())) {
  }
  wakeups_.clear();
}

void fake_store::inspect(const spi::resource_id&, const spi::op_context&,
                         spi::completion<spi::resource_state> done) {
  done(not_faked());
}
void fake_store::list(const std::string&, const std::string&, const spi::op_context&,
                      spi::completion<std::vector<spi::resource_summary>> done) {
  done(not_faked());
}
void fake_store::revoke(const spi::resource_id&, spi::revocation, const std::string&,
                        const spi::op_context&, spi::completion<std::vector<spi::holder>> done) {
  done(not_faked());
}
result<std::unique_ptr<spi::subscription>> fake_store::observe(
    const spi::resource_id&, spi::function<void(const spi::store_event&)>) {
  return not_faked();
}
void fake_store::change_latch(const spi::resource_id&, const spi::latch_change&,
                              const spi::op_context&, spi::completion<spi::latch_state> done) {
  done(not_faked());
}
void fake_store::read_latch(const spi::resource_id&, const spi::op_context&,
                            spi::completion<spi::latch_state> done) {
  done(not_faked());
}
result<std::unique_ptr<spi::subscription>> fake_store::watch_latch(const spi::resource_id&,
                                                                   spi::latch_watch) {
  return not_faked();
}
void fake_store::probe(const spi::op_context&, spi::completion<std::vector<spi::check>> done) {
  done(not_faked());
}

}  // namespace holdfast::test
