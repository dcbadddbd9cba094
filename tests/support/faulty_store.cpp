#include "support/faulty_store.hpp"

#include "support/times.hpp"

#include <utility>

namespace holdfast::test {

namespace {

constexpr duration late_push = 3s;  // longer than an offer

template <class T>
result<T> none() {
  return failure(errc::unavailable, "fault");
}

}  // namespace

std::string_view to_string(verb which) noexcept {
  constexpr std::string_view names[] = {"attempt",  "leave",        "renew",      "change",
                                        "transfer", "change_latch", "read_latch", "push"};
  return names[static_cast<std::size_t>(which)];
}

std::string_view to_string(fault what) noexcept {
  constexpr std::string_view names[] = {"request_lost",     "answer_lost",  "answer_late",
                                        "closed_before",    "closed_after", "request_late",
                                        "request_very_late"};
  return names[static_cast<std::size_t>(what)];
}

std::ostream& operator<<(std::ostream& out, const fault_plan& plan) {
  return out << to_string(plan.where) << ' ' << plan.n << ": " << to_string(plan.what);
}

struct faulty_store::state {
  fault_plan plan;
  std::size_t calls = 0;

  bool strikes(verb which) { return which == plan.where && ++calls == plan.n; }
};

// Between the store and a claim: where pushes get lost.
class faulty_store::push_line final : public spi::wakeup {
 public:
  push_line(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<state> faults,
            std::shared_ptr<spi::wakeup> to)
      : runtime_(std::move(runtime)), faults_(std::move(faults)), to_(std::move(to)) {}

  void notify(std::optional<spi::granted> grant) noexcept override {
    if (!faults_->strikes(verb::push)) return to_->notify(grant);
    switch (faults_->plan.what) {
      case fault::request_lost:
        return;
      case fault::answer_late:
        runtime_->at(runtime_->now() + late_push, [to = to_, grant] { to->notify(grant); });
        return;
      default:
        to_->notify(grant);
        to_->notify(grant);
    }
  }
  void wanted() noexcept override { to_->wanted(); }
  void gone(const error& why) noexcept override { to_->gone(why); }

 private:
  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<state> faults_;
  const std::shared_ptr<spi::wakeup> to_;
};

faulty_store::faulty_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<spi::store> inner,
                           const fault_plan& plan)
    : forwarding_store(std::move(inner)),
      runtime_(std::move(runtime)),
      state_(std::make_shared<state>(state{plan})) {}

bool faulty_store::struck() const noexcept { return state_->calls >= state_->plan.n; }

template <class T, class Send>
void faulty_store::run(verb which, const spi::op_context& context, spi::completion<T> done,
                       Send send) {
  if (!state_->strikes(which)) return send(std::move(done));
  const auto nobody = [](const result<T>&) {};
  const auto fail_at_deadline = [&] {
    runtime_->at(context.deadline, [done = std::move(done)]() mutable { done(none<T>()); });
  };
  const auto fail_soon = [&] {
    runtime_->post([done = std::move(done)]() mutable { done(none<T>()); });
  };
  switch (state_->plan.what) {
    case fault::request_lost:
      return fail_at_deadline();
    case fault::answer_lost:
      send(nobody);
      return fail_at_deadline();
    case fault::answer_late:
      return send([runtime = runtime_, deadline = context.deadline,
                   done = std::move(done)](result<T> answer) mutable {
        runtime->at(deadline, [done = std::move(done), answer = std::move(answer)]() mutable {
          done(std::move(answer));
        });
      });
    case fault::closed_before:
      return fail_soon();
    case fault::closed_after:
      send(nobody);
      return fail_soon();
    case fault::request_late:
    case fault::request_very_late: {
      const duration late = state_->plan.what == fault::request_late ? 1s : 15s;
      runtime_->at(context.deadline + late,
                   [send = std::move(send), nobody]() mutable { send(nobody); });
      return fail_at_deadline();
    }
  }
}

void faulty_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                           const spi::op_context& context, spi::completion<spi::outcome> done) {
  auto line = std::make_shared<push_line>(runtime_, state_, std::move(wakeup));
  run(verb::attempt, context, std::move(done),
      [inner = inner(), claim = std::move(claim), line = std::move(line),
       context](spi::completion<spi::outcome> answer) {
        inner->attempt(claim, line, context, std::move(answer));
      });
}

void faulty_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                         spi::completion<spi::departure> done) {
  run(verb::leave, context, std::move(done),
      [inner = inner(), claim = std::move(claim), context](spi::completion<spi::departure> answer) {
        inner->leave(claim, context, std::move(answer));
      });
}

void faulty_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                         spi::completion<std::vector<spi::renewal>> done) {
  run(verb::renew, context, std::move(done),
      [inner = inner(), claims = std::move(claims),
       context](spi::completion<std::vector<spi::renewal>> answer) {
        inner->renew(claims, context, std::move(answer));
      });
}

void faulty_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                          spi::completion<spi::granted> done) {
  run(verb::change, context, std::move(done),
      [inner = inner(), claim = std::move(claim), to,
       context](spi::completion<spi::granted> answer) {
        inner->change(claim, to, context, std::move(answer));
      });
}

void faulty_store::transfer(const spi::claim_id& from, spi::claim_ptr to,
                            std::shared_ptr<spi::wakeup> wakeup, const spi::op_context& context,
                            spi::completion<spi::granted> done) {
  run(verb::transfer, context, std::move(done),
      [inner = inner(), from, to = std::move(to), wakeup = std::move(wakeup),
       context](spi::completion<spi::granted> answer) {
        inner->transfer(from, to, wakeup, context, std::move(answer));
      });
}

void faulty_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                                const spi::op_context& context,
                                spi::completion<spi::latch_state> done) {
  run(verb::change_latch, context, std::move(done),
      [inner = inner(), resource, change, context](spi::completion<spi::latch_state> answer) {
        inner->change_latch(resource, change, context, std::move(answer));
      });
}

void faulty_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                              spi::completion<spi::latch_state> done) {
  run(verb::read_latch, context, std::move(done),
      [inner = inner(), resource, context](spi::completion<spi::latch_state> answer) {
        inner->read_latch(resource, context, std::move(answer));
      });
}

}  // namespace holdfast::test
