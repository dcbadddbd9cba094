// Broken locks on etcd, with the program that comes with it.
#include "torture/controls/etcd.hpp"

#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"
#include "torture/controls/stage.hpp"

#include <csignal>
#include <filesystem>
#include <string>

namespace holdfast::torture::controls {

namespace {

// `etcdctl lock` with a command that reports when it holds the lock and keeps it until it may end.
class locked_command {
 public:
  locked_command(const test::etcd_server& server, const std::filesystem::path& folder, int number)
      : inside_(folder / ("inside" + std::to_string(number))),
        process_(server.ctl_words({"lock", "outlived", "--", "sh", "-c",
                                   "touch " + inside_.string() + "; until test -e " +
                                       (folder / "end").string() + "; do sleep 0.05; done"}),
                 folder / "log") {}

  [[nodiscard]] bool inside() const {
    return test::eventually([&] { return std::filesystem::exists(inside_); });
  }
  [[nodiscard]] bool alive() noexcept { return process_.alive(); }
  void wait() noexcept { process_.wait(); }

 private:
  std::filesystem::path inside_;
  test::child_process process_;
};

}  // namespace

run_record command_that_outlives_its_lease(servers& all) {
  constexpr std::size_t id_size = 16;
  const test::etcd_server& server = all.etcd();
  const test::temporary_folder folder;
  stage scene("etcd");
  const std::int32_t first = scene.asks(0);
  locked_command one(server, folder.path(), 1);
  if (!one.inside()) return scene.told();
  scene.granted(first);
  const std::string leases = server.ctl({"lease", "list", "-w", "simple"});
  server.ctl({"lease", "revoke", leases.substr(leases.find('\n') + 1, id_size)});
  const std::int32_t second = scene.asks(1);
  locked_command two(server, folder.path(), 2);
  const bool taken = two.inside();
  if (!one.alive()) scene.gives_up(first);
  if (taken) scene.granted(second);
  test::run_program({"touch", (folder.path() / "end").string()});
  one.wait();
  scene.releases(first);
  two.wait();
  scene.releases(second);
  return scene.told();
}

}  // namespace holdfast::torture::controls
