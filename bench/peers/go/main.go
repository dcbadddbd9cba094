// A peer in Go: redsync with its own defaults, but that it never gives up.
//
//	peer HOST:PORT THREADS own|same mutex HOLD_MS WARM_MS RUN_MS PREFIX
//
// Speaks as bench/peers/java/Peer.java does.
package main

import (
	"bufio"
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

func main() {
	words := os.Args[1:]
	client := redis.NewClient(&redis.Options{Addr: words[0]})
	source := redsync.New(goredis.NewPool(client))
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
			lock := source.NewMutex(name, redsync.WithExpiry(30*time.Second), redsync.WithTries(math.MaxInt32))
			<-start
			for asked := time.Now(); asked.Before(end); asked = time.Now() {
				must(lock.Lock())
				granted := time.Now()
				if hold > 0 {
					time.Sleep(hold)
				}
				_, err := lock.Unlock()
				must(err)
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
