#include "torture/controls/control.hpp"

#include "torture/controls/etcd.hpp"
#include "torture/controls/several_servers.hpp"
#include "torture/controls/single_redis.hpp"
#include "torture/controls/zookeeper.hpp"

namespace holdfast::torture {

const std::vector<control>& controls_of_the_lab() {
  static const std::vector<control> all{
      {"setnx-then-expire", "SETNX, then EXPIRE, then DEL.",
       "The client dies between SETNX and EXPIRE: the lock has no end, and "
       "everybody waits "
       "forever.",
       "The grant and its ttl are one step on the server.", "no lost wake-up",
       controls::setnx_then_expire},
      {"del-without-owner", "SET NX PX; DEL when done.",
       "A client whose time is over deletes the lock of the next one, and a "
       "third gets in "
       "beside it.",
       "Only the claim's own id releases it, compared and deleted in one step.",
       "at most one valid holder", controls::del_without_owner},
      {"timestamp-and-getset",
       "SETNX with the time of its end as value; who finds it past takes it by "
       "GETSET.",
       "The client's clock decides. One that is a second ahead finds a living "
       "lock past.",
       "The server's clock decides, in the same script.", "at most one valid holder",
       controls::timestamp_and_getset},
      {"work-longer-than-the-lease",
       "SET NX PX with a value of one's own, compare and delete; no renewal.",
       "The work takes longer than the lease, nobody tells the worker, and the "
       "next one gets"
       " in.",
       "Renewal every third of the ttl, and lost() before another can have it.",
       "at most one valid holder", controls::work_longer_than_the_lease},
      {"renewal-after-release", "A thread renews by SET PX; release does not wait for it.",
       "A renewal that is late sets the lock again after it was released; "
       "nobody holds it and"
       " everybody waits.",
       "A renewal never creates, and a released claim is never renewed.", "no lost wake-up",
       controls::renewal_after_release},
      {"queue-that-skips", "Waiters in a list; the one who releases takes the next from it.",
       "From the wrong end: who came last is served first, and the first may "
       "wait forever.",
       "Order by the server's own numbers, checked on every store.", "FIFO",
       controls::queue_that_skips},
      {"push-dated-at-receipt",
       "Who releases hands the lock to the next waiter, for its ttl, and "
       "pushes the news.",
       "The waiter was stopped while the push lay in its socket, and counts "
       "its ttl from "
       "when it reads it.",
       "A push is dated by the server's time in it, against the last answered "
       "request.",
       "at most one valid holder", controls::push_dated_at_receipt},
      {"publish-count-as-life",
       "Who releases publishes to the next waiter; if PUBLISH counted a "
       "receiver, it is the "
       "holder.",
       "The receiver was somebody's monitoring with a pattern. The waiter is "
       "dead, and holds"
       " the lock.",
       "Exact subscribers are asked for, and a pushed grant is only an offer "
       "until it is "
       "taken up.",
       "no lost wake-up", controls::publish_count_as_life},
      {"replica-promoted-too-early", "SET NX PX on the master; a replica takes over when it dies.",
       "The replica had not heard of the lock yet.",
       "Stated (G1.6), narrowed by wait_replicas, and fenced: the next grant's "
       "fence is "
       "greater.",
       "at most one valid holder", controls::replica_promoted_too_early},
      {"quorum-of-the-reachable", "Redlock that takes a majority of the servers that answer.",
       "In a partition both sides have a majority of what they can reach.",
       "A majority of the configured members; a tie is a failure (G11.1).",
       "at most one valid holder", controls::quorum_of_the_reachable},
      {"fence-at-any-majority",
       "Redlock with fences: the greatest is written back until a majority, "
       "any majority, "
       "has it.",
       "Another claim already sits on a part of that majority with an older "
       "answer, and "
       "completes its own elsewhere.",
       "Only members where the claim itself still holds count (G11.2).", "fenced writes",
       controls::fence_at_any_majority},
      {"semaphore-under-majority",
       "A semaphore whose permits are counted by each member, granted by a "
       "majority.",
       "With two permits and five members, three clients have a majority each, "
       "and no member"
       " gave more than two.",
       "Unsupported, and answered so.", "permits", controls::semaphore_under_majority},
      {"row-that-ends-by-the-clients-clock",
       "A database row with the time of its end; who finds it past takes it.",
       "The time is the client's. One that is a minute ahead takes a living "
       "lock.",
       "The database's clock, in the same statement.", "at most one valid holder",
       controls::row_that_ends_by_the_clients_clock},
      {"node-without-its-owner",
       "ZooKeeper: create an ephemeral node; if it exists with my name in it, "
       "it is mine.",
       "It is: of a session of mine that has ended for me and not yet for the "
       "server. Its "
       "end deletes the node.",
       "The node's ephemeral owner must be the session that believes.", "at most one valid holder",
       controls::node_without_its_owner},
      {"lease-dated-by-pings",
       "ZooKeeper: an ephemeral node is mine for as long as the server answers my pings.",
       "The server has lost the others, and answers pings by itself. They let the session expire, "
       "and give its node to another.",
       "A lease is dated by answered writes, which a majority must have seen.",
       "at most one valid holder", controls::lease_dated_by_pings},
      {"command-that-outlives-its-lease",
       "etcd: `etcdctl lock NAME COMMAND`, by the program that comes with it.",
       "The lease ends (here it is revoked): the lock is given to the next one, and the command "
       "runs on.",
       "The command is ended before another can have the lock, and the exit status says so.",
       "at most one valid holder", controls::command_that_outlives_its_lease},
  };
  return all;
}

}  // namespace holdfast::torture
