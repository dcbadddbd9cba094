#include "cli/help.hpp"

#include <array>

namespace holdfast::cli {

namespace {

constexpr std::string_view overview =
    R"help(holdfast: locks across processes and hosts, for scripts and cron jobs.

  holdfast run backup -- ./backup.sh             waits for the lock, runs, gives it back
  holdfast run --wait 0s backup -- ./backup.sh   skips (exit 124) if somebody has it
  holdfast show backup                           who has it, and who waits

Commands:
  run        take a lock, run a command, give it back
  elect      campaign, and run a command while leader
  multi run  take several locks, all or nothing, and run a command
  latch      set, count down, wait for or read a count-down latch
  ls         names that are held or waited for
  show       holders and waiters of a name
  revoke     end a lock safely: no further renewal
  release    take a lock away by force
  watch      a line per event
  doctor     check the engine and its settings
  demo       a flash sale, without and with locks
  bench      measure an engine: rate, latency, hand-off, fairness, cost
  torture    real clients, real faults, and a check of everything they saw

Every command has its own --help, with examples.

Options of all commands:
  --url URL            the engine; else $HOLDFAST_URL, else the embedded file
                       ${XDG_STATE_HOME:-$HOME/.local/state}/holdfast/holdfast.db
  --namespace NS       two namespaces never meet; else $HOLDFAST_NAMESPACE
  --password-file F    its first line is the engine's password; else the URL's,
                       else $HOLDFAST_PASSWORD
  --log-level L        off, error, warn (default), info or debug; to stderr
  --version, --help

Durations are written 250ms, 10s, 2m, 1h30m. Names are any UTF-8 text of 1 to 512
bytes without control characters; one that begins with '-' stands after --.
)help";

constexpr std::string_view run_help =
    R"help(holdfast run [options] NAME -- CMD ARGS...

Takes the lock NAME, runs CMD, and gives the lock back.

  holdfast run backup -- ./backup.sh               waits for ever
  holdfast run --wait 0s backup -- ./backup.sh     tries once; exit 124 if busy
  holdfast run --wait 1m --fair deploy -- make deploy
  holdfast run --shared catalogue -- ./report.sh   beside other readers
  holdfast run --permits 1 --max 4 gpu -- ./train  one of four
  holdfast run --at-least 5m nightly -- ./job      a short job, started twice, runs once

  --wait D            give up after D; 0s tries once (default: wait for ever)
  --ttl D             how long the engine keeps the lock without a sign of life, 100ms
                      to 24h (default 30s); renewed every third of it
  --grace D           how long before its lock ends CMD gets SIGTERM; SIGKILL follows
                      (default min(5s, ttl/4); less than ttl/2)
  --fair              first come, first served
  --shared            a reader: others with --shared may hold it too
  --permits N --max M N (default 1) of M permits: a semaphore
  --no-renew          take it once, for ttl; CMD is ended in time
  --at-least D        keep the lock until D after it was granted, if CMD ends sooner
  --lock-delay D      after an abnormal end the lock stays shut for D
  --busy-exit-code N  instead of 124

CMD gets HOLDFAST_NAME, HOLDFAST_FENCE and HOLDFAST_CLAIM. Exit codes: CMD's own;
128+n if it died of signal n; 127, 126 not found, not executable; 124 not granted in
time; 123 the lock was lost while CMD ran; 122 trouble with the engine; 2 usage.
)help";

constexpr std::string_view elect_help =
    R"help(holdfast elect [options] NAME -- CMD ARGS...

Campaigns for the leadership NAME, and runs CMD while leader. When CMD ends, resigns.

  holdfast elect scheduler -- ./scheduler          on every host: one of them runs it
  holdfast elect --id "$(hostname)" scheduler -- ./scheduler
  holdfast show scheduler                          the leader, and who comes next

  --id TEXT           who we are, for those who look (default host:pid)
  --wait D            give up after D (default: campaign for ever)
  --ttl D             how long a silent leader stays leader (default 30s)
  --grace D           as for run
  --lock-delay D      after an abnormal end nobody is leader for D
  --busy-exit-code N  instead of 124, with --wait

Environment and exit codes are those of run.
)help";

constexpr std::string_view multi_help =
    R"help(holdfast multi run [options] NAME NAME... -- CMD ARGS...

Takes all of the locks or none, in whatever order without deadlock, and runs CMD.

  holdfast multi run account/7 account/9 -- ./transfer 7 9
  holdfast multi run --wait 10s a b c -- ./job

Options, exit codes: as for run, without --shared, --permits and --max. HOLDFAST_NAME,
HOLDFAST_FENCE and HOLDFAST_CLAIM have a line per lock, in the order given.
)help";

constexpr std::string_view latch_help =
    R"help(holdfast latch NAME set N | down [N] [--id ID] | wait [--wait D] | count

A count-down latch: many wait until a count has gone down to zero.

  holdfast latch ready set 3                       one sets it
  holdfast latch ready down                        each of three, when it is ready
  holdfast latch ready down --id "$HOSTNAME"       counts once, however often it is sent
  holdfast latch ready wait --wait 5m              exit 124 if not at zero by then
  holdfast latch ready count                       a number, or unset

Exit 1: set on a latch that is not at zero, or down on one that is not set.
)help";

constexpr std::string_view ls_help =
    R"help(holdfast ls [PREFIX] [--json | --names]

Names that have holders or waiters, or stay shut after an abnormal end (--lock-delay).

  holdfast ls
  holdfast ls shop/ --json       [{"name":"shop/42","holders":1,"waiters":3}]
  holdfast ls --names            a name a line and nothing else, for a shell's loop
)help";

constexpr std::string_view show_help =
    R"help(holdfast show NAME [--json]

Holders of a name (id, mode, since, remaining ttl, fence, who) and its waiters in order;
whether it is free, or shut after an abnormal end (--lock-delay).

  holdfast show backup
  holdfast show backup --json | jq '.holders[0].payload'
)help";

constexpr std::string_view release_help =
    R"help(holdfast release NAME --force [--claim ID] [--yes]

Break-glass: takes the lock from its holder at once. Two may run until the holder
learns, at its next renewal (a third of its ttl) at the latest. The next holder's fence
is greater. Waiters stay, and the first of them is granted. Prefer revoke.

  holdfast release backup --force                  asks first, on a terminal
  holdfast release backup --force --yes            in a script
  holdfast release gpu --force --claim 3f2a...     one of several holders (see show)

Exit 1: nobody holds it.
)help";

constexpr std::string_view revoke_help =
    R"help(holdfast revoke NAME

Safe break-glass: the lock is not renewed any more, its holder is told, and nobody else
is granted before its lease has ended.

  holdfast revoke backup

Exit 1: nobody holds it.
)help";

constexpr std::string_view watch_help =
    R"help(holdfast watch [NAME] [--json] [--all]

A line per event, until interrupted: queued granted released expired withdrawn forced.

  holdfast watch backup
  holdfast watch --json | jq -c 'select(.event == "expired")'

  --json    JSON Lines
  --all     renewals too
)help";

constexpr std::string_view doctor_help =
    R"help(holdfast doctor [--json]

Checks the engine and its settings: a line per check, ok, warn or fail, with the remedy.
Exit 1 if one fails.

  holdfast doctor
  holdfast --url sqlite:/var/lib/shop/locks.db doctor
)help";

constexpr std::string_view demo_help =
    R"help(holdfast demo flash-sale [--buyers N] [--stock N] [--processes N] [--lock LIST]

Many buyers in many processes want the last items of a stock that is a plain file. Once
without a lock, which oversells; then with each kind of lock, which does not.

  holdfast demo flash-sale
  holdfast demo flash-sale --buyers 2000 --stock 100 --processes 8 --lock none,mutex

  --buyers N      buyers in all (default 1000); each waits at most 1s for the lock
  --stock N       items for sale (default 200)
  --processes N   processes that the buyers are in (default 4)
  --lock LIST     of none, mutex, fair, rw, semaphore (default: all of them)

Without --url and HOLDFAST_URL it uses an embedded store in a temporary folder. Exit 0
only if every run with a lock was exact.
)help";

constexpr std::string_view bench_help =
    R"help(holdfast bench [options]

Takes and gives back locks from many threads and processes, and measures: grants a
second, latency of acquire and release, hand-off from one holder to the next, fairness,
processor time, memory, segments and bytes. What cannot be measured is shown as "-".

  holdfast bench                                       one thread, its own lock
  holdfast --url redis://localhost bench --threads 64
  holdfast bench --threads 4 --processes 4 --locks same --mode fair --duration 10s
  holdfast bench --threads 16 --locks zipf --mode rw:90 --json | jq .acquire_us.p99

  --threads N     in each process, 1 to 1024 (default 1)
  --processes M   1 to 64 (default 1); each has one client
  --locks L       own: each thread its own (default); same: one for all; zipf: of 1000,
                  the n-th n times as seldom as the first
  --mode M        mutex (default), fair, rw:90 (so many in a hundred read),
                  semaphore:8 (so many permits)
  --hold D        how long each grant is held (default 0s)
  --duration D    100ms to 1h (default 3s); its first fifth, at most 500ms, warms up
  --json          one JSON document, with the whole histogram

Exit 122 if anything failed: then there are no figures.
)help";

constexpr std::string_view torture_help =
    R"help(holdfast torture [--start ENGINE | --url URL] [options]
holdfast torture check FILE
holdfast torture replay FILE

Client processes take locks and give them back, while they and the servers are stopped,
killed and cut off from each other. Everything they saw is recorded, and checked: never
two believers, growing fences, order, permits, no lost wake-up, nothing left behind.

  holdfast torture --start redis --duration 30s
  holdfast torture --url redis://localhost --faults pause-client,kill-client
  holdfast torture --start zookeeper --seed 7 --json run.json --report run.html
  holdfast torture check run.json            checks a stored history again
  holdfast torture replay run.json           the same faults at the same times

  --start ENGINE   start servers for it: embedded, redis, redis-sentinel, redis-cluster,
                   redlock, zookeeper, postgresql, postgresql-session, postgresql-row,
                   mariadb, mariadb-session, mariadb-row; else those at --url are used, to
                   which nothing is done but by their clients
  --clients N      client processes (default 6), with two threads each
  --duration D     how long (default 30s)
  --ttl D          of the locks (default 1s)
  --workload LIST  of mutex, fair, rw, semaphore, latch, multi, election (default: all
                   that the engine can do)
  --faults LIST    of pause-client, kill-client, pause-server, kill-server, partition,
                   delay, cut, clock-jump, failover, script-flush, disk-full; or none
                   (default: all that are possible there)
  --seed S         of the schedule (default: a new one, which is printed)
  --json FILE      keep the whole history there
  --report FILE    a page with a timeline of who held what when

Exit codes: 0 clean; 1 a violation, with the shortest part of the history that shows it;
3 inconclusive: too few grants, or a fault that never happened; 122 the run could not be
held; 2 usage.
)help";

struct entry {
  std::string_view topic;
  std::string_view text;
};

constexpr std::array entries{
    entry{"run", run_help},
    entry{"elect", elect_help},
    entry{"multi", multi_help},
    entry{"multi run", multi_help},
    entry{"latch", latch_help},
    entry{"ls", ls_help},
    entry{"show", show_help},
    entry{"release", release_help},
    entry{"revoke", revoke_help},
    entry{"watch", watch_help},
    entry{"doctor", doctor_help},
    entry{"demo", demo_help},
    entry{"demo flash-sale", demo_help},
    entry{"bench", bench_help},
    entry{"torture", torture_help},
};

}  // namespace

std::string help_about(std::string_view topic) {
  for (const entry& one : entries) {
    if (one.topic == topic) return std::string(one.text);
  }
  return std::string(overview);
}

}  // namespace holdfast::cli
