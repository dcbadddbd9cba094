// The verbs of strategy=row, but for the attempt: row_attempt.cpp.
#include "stores/postgresql/row_store.hpp"

#include "stores/sql/names.hpp"

#include <atomic>
#include <utility>

namespace holdfast::postgresql {

namespace {

constexpr duration give_back_limit = std::chrono::seconds(5);  // for one call

}  // namespace

row_store::row_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : tied_store(std::move(reactor), std::move(options)) {}

std::shared_ptr<row_store> row_store::make(std::shared_ptr<spi::reactor> reactor,
                                           server_options options) {
  std::shared_ptr<row_store> made(new row_store(std::move(reactor), std::move(options)));
  made->set_up();
  made->pool_ = std::make_shared<row_pool>(made->net_, made->options_, made->hearing_->process());
  made->desk_->start();
  return made;
}

row_store::~row_store() {
  if (!guard_.forked()) close();
}

void row_store::close_carriers() noexcept { pool_->close(); }

void row_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                      spi::completion<spi::departure> done) {
  if (!usable()) return done(refusal());
  {
    const std::lock_guard lock(mutex_);
    const auto found = wishes_.find(claim->id);
    if (found != wishes_.end()) {
      found->second->after.emplace_back(
          [self = std::static_pointer_cast<row_store>(shared_from_this()), claim, context,
           done = std::move(done)]() mutable { self->leave(claim, context, std::move(done)); });
      return;
    }
  }
  run_out_->forget(claim->id);
  auto finish = [self = std::static_pointer_cast<row_store>(shared_from_this()), id = claim->id,
                 done = std::move(done)](result<spi::departure> answer) mutable {
    self->hearing_->bells().remove(id);
    done(std::move(answer));
  };
  if (const auto in = pool_->claim(claim->id)) {
    return end(in, *claim, duration{0}, context.deadline, std::move(finish));
  }
  arguments with;
  with.bytes(sql::key_of(claim->resource)).bytes(sql::bytes_of(claim->id));
  desk_->send(statement::row_leave, std::move(with), context.deadline,
              [finish = std::move(finish)](result<sql::rows> rows) mutable {
                if (!rows) return finish(tl::unexpected(std::move(rows.error())));
                finish(sql::to_departure(*rows));
              });
}

// The seat is busy: its transaction ends with the claim, in one round trip.
void row_store::end(const std::shared_ptr<seat>& in, const spi::claim& claim, duration delay,
                    time_point deadline, spi::completion<spi::departure> done) {
  struct ending {
    result<spi::departure> answer = failure(errc::unavailable, "no answer");
    spi::completion<spi::departure> done;
  };
  in->ties->untie(claim.id);
  const std::string key = sql::key_of(claim.resource);
  {
    const std::lock_guard lock(mutex_);
    ++giving_[key].count;
  }
  auto what = std::make_shared<ending>();
  what->done = std::move(done);
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim.id));
  with.number(sql::microseconds(delay)).home();
  in->over->send(
      statement::row_end, std::move(with), deadline, [what](const result<sql::rows>& rows) {
        what->answer =
            rows ? sql::to_departure(*rows) : result<spi::departure>(tl::unexpected(rows.error()));
      });
  in->over->send(statement::commit, {}, deadline,
                 [self = std::static_pointer_cast<row_store>(shared_from_this()), in, what,
                  key](const result<sql::rows>& rows) {
                   // Without an answer the transaction may be open still: its connection ends.
                   if (!rows || !what->answer) in->over->reset();
                   self->pool_->give(in);
                   self->given(key);
                   if (!rows) return what->done(tl::unexpected(rows.error()));
                   what->done(std::move(what->answer));
                 });
}

void row_store::given(const std::string& key) {
  std::vector<spi::task> then;
  {
    const std::lock_guard lock(mutex_);
    const auto found = giving_.find(key);
    if (--found->second.count > 0) return;
    then.swap(found->second.then);
    giving_.erase(found);
  }
  for (spi::task& each : then) each();
}

void row_store::let_go(const spi::claim_id& claim) {
  const auto in = pool_->find(claim);
  const spi::claim_ptr held = in == nullptr ? nullptr : in->ties->find(claim);
  if (held != nullptr) give_back(*held, duration{0});
}

void row_store::give_back(const spi::claim& claim, duration delay) {
  const auto in = pool_->claim(claim.id);
  if (in == nullptr) return;
  end(in, claim, delay, reactor_->now() + give_back_limit, [](const result<spi::departure>&) {});
}

// Several calls, one answer: of claims whose call failed nothing is known.
struct row_store::roll {
  std::vector<spi::claim_ptr> claims;
  std::vector<spi::renewal> answers;  // each written by one call
  std::vector<spi::claim_id> may_be_free;
  time_point sent;
  std::atomic<std::size_t> missing{1};
  spi::completion<std::vector<spi::renewal>> done;
};

void row_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                      spi::completion<std::vector<spi::renewal>> done) {
  if (!usable()) return done(refusal());
  auto all = std::make_shared<roll>();
  all->answers.resize(claims.size());
  all->claims = std::move(claims);
  all->sent = reactor_->now();
  all->done = std::move(done);
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < all->claims.size(); ++i) {
    if (const auto in = pool_->find(all->claims[i]->id)) {
      beat(all, i, in, context.deadline);
    } else {
      waiting.push_back(i);
    }
  }
  if (!waiting.empty()) refresh(all, std::move(waiting), context.deadline);
  arrived(*all);
}

void row_store::arrived(roll& all) {
  if (all.missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto may_be_free = std::move(all.may_be_free);
  all.done(std::move(all.answers));
  for (const spi::claim_id& each : may_be_free) {
    sql::push freed;
    freed.claim = each;
    hearing_->bells().ring(freed);
  }
}

void row_store::beat(const std::shared_ptr<roll>& all, std::size_t index,
                     const std::shared_ptr<seat>& in, time_point deadline) {
  all->missing.fetch_add(1, std::memory_order_relaxed);
  arguments with;
  with.bytes(sql::bytes_of(all->claims[index]->id)).home();
  in->over->send(statement::row_beat, std::move(with), deadline,
                 [self = std::static_pointer_cast<row_store>(shared_from_this()), all,
                  index](const result<sql::rows>& rows) {
                   const auto answer =
                       rows ? sql::to_renewals(*rows, 1)
                            : result<std::vector<spi::renewal>>(tl::unexpected(rows.error()));
                   if (answer) {
                     all->answers[index] = answer->front();
                     if (answer->front().state == spi::hold_state::renewed) {
                       self->run_out_->prove(all->claims[index], all->sent);
                     } else if (answer->front().state == spi::hold_state::lost) {
                       self->let_go(all->claims[index]->id);
                     }
                   }
                   self->arrived(*all);
                 });
}

void row_store::refresh(const std::shared_ptr<roll>& all, std::vector<std::size_t> part,
                        time_point deadline) {
  all->missing.fetch_add(1, std::memory_order_relaxed);
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (const std::size_t index : part) {
    keys.push_back(sql::key_of(all->claims[index]->resource));
    ids.emplace_back(sql::bytes_of(all->claims[index]->id));
  }
  arguments with;
  with.list(keys).list(ids);
  desk_->send(statement::row_renew, std::move(with), deadline,
              [self = std::static_pointer_cast<row_store>(shared_from_this()), all,
               part = std::move(part)](const result<sql::rows>& rows) {
                const auto answers =
                    rows ? sql::to_renewals(*rows, part.size())
                         : result<std::vector<spi::renewal>>(tl::unexpected(rows.error()));
                for (std::size_t i = 0; answers && i < part.size(); ++i) {
                  all->answers[part[i]] = (*answers)[i];
                  if ((*rows)[i].starts_with("w ") && (*rows)[i].ends_with(" 1")) {
                    all->may_be_free.push_back(all->claims[part[i]]->id);
                  }
                }
                self->arrived(*all);
              });
}

}  // namespace holdfast::postgresql
