// The memory store: locks among the threads and clients of one process, by the same rules as every
// other engine. The contract tests hold the others to its behaviour.
#pragma once

#include "stores/memory/hub.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <atomic>
#include <memory>

namespace holdfast::memory {

// Thread-safe. Every completion is called before the call returns, after the pushes that it caused.
class memory_store : public spi::store {
 public:
  memory_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<hub> server);
  ~memory_store() override;
  memory_store(const memory_store&) = delete;
  memory_store& operator=(const memory_store&) = delete;

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
  void transfer(const spi::claim_id& from, spi::claim_ptr to, std::shared_ptr<spi::wakeup> wakeup,
                const spi::op_context& context, spi::completion<spi::granted> done) override;
  void raise(spi::claim_ptr claim, fence_token fence, const spi::op_context& context,
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
  // Which hub this is, for a quorum that lists one twice.
  [[nodiscard]] std::uint64_t identity() const noexcept;
  // Runs the verb as one step of the hub and completes; cancelled once closed.
  template <class T, class Verb>
  void answer(spi::completion<T>& done, Verb&& verb);

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<hub> hub_;
  const process_id process_;
  const spi::caps caps_;
  std::atomic<bool> closed_{false};
};

// memory: has claims of its own; memory:NAME shares them with all clients of this process that
// open the same NAME, at the same time or later. invalid: a host, or options; overloaded: too many
// names.
result<std::shared_ptr<spi::store>> open_memory(const spi::url& url,
                                                std::shared_ptr<spi::runtime> runtime);

}  // namespace holdfast::memory
