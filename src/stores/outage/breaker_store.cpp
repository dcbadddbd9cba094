#include "stores/outage/breaker_store.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::outage {

namespace {

// Nobody's name: it is only looked at.
const spi::resource_id nobodys{"", "holdfast breaker"};

}  // namespace

// What the answers say about the engine, and the looks at it while it does not answer. Thread-safe; no
// lock is held while the engine or who listens is called.
class breaker_store::lookout : public std::enable_shared_from_this<lookout> {
 public:
  lookout(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<spi::store> engine,
          const breaker_settings& settings)
      : runtime_(std::move(runtime)),
        engine_(std::move(engine)),
        settings_(settings),
        breaker_(settings.failures) {}

  [[nodiscard]] bool open() const noexcept { return breaker_.open(); }
  [[nodiscard]] bool over(const spi::op_context& context) const {
    return context.deadline <= runtime_->now();
  }

  // `why`: what an unanswered request said; none: there was an answer.
  void judge(const std::optional<error>& why) {
    if (!why) {
      if (breaker_.answered()) report(spi::reach::back, {});
      return;
    }
    remember(*why);
    if (breaker_.failed() && begins_look()) look();
  }

  [[nodiscard]] error refusal() const {
    const std::lock_guard lock(mutex_);
    return {spi::not_sent, engine_->caps().engine + " did not answer " +
                               std::to_string(breaker_.limit()) + " times in a row (" +
                               last_.detail + "), and is not asked until it does"};
  }

  void report_to(spi::reach_sink sink) {
    const std::lock_guard lock(mutex_);
    sink_ = std::make_shared<spi::reach_sink>(std::move(sink));
  }

  void close() noexcept {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (timer_) runtime_->cancel(*std::exchange(timer_, std::nullopt));
    sink_.reset();
  }

 private:
  void report(spi::reach now, const error& why) {
    std::shared_ptr<spi::reach_sink> sink;
    {
      const std::lock_guard lock(mutex_);
      sink = sink_;
    }
    if (sink && *sink) (*sink)(now, why);
  }

  void remember(const error& why) {
    const std::lock_guard lock(mutex_);
    last_ = why;
  }

  // False: one is under way, or nobody is interested any more.
  bool begins_look() {
    const std::lock_guard lock(mutex_);
    if (closed_ || looking_) return false;
    looking_ = true;
    return true;
  }

  void look_later() {
    const auto half = std::max<duration::rep>(1, settings_.pause.count() / 2);
    const duration pause(
        half + static_cast<duration::rep>(runtime_->random() % static_cast<std::uint64_t>(half)));
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    timer_ = runtime_->at(runtime_->now() + pause, [self = weak_from_this()] {
      if (const auto alive = self.lock()) alive->look();
    });
  }

  void look() {
    {
      const std::lock_guard lock(mutex_);
      timer_.reset();
      if (closed_) return;
    }
    const spi::op_context soon{.deadline = runtime_->now() + settings_.look_limit};
    engine_->inspect(nobodys, soon,
                     [self = weak_from_this()](const result<spi::resource_state>& answer) {
                       if (const auto alive = self.lock()) alive->looked(answer);
                     });
  }

  void looked(const result<spi::resource_state>& answer) {
    {
      // Before the state is read: whoever doubts from now on looks himself.
      const std::lock_guard lock(mutex_);
      looking_ = false;
    }
    if (answer || answer.error() != errc::unavailable) return judge(std::nullopt);
    remember(answer.error());
    if (breaker_.looked_in_vain()) report(spi::reach::lost, answer.error());
    if (!breaker_.closed() && begins_look()) look_later();
  }

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<spi::store> engine_;
  const breaker_settings settings_;
  breaker breaker_;

  mutable std::mutex mutex_;
  error last_;                                   // guarded by mutex_
  std::shared_ptr<spi::reach_sink> sink_;        // guarded by mutex_
  std::optional<spi::runtime::timer_id> timer_;  // guarded by mutex_
  bool looking_ = false;                         // guarded by mutex_: now, or by the timer
  bool closed_ = false;                          // guarded by mutex_
};

namespace {

template <class T>
std::optional<error> silence(const result<T>& answer) {
  if (answer || answer.error() != errc::unavailable) return std::nullopt;
  return answer.error();
}

// A batch of which nobody knows anything is no answer either.
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

// Not what a store may say by itself: that it is closed, that an option makes no sense, that it knows of no
// such claim.
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
// By a proof that may be older than the silence.
bool is_from_engine(const result<std::vector<spi::renewal>>& /*answer*/) { return false; }

}  // namespace

breaker_store::breaker_store(std::shared_ptr<spi::runtime> runtime,
                             std::shared_ptr<spi::store> inner, const breaker_settings& settings)
    : forwarding_store(inner),
      lookout_(std::make_shared<lookout>(std::move(runtime), std::move(inner), settings)) {}

breaker_store::~breaker_store() { lookout_->close(); }

bool breaker_store::open() const noexcept { return lookout_->open(); }

// Judged before it is passed on: whoever acts on the answer finds the breaker as the answer left it.
template <class T>
spi::completion<T> breaker_store::judged(spi::completion<T> done) const {
  return [lookout = lookout_, done = std::move(done)](result<T> answer) mutable {
    const auto why = silence(answer);
    if (why || is_from_engine(answer)) lookout->judge(why);
    done(std::move(answer));
  };
}

void breaker_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                            const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (lookout_->open()) return done(tl::unexpected<error>(lookout_->refusal()));
  inner()->attempt(std::move(claim), std::move(wakeup), context, judged(std::move(done)));
}

void breaker_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                          spi::completion<spi::departure> done) {
  // Where there is no time left nothing is asked.
  if (lookout_->over(context)) return inner()->leave(std::move(claim), context, std::move(done));
  inner()->leave(std::move(claim), context, judged(std::move(done)));
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
  lookout_->report_to(std::move(sink));
  return true;
}

void breaker_store::close() noexcept {
  lookout_->close();
  forwarding_store::close();
}

}  // namespace holdfast::outage
