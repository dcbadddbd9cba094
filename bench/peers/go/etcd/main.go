// The mutex of etcd's own client, with a session for each thread: a session owns a name only once.
package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"holdfast/peers/peer"
)

type lock struct{ mutex *concurrency.Mutex }

func (one lock) Take() error     { return one.mutex.Lock(context.Background()) }
func (one lock) GiveBack() error { return one.mutex.Unlock(context.Background()) }

func main() {
	peer.Run(func(address string) func(string) peer.Lock {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: 10 * time.Second})
		peer.Must(err)
		return func(name string) peer.Lock {
			session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
			peer.Must(err)
			return lock{concurrency.NewMutex(session, "/"+name)}
		}
	})
}
