// Redislock as its README uses it: it asks again every 100 ms, but never gives up.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"holdfast/peers/peer"
)

type lock struct {
	client *redislock.Client
	name   string
	held   *redislock.Lock
}

func (one *lock) Take() (err error) {
	for {
		one.held, err = one.client.Obtain(context.Background(), one.name, 30*time.Second,
			&redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)})
		if !errors.Is(err, redislock.ErrNotObtained) {
			return err
		}
	}
}

func (one *lock) GiveBack() error { return one.held.Release(context.Background()) }

func main() {
	peer.Run(func(address string) func(string) peer.Lock {
		client := redislock.New(redis.NewClient(&redis.Options{Addr: address}))
		return func(name string) peer.Lock { return &lock{client: client, name: name} }
	})
}
