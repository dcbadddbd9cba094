// dialect=simple: locks that other libraries take too, by SET NX PX and compare-and-delete on the
// plain name. A mutex only: the format has no room for more.
#pragma once

#include "stores/redis/scripts.hpp"
#include "stores/redis/server_times.hpp"
#include "stores/redis/topology.hpp"
#include "stores/redis/wire.hpp"

#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>
#include <string>
#include <vector>

namespace holdfast::redis {

// Thread-safe. Nobody is told when a lock becomes free: whoever waits asks again.
class simple_store final : public spi::store, public std::enable_shared_from_this<simple_store> {
 public:
  simple_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers);
  ~simple_store() override;
  simple_store(const simple_store&) = delete;
  simple_store& operator=(const simple_store&) = delete;

  [[nodiscard]] const spi::caps& caps() const noexcept override { return caps_; }

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void watch(spi::claim_ptr claim, const spi::blocked& seen, const spi::op_context& context,
             spi::completion<spi::armed> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) override;

  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) override;
  void list(const std::string& space, const std::string& prefix, const spi::op_context& context,
            spi::completion<std::vector<spi::resource_summary>> done) override;
  void revoke(const spi::resource_id& resource, spi::revocation how, const std::string& claim,
              const spi::op_context& context,
              spi::completion<std::vector<spi::holder>> done) override;
  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) override;

  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context,
                    spi::completion<spi::latch_state> done) override;
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) override;
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) override;

  void probe(const spi::op_context& context,
             spi::completion<std::vector<spi::check>> done) override;
  void close() noexcept override;

 private:
  using fields = std::vector<std::string>;

  template <class T, class Read>
  void ask(const spi::resource_id& resource, const script& what, const fields& keys,
           const fields& arguments, const char* verb, time_point deadline, spi::completion<T> done,
           Read read);

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<topology> topology_;
  const std::shared_ptr<const scripts> scripts_;
  const spi::caps caps_;
  server_times times_;
};

}  // namespace holdfast::redis
