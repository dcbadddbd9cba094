
#include "stores/redis/voter.hpp"

#include "stores/redis/client/reply.hpp"
#include "stores/redis/wire.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

namespace holdfast::redis {

namespace {

// Each takes the server a few microseconds.
constexpr std::size_t claims_at_once = 64;

spi::caps capabilities(const spi::caps& inner) {
  spi::caps caps = inner;
  caps.can_vote = true;
  return caps;
}

}  // namespace

voter::voter(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers,
             std::shared_ptr<native_store> inner, const voting& how)
    : forwarding_store(std::move(inner)),
      runtime_(std::move(runtime)),
      topology_(std::move(servers)),
      scripts_(scripts::make(topology_->flavour())),
      sender_{new_process_name(*runtime_), std::chrono::seconds(2)},
      board_(std::make_shared<switchboard>(runtime_, topology_, sender_.process)),
      caps_(capabilities(this->inner()->caps())),
      longest_(std::to_string(std::chrono::ceil<microseconds>(how.longest_ttl).count())),
      keeps_(how.keeps ? "1" : "0") {}

void voter::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                    const spi::op_context& context, spi::completion<spi::outcome> done) {
  const place where = place_of(claim->resource);
  board_->connect(where.partition, claim->id, std::move(wakeup));
  const std::string mark = observed_key(where.partition);
  const std::string born = born_key();
  const std::string bytes =
      claim_bytes(*claim, sender_, queueing::forbidden, times_.latest(context.deadline));
  const std::string proposed = std::to_string(claim->proposed_fence.value_or(0));
  const std::array<std::string_view, 3> keys{where.state, mark, born};
  const std::array<std::string_view, 5> words{bytes, where.written, proposed, longest_, keeps_};
  const time_point sent = runtime_->now();
  topology_->run(where.partition, scripts_->vote, keys, words, context,
                 [self = shared_from_this(), claim, sent,
                  done = std::move(done)](result<reply> answer) mutable {
                   auto outcome = self->vote_of(*claim, sent, answer);
                   const bool unknown = !outcome && (outcome.error() == errc::unavailable ||
                                                     outcome.error() == errc::lost);
                   const bool granted = outcome && std::holds_alternative<spi::granted>(*outcome);
                   // It is not there, so nothing of it can be revoked.
                   if (!granted && !unknown) {
                     self->board_->disconnect(partition_of(claim->resource), claim->id);
                   }
                   done(std::move(outcome));
                 });
}

result<spi::outcome> voter::vote_of(const spi::claim& claim, time_point sent,
                                    const result<reply>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  if (answer->is_error()) {
    return tl::unexpected(to_error(*answer, "vote", topology_->where(), {"~holdfast:*", "+info"}));
  }
  const auto found = answer_of(*answer);
  if (!found) return tl::unexpected(found.error());
  times_.learn(sent, runtime_->now(), found->at);
  auto outcome = outcome_of(*found, claim);
  auto* grant = outcome ? std::get_if<spi::granted>(&*outcome) : nullptr;
  if (grant != nullptr) {
    grant->counts_after = microseconds(found->number(5));
    grant->server = server_number(found->text(6));
  }
  return outcome;
}

void voter::raise(spi::claim_ptr claim, fence_token fence, const spi::op_context& context,
                  spi::completion<spi::granted> done) {
  raise_all({{std::move(claim), fence}}, context.deadline,
            [done = std::move(done)](const result<votes>& answer) mutable {
              if (!answer) return done(tl::unexpected(answer.error()));
              done(grant_of(answer->of_claims.front()));
            });
}

void voter::raise_all(const raised& those, time_point deadline, spi::completion<votes> done) {
  const partition where = those.empty() ? 0 : partition_of(those.front().first->resource);
  std::vector<std::string> kept;
  for (const auto& [claim, fence] : those) kept.push_back(place_of(claim->resource).state);
  kept.push_back(observed_key(where));
  kept.push_back(born_key());
  const std::size_t keys = kept.size();
  for (const auto& [claim, fence] : those) {
    kept.push_back(claim_bytes(*claim, sender_, queueing::forbidden, std::nullopt));
  }
  kept.push_back(longest_);
  kept.push_back(keeps_);
  for (const auto& [claim, fence] : those) kept.push_back(std::to_string(fence.value()));
  const std::vector<std::string_view> words(kept.begin(), kept.end());
  const std::span all(words);
  const time_point sent = runtime_->now();
  topology_->run(where, scripts_->renew, all.first(keys), all.subspan(keys), deadline,
                 [self = shared_from_this(), count = those.size(), sent,
                  done = std::move(done)](result<reply> answer) mutable {
                   if (!answer) return done(tl::unexpected(std::move(answer.error())));
                   if (answer->is_error()) {
                     return done(tl::unexpected(to_error(*answer, "raise", self->topology_->where(),
                                                         {"~holdfast:*", "+info"})));
                   }
                   const auto& fields = answer->elements;
                   if (fields.size() < 3 + count) {
                     return done(failure(errc::unavailable, "unexpected reply"));
                   }
                   const auto at = to_server_time(fields[0].integer);
                   self->times_.learn(sent, self->runtime_->now(), at);
                   votes all_votes{{}, microseconds(fields[1 + count].integer)};
                   for (std::size_t i = 0; i < count; ++i) {
                     spi::renewal one = renewal_of(fields[1 + i], at);
                     one.grant.counts_after = all_votes.counts_after;
                     one.grant.server = server_number(fields[2 + count].words());
                     all_votes.of_claims.push_back(std::move(one));
                   }
                   done(std::move(all_votes));
                 });
}

void voter::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                  spi::completion<std::vector<spi::renewal>> done) {
  auto all = std::make_shared<renewing>(claims.size(), std::move(done));
  std::map<partition, std::vector<std::size_t>> partitions;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    partitions[partition_of(claims[i]->resource)].push_back(i);
  }
  for (const auto& [where, here] : partitions) {
    for (std::size_t from = 0; from < here.size(); from += claims_at_once) {
      const std::size_t count = std::min(claims_at_once, here.size() - from);
      std::vector<std::size_t> part(here.begin() + static_cast<std::ptrdiff_t>(from),
                                    here.begin() + static_cast<std::ptrdiff_t>(from + count));
      raised those;
      // Fence 0 raises nothing.
      for (const std::size_t i : part) those.emplace_back(claims[i], fence_token(0));
      all->missing.fetch_add(1, std::memory_order_relaxed);
      raise_all(those, context.deadline,
                [all, part = std::move(part)](const result<votes>& answer) {
                  for (std::size_t i = 0; answer && i < part.size(); ++i) {
                    all->answers[part[i]] = answer->of_claims[i];
                  }
                  all->arrived();
                });
    }
  }
  all->arrived();
}

void voter::probe(const spi::op_context& context, spi::completion<std::vector<spi::check>> done) {
  inner()->probe(context, [self = shared_from_this(), deadline = context.deadline,
                           done = std::move(done)](result<std::vector<spi::check>> found) mutable {
    if (!found) return done(std::move(found));
    self->raise_all(
        {}, deadline,
        [found = std::move(found), done = std::move(done)](const result<votes>& told) mutable {
          if (!told) {
            found->push_back({"vote", spi::check::status::warn,
                              "not known: " + told.error().message(), "see the other checks"});
          } else if (told->counts_after > duration{0}) {
            const auto seconds =
                std::chrono::ceil<std::chrono::seconds>(told->counts_after).count();
            found->push_back(
                {"vote", spi::check::status::warn,
                 "new, or has lost its state: its vote counts in " + std::to_string(seconds) +
                     " s, when nothing can be held any more "
                     "that it has forgotten",
                 "wait; until then the others must be a majority. Where every write is "
                 "on disk before it is answered, durable=yes"});
          } else {
            found->push_back({"vote", spi::check::status::ok, "counts", ""});
          }
          done(std::move(found));
        });
  });
}

}  // namespace holdfast::redis
