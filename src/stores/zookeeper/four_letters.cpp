#include "stores/zookeeper/four_letters.hpp"

#include <coroutine>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::zookeeper {

namespace {

constexpr std::size_t answer_limit = 65'536;

// One question under way. Thread-safe; answers once.
class word_call final : public net::stream_user, public std::enable_shared_from_this<word_call> {
 public:
  word_call(net::network net, std::string word) : net_(std::move(net)), word_(std::move(word)) {}

  void start(const net::target& where, std::shared_ptr<const net::tls_context> tls,
             time_point deadline, spi::completion<std::string> done) {
    {
      const std::scoped_lock lock(mutex_);
      done_ = std::move(done);
      timer_ = net_.reactor->at(deadline, [self = shared_from_this()] {
        self->finish(failure(errc::unavailable, "no answer in time"));
      });
    }
    net::connector::start(net_, where, std::move(tls), deadline,
                          [self = shared_from_this()](auto made) {
                            if (!made) return self->finish(tl::unexpected(made.error()));
                            self->connected(std::move(*made));
                          });
  }

  void received(std::string_view bytes) override {
    const std::scoped_lock lock(mutex_);
    if (text_.size() < answer_limit) text_ += bytes;
  }
  void ended(const error&) override {
    std::string text;
    {
      const std::scoped_lock lock(mutex_);
      text = text_;
    }
    finish(std::move(text));
  }

 private:
  void connected(std::shared_ptr<net::stream> made) {
    {
      const std::scoped_lock lock(mutex_);
      stream_ = made;
    }
    made->start(weak_from_this());
    made->queue(word_);
    made->flush();
  }
  void finish(result<std::string> answer) {
    std::unique_lock lock(mutex_);
    auto done = std::exchange(done_, nullptr);
    const auto open = std::exchange(stream_, nullptr);
    const auto timer = timer_;
    lock.unlock();
    net_.reactor->cancel(timer);
    if (open != nullptr) open->close();
    if (done) done(std::move(answer));
  }

  const net::network net_;
  const std::string word_;
  std::mutex mutex_;
  spi::completion<std::string> done_;    // guarded by mutex_
  std::string text_;                     // guarded by mutex_
  std::shared_ptr<net::stream> stream_;  // guarded by mutex_
  spi::runtime::timer_id timer_ = 0;     // guarded by mutex_
};

struct word_wait {
  std::shared_ptr<word_call> call;
  net::target where;
  std::shared_ptr<const net::tls_context> tls;
  time_point deadline;
  std::optional<result<std::string>> answer{};

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> then) {
    const auto kept = call;  // this may end before start() returns
    kept->start(where, tls, deadline, [this, then](result<std::string> text) {
      answer.emplace(std::move(text));
      then.resume();
    });
  }
  result<std::string> await_resume() { return std::move(*answer); }
};

}  // namespace

task<result<std::string>> ask_word(net::network net, net::target where,
                                   std::shared_ptr<const net::tls_context> tls, std::string word,
                                   time_point deadline) {
  word_wait wait{std::make_shared<word_call>(std::move(net), std::move(word)), std::move(where),
                 std::move(tls), deadline};
  co_return co_await wait;
}

}  // namespace holdfast::zookeeper
