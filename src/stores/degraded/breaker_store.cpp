#include "stores/degraded/breaker_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::degraded {

namespace {

constexpr std::size_t most_changes = 3;  // not reported yet

// No claim uses this name: it is only probed.
const spi::resource_id nobodys{"", "holdfast breaker"};

// The error of an unanswered request; none if it was answered.
template <class T>
std::optional<error> silence(const result<T>& answer) {
  if (answer || answer.error() != errc::unavailable) return std::nullopt;
  return answer.error();
}

// A batch in which every claim is unknown counts as no answer either.
std::optional<error> silence(const result<std::vector<spi::renewal>>& answer) {
  if (!answer) return silence<std::vector<spi::renewal>>(answer);
  const bool dumb =
      !answer->empty() && std::all_of(answer->begin(), answer->end(), [](const auto& each) {
        return each.state == spi::hold_state::unknown;
      });
  if (!dumb) return std::nullopt;
  const std::string& why = answer->front().why;
  return error{errc::unavailable, why.empty() ? "a renewal without an answer" : why};
}

// Excludes what a store may answer without its engine: that it is closed, that an option is
// invalid, that it does not know the claim.
template <class T>
bool is_from_engine(const result<T>& answer) {
  if (answer) return true;
  const errc code = answer.error().code;
  return code != errc::cancelled && code != errc::invalid && code != errc::unsupported &&
         code != errc::lost;
}
bool is_from_engine(const result<spi::departure>& answer) {
  return is_from_engine<spi::departure>(answer) && answer != spi::departure::gone;
}
// It may rest on a proof that is older than the silence.
bool is_from_engine(const result<std::vector<spi::renewal>>& /*answer*/) { return false; }

}  // namespace

breaker_store::breaker_store(std::shared_ptr<spi::runtime> runtime,
                             std::shared_ptr<spi::store> inner, const breaker_settings& settings)
    : forwarding_store(std::move(inner)),
      runtime_(std::move(runtime)),
      settings_(settings),
      breaker_(settings.failures) {}

breaker_store::~breaker_store() { stop_looking(); }

// Counted before it is passed on: code that acts on the answer sees the breaker in the
// state that the answer caused.
template <class T>
spi::completion<T> breaker_store::judged(spi::completion<T> done) {
  return [self = shared_from_this(), done = std::move(done)](result<T> answer) mutable {
    const auto why = silence(answer);
    if (why || is_from_engine(answer)) self->judge(why);
    done(std::move(answer));
  };
}

void breaker_store::judge(const std::optional<error>& silence) {
  if (!silence) {
    if (breaker_.answered()) turn(spi::reach::back, {});
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    last_ = *silence;
  }
  if (breaker_.failed() && begins_look()) look();
}

error breaker_store::refusal() const {
  const std::lock_guard lock(mutex_);
  return {spi::not_sent, caps().engine + " did not answer " + std::to_string(breaker_.limit()) +
                             " times in a row (" + last_.detail +
                             "), and is not asked until it does"};
}

// Opens or closes the breaker, and reports it. While one change is being reported, those that
// follow are left to the thread that does so.
void breaker_store::turn(spi::reach to, const error& why) {
  std::unique_lock lock(mutex_);
  if (!(to == spi::reach::back ? breaker_.closes() : breaker_.looked_in_vain())) return;
  changes_.emplace_back(to, why);
  // They alternate: of many, two in the middle can be left out.
  if (changes_.size() > most_changes) changes_.erase(changes_.begin(), changes_.begin() + 2);
  if (std::exchange(reporting_, true)) return;
  while (!changes_.empty()) {
    const auto next = std::move(changes_.front());
    changes_.pop_front();
    const auto sink = sink_;
    lock.unlock();
    if (sink && *sink) (*sink)(next.first, next.second);
    lock.lock();
  }
  reporting_ = false;
}

// False: a look is under way already, or nobody is interested any more.
bool breaker_store::begins_look() {
  const std::lock_guard lock(mutex_);
  return !closed_ && !std::exchange(looking_, true);
}

void breaker_store::look_later() {
  const auto half = std::max<duration::rep>(1, settings_.pause.count() / 2);
  const duration pause(
      half + static_cast<duration::rep>(runtime_->random() % static_cast<std::uint64_t>(half)));
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  timer_ = runtime_->at(runtime_->now() + pause, [self = weak_from_this()] {
    if (const auto alive = self.lock()) alive->look();
  });
}

void breaker_store::look() {
  {
    const std::lock_guard lock(mutex_);
    timer_.reset();
    if (closed_) return;
  }
  const spi::op_context soon{.deadline = runtime_->now() + settings_.look_limit};
  inner()->inspect(nobodys, soon,
                   [self = weak_from_this()](const result<spi::resource_state>& answer) {
                     if (const auto alive = self.lock()) alive->looked(answer);
                   });
}

void breaker_store::looked(const result<spi::resource_state>& answer) {
  const auto why = silence(answer);
  {
    // Before the state is read: a caller that starts to doubt from now on starts its own look.
    const std::lock_guard lock(mutex_);
    looking_ = false;
    if (why) last_ = *why;
  }
  if (!why) return judge(std::nullopt);
  turn(spi::reach::lost, *why);
  if (!breaker_.closed() && begins_look()) look_later();
}

void breaker_store::stop_looking() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  if (timer_) runtime_->cancel(*std::exchange(timer_, std::nullopt));
  sink_.reset();
}

void breaker_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                            const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (open()) return done(tl::unexpected<error>(refusal()));
  inner()->attempt(std::move(claim), std::move(wakeup), context, judged(std::move(done)));
}

void breaker_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                          spi::completion<spi::departure> done) {
  // With no time left, the engine is not asked.
  const bool over = context.deadline <= runtime_->now();
  inner()->leave(std::move(claim), context, over ? std::move(done) : judged(std::move(done)));
}

void breaker_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                          spi::completion<std::vector<spi::renewal>> done) {
  inner()->renew(std::move(claims), context, judged(std::move(done)));
}

void breaker_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                           spi::completion<spi::granted> done) {
  inner()->change(std::move(claim), to, context, judged(std::move(done)));
}

void breaker_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                            spi::completion<spi::resource_state> done) {
  inner()->inspect(resource, context, judged(std::move(done)));
}

bool breaker_store::report_to(spi::reach_sink sink) {
  const std::lock_guard lock(mutex_);
  sink_ = std::make_shared<spi::reach_sink>(std::move(sink));
  return true;
}

void breaker_store::close() noexcept {
  stop_looking();
  forwarding_store::close();
}

}  // namespace holdfast::degraded
