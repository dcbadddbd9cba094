// A store with an unreliable connection: what it wraps is real, but requests or answers get lost.
#pragma once

#include "stores/forwarding_store.hpp"

#include <holdfast/spi/runtime.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace holdfast::test {

enum class trouble : std::uint8_t {
  none,
  no_request,  // refused connection: the engine never hears of it
  no_answer,   // done, but nobody learns of it
  silence,     // not done, and no answer until the deadline
};

// Thread-safe. Trouble affects requests; pushes and events pass.
class lossy_store final : public stores::forwarding_store {
 public:
  lossy_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<spi::store> inner)
      : forwarding_store(std::move(inner)), runtime_(std::move(runtime)) {}

  void set(trouble now) { trouble_ = now; }
  // After `after` requests, the next `count` ones meet it; then all is well.
  void set(trouble now, int count, int after = 0) {
    left_ = count;
    after_ = after;
    trouble_ = now;
  }
  [[nodiscard]] int requests() const { return requests_.load(); }
  // Requests that met no trouble and are not answered yet: the answer arrives whatever is set
  // meanwhile.
  [[nodiscard]] int under_way() const { return under_way_->load(); }

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override {
    pass<spi::outcome>(context, std::move(done), [&](spi::completion<spi::outcome> answer) {
      inner()->attempt(std::move(claim), std::move(wakeup), context, std::move(answer));
    });
  }
  void watch(spi::claim_ptr claim, const spi::blocked& seen, const spi::op_context& context,
             spi::completion<spi::armed> done) override {
    pass<spi::armed>(context, std::move(done), [&](spi::completion<spi::armed> answer) {
      inner()->watch(std::move(claim), seen, context, std::move(answer));
    });
  }
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override {
    pass<spi::departure>(context, std::move(done), [&](spi::completion<spi::departure> answer) {
      inner()->leave(std::move(claim), context, std::move(answer));
    });
  }
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override {
    using answers = std::vector<spi::renewal>;
    pass<answers>(context, std::move(done), [&](spi::completion<answers> answer) {
      inner()->renew(std::move(claims), context, std::move(answer));
    });
  }
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) override {
    pass<spi::granted>(context, std::move(done), [&](spi::completion<spi::granted> answer) {
      inner()->change(std::move(claim), to, context, std::move(answer));
    });
  }
  void transfer(const spi::claim_id& from, spi::claim_ptr to, std::shared_ptr<spi::wakeup> wakeup,
                const spi::op_context& context, spi::completion<spi::granted> done) override {
    pass<spi::granted>(context, std::move(done), [&](spi::completion<spi::granted> answer) {
      inner()->transfer(from, std::move(to), std::move(wakeup), context, std::move(answer));
    });
  }
  void raise(spi::claim_ptr claim, fence_token fence, const spi::op_context& context,
             spi::completion<spi::granted> done) override {
    pass<spi::granted>(context, std::move(done), [&](spi::completion<spi::granted> answer) {
      inner()->raise(std::move(claim), fence, context, std::move(answer));
    });
  }
  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) override {
    using state = spi::resource_state;
    pass<state>(context, std::move(done), [&](spi::completion<state> answer) {
      inner()->inspect(resource, context, std::move(answer));
    });
  }
  void list(const std::string& space, const std::string& prefix, const spi::op_context& context,
            spi::completion<std::vector<spi::resource_summary>> done) override {
    using summary = std::vector<spi::resource_summary>;
    pass<summary>(context, std::move(done), [&](spi::completion<summary> answer) {
      inner()->list(space, prefix, context, std::move(answer));
    });
  }
  void revoke(const spi::resource_id& resource, spi::revocation how, const std::string& claim,
              const spi::op_context& context,
              spi::completion<std::vector<spi::holder>> done) override {
    using holders = std::vector<spi::holder>;
    pass<holders>(context, std::move(done), [&](spi::completion<holders> answer) {
      inner()->revoke(resource, how, claim, context, std::move(answer));
    });
  }
  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context,
                    spi::completion<spi::latch_state> done) override {
    pass<spi::latch_state>(context, std::move(done), [&](spi::completion<spi::latch_state> answer) {
      inner()->change_latch(resource, change, context, std::move(answer));
    });
  }
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) override {
    pass<spi::latch_state>(context, std::move(done), [&](spi::completion<spi::latch_state> answer) {
      inner()->read_latch(resource, context, std::move(answer));
    });
  }
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) override {
    if (trouble_ != trouble::none) return failure(errc::unavailable, "in trouble");
    return inner()->watch_latch(resource, std::move(on_change));
  }

 private:
  trouble meet() {
    requests_.fetch_add(1);
    const trouble met = trouble_;
    if (after_ > 0 && after_.fetch_sub(1) > 0) return trouble::none;
    if (met != trouble::none && left_ > 0 && left_.fetch_sub(1) == 1) trouble_ = trouble::none;
    return met;
  }

  template <class T, class Send>
  void pass(const spi::op_context& context, spi::completion<T> done, Send&& send) {
    ++*under_way_;  // before it is known what it meets
    const trouble met = meet();
    if (met != trouble::none) --*under_way_;
    switch (met) {
      case trouble::none:
        return send(spi::completion<T>(
            [count = under_way_, done = std::move(done)](result<T> answer) mutable {
              done(std::move(answer));
              --*count;
            }));
      case trouble::no_request:
        return done(failure(errc::unavailable, "refused"));
      case trouble::no_answer:
        send(spi::completion<T>([](result<T>) {}));
        return done(failure(errc::unavailable, "cut off"));
      case trouble::silence:
        runtime_->at(context.deadline, [done = std::move(done)]() mutable {
          done(failure(errc::unavailable, "silence"));
        });
    }
  }

  const std::shared_ptr<spi::runtime> runtime_;
  std::atomic<trouble> trouble_{trouble::none};
  std::atomic<int> left_{0};
  std::atomic<int> after_{0};
  std::atomic<int> requests_{0};
  const std::shared_ptr<std::atomic<int>> under_way_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace holdfast::test
