// Redsync with its own defaults, except that it never gives up.
package main

import (
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"holdfast/peers/peer"
)

type lock struct{ mutex *redsync.Mutex }

func (one lock) Take() error { return one.mutex.Lock() }
func (one lock) GiveBack() error {
	_, err := one.mutex.Unlock()
	return err
}

func main() {
	peer.Run(func(address string) func(string) peer.Lock {
		pool := goredis.NewPool(redis.NewClient(&redis.Options{Addr: address}))
		return func(name string) peer.Lock {
			return lock{redsync.New(pool).NewMutex(name, redsync.WithExpiry(30*time.Second),
				redsync.WithTries(math.MaxInt32))}
		}
	})
}
