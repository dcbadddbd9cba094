// dialect=simple, python-redis-lock and redisson: locks that other libraries take too,
// in their format, under their names. What the format has no room for, or is not
// implemented here, is unsupported.
#pragma once

#include "stores/redis/foreign/formats.hpp"
#include "stores/redis/scripts.hpp"
#include "stores/redis/topology.hpp"
#include "stores/redis/wire.hpp"

#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::redis {

class event_feed;
class release_channels;

// Thread-safe. A waiter asks again when a release is published, if the format has a channel for
// that, and from time to time in any case.
class foreign_store final : public spi::store, public std::enable_shared_from_this<foreign_store> {
 public:
  foreign_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers,
                const foreign_format& format);
  ~foreign_store() override;
  foreign_store(const foreign_store&) = delete;
  foreign_store& operator=(const foreign_store&) = delete;

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

  // A member that lost its state recently counts at once, as in the libraries of this format.
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
  using fields = std::vector<std::string>;

  [[nodiscard]] tl::unexpected<error> unsupported(const std::string& what) const;
  [[nodiscard]] result<partition> place(const spi::resource_id& resource) const;
  [[nodiscard]] result<void> fits(const spi::claim& claim) const;

  // The holders, of any library.
  struct seen {
    spi::resource_state state;
    std::vector<std::string> owners;  // of the holders, in their order
    const foreign_form* form;
  };
  void look(const spi::resource_id& resource, const spi::op_context& context,
            spi::completion<seen> done);
  enum class leaving : std::uint8_t { releases, releases_or_waits_in_line, is_revoked };
  // tombstone: 0: none is kept.
  void end(const spi::resource_id& resource, const foreign_form& form, const std::string& owner,
           std::uint32_t permits, leaving how, const std::string& tombstone_key, duration tombstone,
           const spi::op_context& context, spi::completion<spi::departure> done);
  // fence: the least that the claim's must be; none: unchanged.
  void renew_one(const spi::claim& claim, std::optional<fence_token> fence,
                 const spi::op_context& context, spi::function<void(spi::renewal)> done);
  using heard = spi::function<void(const result<script_answer>&)>;
  void run(const spi::resource_id& resource, const foreign_form& form, const script& what,
           const fields& keys, const fields& arguments, const char* verb,
           const net::patience& until, heard done);
  template <class T, class Read>
  void ask(const spi::resource_id& resource, const foreign_form& form, const script& what,
           const fields& keys, const fields& arguments, const char* verb,
           const net::patience& until, spi::completion<T> done, Read read) {
    run(resource, form, what, keys, arguments, verb, until,
        [done = std::move(done),
         read = std::move(read)](const result<script_answer>& from) mutable {
          if (!from) return done(tl::unexpected(from.error()));
          done(read(*from));
        });
  }
  void ask_latch(const spi::resource_id& resource, const script& what, const fields& arguments,
                 const char* verb, const spi::op_context& context,
                 spi::completion<spi::latch_state> done);

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<topology> topology_;
  const foreign_format& format_;
  const std::shared_ptr<const scripts> scripts_;
  const spi::caps caps_;
  const std::shared_ptr<release_channels> releases_;
  const std::shared_ptr<event_feed> feed_;
  server_times times_;
};

}  // namespace holdfast::redis
