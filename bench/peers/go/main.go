// The peers in Go: redsync with its own defaults, but that it never gives up; etcd's own mutex with a
// session for each thread, since one session owns a name but once.
//
//	peer redsync|etcd HOST:PORT THREADS own|same mutex HOLD_MS WARM_MS RUN_MS PREFIX
//
// Speaks as bench/peers/java/Peer.java does.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const fine = 7 // a part in 128

func cell(span time.Duration) int {
	length := uint64(max(span, 0))
	coarse := max(0, bits.Len64(length)-fine-1)
	return coarse<<fine + int(length>>coarse)
}

func top(cell int) float64 {
	coarse := max(cell>>fine, 1) - 1
	return float64((cell-coarse<<fine+1)<<coarse-1) / 1e3
}

type tally struct {
	grants int64
	max    time.Duration
	cells  map[int]int64
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

type lock interface {
	take() error
	giveBack() error
}

type redsyncLock struct{ mutex *redsync.Mutex }

func (one redsyncLock) take() error { return one.mutex.Lock() }
func (one redsyncLock) giveBack() error {
	_, err := one.mutex.Unlock()
	return err
}

type etcdLock struct{ mutex *concurrency.Mutex }

func (one etcdLock) take() error     { return one.mutex.Lock(context.Background()) }
func (one etcdLock) giveBack() error { return one.mutex.Unlock(context.Background()) }

// Makes locks by name, for one thread each.
func source(kind, address string) func(name string) lock {
	if kind == "etcd" {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: 10 * time.Second})
		must(err)
		return func(name string) lock {
			session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
			must(err)
			return etcdLock{concurrency.NewMutex(session, "/"+name)}
		}
	}
	pool := goredis.NewPool(redis.NewClient(&redis.Options{Addr: address}))
	return func(name string) lock {
		return redsyncLock{redsync.New(pool).NewMutex(name, redsync.WithExpiry(30*time.Second),
			redsync.WithTries(math.MaxInt32))}
	}
}

func main() {
	lockNamed := source(os.Args[1], os.Args[2])
	words := os.Args[2:]
	threads, hold := number(words[1]), time.Duration(number(words[4]))*time.Millisecond
	all := make([]tally, threads)
	var from, end time.Time
	var done sync.WaitGroup
	start := make(chan struct{})
	for i := range all {
		name := words[7]
		if words[2] == "own" {
			name += "-" + strconv.Itoa(i)
		}
		done.Add(1)
		go func(mine *tally) {
			defer done.Done()
			mine.cells = map[int]int64{}
			lock := lockNamed(name)
			<-start
			for asked := time.Now(); asked.Before(end); asked = time.Now() {
				must(lock.take())
				granted := time.Now()
				if hold > 0 {
					time.Sleep(hold)
				}
				must(lock.giveBack())
				if now := time.Now(); now.After(from) && now.Before(end) {
					mine.grants++
				}
				if asked.After(from) {
					mine.cells[cell(granted.Sub(asked))]++
					mine.max = max(mine.max, granted.Sub(asked))
				}
			}
		}(&all[i])
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	from = time.Now().Add(time.Duration(number(words[5])) * time.Millisecond)
	end = from.Add(time.Duration(number(words[6])) * time.Millisecond)
	close(start)
	done.Wait()
	grants, cells, longest := []int64{}, [][2]float64{}, time.Duration(0)
	for _, one := range all {
		grants = append(grants, one.grants)
		longest = max(longest, one.max)
		for at, count := range one.cells {
			cells = append(cells, [2]float64{top(at), float64(count)})
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"grants": grants, "max_us": float64(longest) / 1e3, "histogram": cells}))
}
