// A store that forwards every verb to another one: a base for stores that change a verb or two.
#pragma once

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::stores {

// As thread-safe as the store that it wraps.
class forwarding_store : public spi::store {
 public:
  explicit forwarding_store(std::shared_ptr<spi::store> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] const spi::caps& caps() const noexcept override { return inner_->caps(); }

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override {
    inner_->attempt(std::move(claim), std::move(wakeup), context, std::move(done));
  }
  void watch(spi::claim_ptr claim, const spi::blocked& seen, const spi::op_context& context,
             spi::completion<spi::armed> done) override {
    inner_->watch(std::move(claim), seen, context, std::move(done));
  }
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override {
    inner_->leave(std::move(claim), context, std::move(done));
  }
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override {
    inner_->renew(std::move(claims), context, std::move(done));
  }
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) override {
    inner_->change(std::move(claim), to, context, std::move(done));
  }
  void transfer(const spi::claim_id& from, spi::claim_ptr to, std::shared_ptr<spi::wakeup> wakeup,
                const spi::op_context& context, spi::completion<spi::granted> done) override {
    inner_->transfer(from, std::move(to), std::move(wakeup), context, std::move(done));
  }
  void raise(spi::claim_ptr claim, fence_token fence, const spi::op_context& context,
             spi::completion<spi::granted> done) override {
    inner_->raise(std::move(claim), fence, context, std::move(done));
  }

  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) override {
    inner_->inspect(resource, context, std::move(done));
  }
  void list(const std::string& space, const std::string& prefix, const spi::op_context& context,
            spi::completion<std::vector<spi::resource_summary>> done) override {
    inner_->list(space, prefix, context, std::move(done));
  }
  void revoke(const spi::resource_id& resource, spi::revocation how, const std::string& claim,
              const spi::op_context& context,
              spi::completion<std::vector<spi::holder>> done) override {
    inner_->revoke(resource, how, claim, context, std::move(done));
  }
  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource,
      spi::function<void(const spi::store_event&)> sink) override {
    return inner_->observe(resource, std::move(sink));
  }

  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context,
                    spi::completion<spi::latch_state> done) override {
    inner_->change_latch(resource, change, context, std::move(done));
  }
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) override {
    inner_->read_latch(resource, context, std::move(done));
  }
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) override {
    return inner_->watch_latch(resource, std::move(on_change));
  }

  void probe(const spi::op_context& context,
             spi::completion<std::vector<spi::check>> done) override {
    inner_->probe(context, std::move(done));
  }
  [[nodiscard]] int life_descriptor() const noexcept override { return inner_->life_descriptor(); }
  bool report_to(spi::reach_sink sink) override { return inner_->report_to(std::move(sink)); }
  void close() noexcept override { inner_->close(); }

 protected:
  [[nodiscard]] const std::shared_ptr<spi::store>& inner() const noexcept { return inner_; }

 private:
  const std::shared_ptr<spi::store> inner_;
};

}  // namespace holdfast::stores
