#include "cli/commands.hpp"

#include <array>

namespace holdfast::cli {

namespace {

constexpr std::string_view overview =
    R"help(holdfast: distributed locks for scripts and cron jobs

  holdfast run backup -- ./backup.sh             wait for the lock, run, release it
  holdfast run --wait 0s backup -- ./backup.sh   skip (exit 124) if the lock is taken
  holdfast show backup                           who holds it, and who is waiting

Commands:
  run        hold a lock while a command runs
  acquire    take a lock for a pipeline: print a token, and leave the lock held
  renew      renew the lock of a token
  elect      run a command while this host is the leader
  multi run  hold several locks, all or nothing, while a command runs
  latch      set, count down, wait for or read a countdown latch
  ls         list names that are held or waited for
  show       show the holders and waiters of a name
  revoke     end a hold safely: stop its renewal
  release    release the lock of a token, or take a lock away by force
  watch      print a line per event
  doctor     check the engine and its settings
  serve      a live page, metrics for Prometheus, JSON and events, over HTTP
  redis-library  print the functions that the Redis store loads
  demo       sell out a shop, without and with locks
  bench      measure an engine: throughput, latency, hand-off, fairness, cost
  torture    real clients, real faults, and a check of everything they saw

Run 'holdfast COMMAND --help' for the options and examples of a command.

Options of all commands:
  --url URL            the engine to use (default: $HOLDFAST_URL, else the file
                       ${XDG_STATE_HOME:-$HOME/.local/state}/holdfast/holdfast.db)
  --namespace NS       keep names apart: names in different namespaces never conflict
                       (default: $HOLDFAST_NAMESPACE)
  --password-file F    read the engine's password from the first line of F; overrides
                       the URL's password, which overrides $HOLDFAST_PASSWORD
  --log-level L        off, error, warn (default), info or debug; logs go to stderr
  --version            print the version
  --help               print this help

Engines and their URLs:
  sqlite:/path/file.db                          a file, shared by processes of one host
  redis://[user[:password]@]host[:6379][/db]    Redis; with TLS: rediss://
                                                Valkey also as valkey://, valkeys://
  redis+sentinel://host:26379,host2/primary     Redis with Sentinel
  redis+cluster://host:6379,host2               Redis Cluster
  redlock://host1,host2,host3                   a majority of independent Redis servers
  zookeeper://host:2181,host2[/chroot]          ZooKeeper
  etcd://[user[:password]@]host:2379,host2[/prefix]
                                                etcd; with TLS: etcds://
  postgresql://[user@]host[:5432]/database      PostgreSQL, in libpq's syntax
  mariadb://[user@]host[:3306]/database         MariaDB; also spelled mysql://
  memory:                                       this process only; for bench and demo

Durations are written 250ms, 10s, 2m, 1h30m. Names are UTF-8 text of 1 to 512 bytes
without control characters; put names starting with '-' after --.
)help";

constexpr std::string_view run_help =
    R"help(holdfast run [options] NAME -- CMD ARGS...

Waits for the lock NAME, runs CMD while holding it, then releases it.

  holdfast run backup -- ./backup.sh               wait as long as it takes
  holdfast run --wait 0s backup -- ./backup.sh     try once; exit 124 if busy
  holdfast run --wait 0s --quiet --busy-exit-code 0 backup -- ./backup.sh    for cron
  holdfast run --wait 1m --fair deploy -- make deploy
  holdfast run --shared catalogue -- ./report.sh   alongside other readers
  holdfast run --permits 1 --max 4 gpu -- ./train  at most four at a time
  holdfast run --at-least 5m nightly -- ./job      once, even if hosts start it late
  holdfast run --at-most 1h nightly -- ./job       ended after an hour, should it hang

  --wait D            give up after D; 0s tries once (default: wait forever)
  --ttl D             how long the lock outlives a holder that fell silent, 100ms to 24h
                      (default 30s); it is renewed every third of that
  --grace D           send CMD SIGTERM this long before its lock ends; SIGKILL follows
                      (default: 5s or a quarter of the ttl; less than half the ttl)
  --fair              first come, first served
  --shared            hold it as a reader, together with others that use --shared
  --permits N --max M hold N (default 1) of M permits: a semaphore
  --no-renew          do not renew the lock; CMD is ended before the ttl is over
  --at-least D        hold the lock for at least D, even if CMD ends sooner
  --at-most D         hold the lock for at most D (at least 1s): CMD is ended before,
                      as if the lock was lost
  --lock-delay D      after an abnormal end, keep the lock blocked for D
  --busy-exit-code N  exit with N instead of 124 if the lock was not granted
  --quiet             print nothing if the lock was not granted
  --pass-url          let holdfast inside CMD use the same engine: CMD gets
                      HOLDFAST_URL, and the password through a file descriptor
  --pass-notify       let CMD tell systemd that it is ready, and be watched by it
                      (NotifyAccess=all); by default holdfast does that

CMD gets HOLDFAST_NAME, HOLDFAST_FENCE (the fencing token) and HOLDFAST_CLAIM.

Exit status: that of CMD; 128+n if CMD died of signal n; 127 or 126 if CMD was not
found or is not executable; 124 not granted in time; 123 the lock was lost while CMD
ran; 122 the engine failed; 2 usage.
)help";

constexpr std::string_view acquire_help =
    R"help(holdfast acquire [options] NAME

Waits for the lock NAME and ends, leaving it held: for pipelines whose steps are different
processes. Prints a token, by which any process renews or releases the lock. Between these
the lock lives on its ttl alone: no process keeps it, and none can lose it by its death.

  TOKEN=$(holdfast acquire deploy --ttl 10m)
  holdfast renew "$TOKEN"                          another 10 minutes
  holdfast release --token "$TOKEN"
  holdfast acquire deploy --ttl 10m --token-file t    the same without a secret in view
  holdfast renew --token-file t
  holdfast release --token-file t

The token is a secret: anyone who knows it can end the lock or take it over. On a command line
it can be seen in the list of processes; a file of --token-file is yours alone (0600).

  --ttl D             how long the lock is kept, 100ms to 24h (default 30s)
  --wait D            give up after D; 0s tries once (default: wait forever)
  --token-file F      write the token to F instead of printing it
  --json              print name, fencing token and ttl, and the token unless it is in F
  --fair, --shared, --permits N --max M, --lock-delay D, --busy-exit-code N, --quiet
                      as for run

Exit status: 124 not granted in time; 123 it was lost again; 122 the engine failed, or
cannot do it (ZooKeeper, redlock, strategy=session and row, dialect=simple and redisson;
--shared on etcd); 2 usage.
)help";

constexpr std::string_view renew_help =
    R"help(holdfast renew [--ttl D] TOKEN
holdfast renew [--ttl D] --token-file F

Renews the lock of a token that acquire printed: it ends a ttl from now.

  holdfast renew "$TOKEN"
  holdfast renew --ttl 1h --token-file t

  --ttl D           from now on (default: what it was acquired with)
  --token-file F    the first line of F is the token

Exit status: 123 the lock is gone: its time was over, it was released, taken over or
revoked; 122 the engine failed, and nobody knows whether it was renewed; 2 not a token,
or one of another engine or namespace.
)help";

constexpr std::string_view elect_help =
    R"help(holdfast elect [options] NAME -- CMD ARGS...

Runs for leader of NAME, and runs CMD while leader. When CMD ends, it resigns.

  holdfast elect scheduler -- ./scheduler          on every host: one of them runs it
  holdfast elect --id "$(hostname)" scheduler -- ./scheduler
  holdfast show scheduler                          the leader, and who comes next
  holdfast elect --listen 127.0.0.1:4040 scheduler -- ./scheduler
                                                   for load balancers and sidecars

  --id TEXT           the candidate's name in 'show' (default: host:pid)
  --wait D            give up after D (default: wait forever)
  --ttl D             how long a leader that fell silent stays leader (default 30s)
  --grace D           as for run
  --lock-delay D      after an abnormal end, have no leader for D
  --busy-exit-code N  exit with N instead of 124, with --wait
  --quiet             print nothing if not elected in time
  --pass-url          as for run
  --pass-notify       as for run
  --listen HOST:PORT  answer HTTP: /leader is 200 while it leads, else 503;
                      /healthz is 200 while it runs

Environment and exit status are those of run.
)help";

constexpr std::string_view multi_help =
    R"help(holdfast multi run [options] NAME NAME... -- CMD ARGS...

Takes all of the locks or none, in any order and without deadlock, and runs CMD.

  holdfast multi run account/7 account/9 -- ./transfer 7 9
  holdfast multi run --wait 10s a b c -- ./job

The options and the exit status are those of run, without --shared, --permits and
--max. HOLDFAST_NAME, HOLDFAST_FENCE and HOLDFAST_CLAIM have one line per lock, in
the order given.
)help";

constexpr std::string_view latch_help =
    R"help(holdfast latch NAME set N | down [N] [--id ID] | wait [--wait D] | count

A countdown latch: many can wait until a count has reached zero.

  holdfast latch ready set 3                       set it, once
  holdfast latch ready down                        count down: three times in all
  holdfast latch ready down --id "$HOSTNAME"       count once, even if repeated
  holdfast latch ready wait --wait 5m              exit 124 if not at zero by then
  holdfast latch ready count                       print the count, or 'unset'

Exit status 1: 'set' on a latch that has not reached zero, 'down' on an unset one.
)help";

constexpr std::string_view ls_help =
    R"help(holdfast ls [PREFIX] [--json | --names]

Lists names that have holders or waiters, or are blocked by a lock delay.

  holdfast ls
  holdfast ls shop/ --json       [{"name":"shop/42","holders":1,"waiters":3}]
  holdfast ls --names            one name per line and nothing else, for scripts
)help";

constexpr std::string_view show_help =
    R"help(holdfast show NAME [--json]

Shows the holders of a name (id, mode, since when, remaining ttl, fencing token, host,
process and program) and its waiters in order; or that it is free, or blocked by a
lock delay.

  holdfast show backup
  holdfast show backup --json | jq '.holders[0].payload'
)help";

constexpr std::string_view release_help =
    R"help(holdfast release --token TOKEN
holdfast release --token-file F
holdfast release NAME --force [--claim ID] [--yes]

With a token of acquire it releases that lock, at once.

  holdfast release --token "$TOKEN"
  holdfast release --token-file t                  its first line is the token

Exit status then: 123 the lock was gone before; 122 the engine failed; 2 not a token, or
one of another engine or namespace.

With --force it takes the lock NAME from its holder at once. Two commands may run at the
same time until the old holder notices, at its next renewal (a third of the ttl) at the
latest. The next holder's fencing token is greater. Waiters stay in line. Prefer revoke.

  holdfast release backup --force                  asks first, on a terminal
  holdfast release backup --force --yes            in a script
  holdfast release gpu --force --claim 3f2a...     one of several holders (see show)

Exit status 1: nobody holds it.
)help";

constexpr std::string_view revoke_help =
    R"help(holdfast revoke NAME

Ends a hold safely: the lock is not renewed any more, its holder is notified, and nobody
else is granted the lock before its lease has ended.

  holdfast revoke backup

Exit status 1: nobody holds it.
)help";

constexpr std::string_view watch_help =
    R"help(holdfast watch [NAME] [--json] [--all]

Prints a line per event until interrupted: queued, granted, released, expired, withdrawn,
forced.

  holdfast watch backup
  holdfast watch --json | jq -c 'select(.event == "expired")'

  --json    JSON Lines
  --all     include renewals
)help";

constexpr std::string_view doctor_help =
    R"help(holdfast doctor [--json]

Checks the engine and its settings. Prints a line per check: ok, warn or fail, and what
to do about it. Exit status 1 if a check fails.

  holdfast doctor
  holdfast --url sqlite:/var/lib/shop/locks.db doctor
)help";

constexpr std::string_view redis_library_help =
    R"help(holdfast redis-library

Prints the library of functions that the Redis store loads into a server (Redis 7) when
it is not there. For administrators who load it themselves, so that clients do not need
the right to: FUNCTION LOAD. Its name has a version: load it again after an update.

  holdfast redis-library | redis-cli -x FUNCTION LOAD
)help";

constexpr std::string_view serve_help =
    R"help(holdfast serve [--listen HOST:PORT] [options]

Serves what one or several engines tell: a live page at /, metrics for Prometheus at
/metrics, JSON at /api/engines, /api/locks and /api/locks/NAME, server-sent events at
/api/events, and /healthz. It reads, unless --allow-revoke is given.

  holdfast serve                                   http://127.0.0.1:9464/
  holdfast --url redis://localhost serve
  holdfast serve --url main=redis://a --url jobs=postgresql://b/jobs
  holdfast serve --listen 0.0.0.0:9464 --token-file /etc/holdfast/token

  --url URL           may be repeated, as NAME=URL too: NAME is what the page, the
                      metrics and ?engine=NAME call the engine (default: its scheme)
  --listen HOST:PORT  where to listen (default 127.0.0.1:9464; port 0: any); anywhere
                      but on the loopback interface it needs --token-file
  --token-file F      the first line of F is needed for everything but / and /healthz:
                      Authorization: Bearer TOKEN
  --allow-revoke      the page, and POST /api/locks/NAME/revoke, may end a hold as
                      revoke does; needs --token-file
  --allow-host NAME   also answer requests for this host name (for a proxy in front);
                      may be repeated

SIGTERM and SIGINT end it: exit status 0.
)help";

constexpr std::string_view demo_help =
    R"help(holdfast demo flash-sale [--buyers N] [--stock N] [--processes N] [--lock LIST]

Many buyers in several processes compete for a small stock, which is kept in a plain
file. Without a lock the shop oversells; with each kind of lock it does not.

  holdfast demo flash-sale
  holdfast demo flash-sale --buyers 2000 --stock 100 --processes 8 --lock none,mutex

  --buyers N      number of buyers (default 1000); each waits up to 1s for the lock
  --stock N       items for sale (default 200)
  --processes N   processes that the buyers run in (default 4)
  --lock LIST     of none, mutex, fair, rw, semaphore (default: all of them)

Without --url and HOLDFAST_URL it uses an embedded store in a temporary folder. Exit
status 0 only if every run with a lock was exact.
)help";

constexpr std::string_view bench_help =
    R"help(holdfast bench [options]

Takes and releases locks from many threads and processes, and measures grants per
second, latency of acquire and release, hand-off from one holder to the next, fairness,
CPU time, memory, TCP segments and bytes. What cannot be measured is shown as "-".

  holdfast bench                                       one thread, its own lock
  holdfast --url redis://localhost bench --threads 64
  holdfast bench --threads 4 --processes 4 --locks same --mode fair --duration 10s
  holdfast bench --threads 16 --locks zipf --mode rw:90 --json | jq .acquire_us.p99

  --threads N     threads per process, 1 to 1024 (default 1)
  --processes M   1 to 64 (default 1); each has one client
  --locks L       own: one per thread (default); same: one for all; zipf: 1000 locks,
                  the n-th used n times less often than the first
  --mode M        mutex (default), fair, rw:90 (percentage of readers), semaphore:8
                  (number of permits)
  --hold D        how long each grant is held (default 0s)
  --duration D    100ms to 1h (default 3s); the first fifth, at most 500ms, is warm-up
  --json          one JSON document, with the full histogram

Exit status 122 if anything failed: then there are no figures.
)help";

constexpr std::string_view torture_help =
    R"help(holdfast torture [--start ENGINE | --url URL] [options]
holdfast torture check FILE
holdfast torture replay FILE

Client processes take and release locks while they and the servers are paused, killed
and cut off from each other. Everything they saw is recorded and checked: at most one
valid holder, increasing fencing tokens, order, permits, no lost wake-up, no leftovers.

  holdfast torture --start redis --duration 30s
  holdfast torture --url redis://localhost --faults pause-client,kill-client
  holdfast torture --start zookeeper --seed 7 --json run.json --report run.html
  holdfast torture check run.json            check a stored history again
  holdfast torture replay run.json           repeat its faults at the same times

  --start ENGINE   start servers for it: embedded, redis, redis-sentinel, redis-cluster,
                   redlock, zookeeper, etcd, etcd-cluster, postgresql,
                   postgresql-session, postgresql-row, mariadb, mariadb-session,
                   mariadb-row. Without it, the servers of --url are used, and only
                   their clients are tortured
  --clients N      client processes (default 6), with two threads each
  --duration D     how long to run (default 30s)
  --ttl D          ttl of the locks (default 1s)
  --workload LIST  of mutex, fair, rw, semaphore, latch, multi, election (default: all
                   that the engine supports)
  --faults LIST    of pause-client, kill-client, pause-server, kill-server, partition,
                   delay, cut, clock-jump, failover, script-flush, disk-full,
                   stop-at-call, kill-at-call, pause-others, kill-others, truncate,
                   garble; or none (default: all that are possible there)
  --seed S         seed of the schedule (default: a random one, which is printed)
  --json FILE      write the whole history to FILE
  --report FILE    write a page with a timeline of the holders to FILE

Exit status: 0 clean; 1 a violation, with the shortest part of the history that shows
it; 3 inconclusive: too few grants, or a fault that never happened; 122 the run could
not be completed; 2 usage.
)help";

struct entry {
  std::string_view topic;
  std::string_view text;
};

constexpr std::array entries{
    entry{"run", run_help},
    entry{"acquire", acquire_help},
    entry{"renew", renew_help},
    entry{"elect", elect_help},
    entry{"multi", multi_help},
    entry{"latch", latch_help},
    entry{"ls", ls_help},
    entry{"show", show_help},
    entry{"release", release_help},
    entry{"revoke", revoke_help},
    entry{"watch", watch_help},
    entry{"doctor", doctor_help},
    entry{"redis-library", redis_library_help},
    entry{"serve", serve_help},
    entry{"demo", demo_help},
    entry{"bench", bench_help},
    entry{"torture", torture_help},
};

}  // namespace

std::string help_about(std::string_view topic) {
  for (const entry& one : entries) {
    if (one.topic == topic.substr(0, topic.find(' '))) return std::string(one.text);
  }
  return std::string(overview);
}

}  // namespace holdfast::cli
