// Package peer is what the peers in Go share: threads that acquire and release locks, and counters.
//
//	PROGRAM HOST:PORT THREADS own|same MODE HOLD_MS NAME COUNT
//
// Speaks as bench/peers/java/Peer.java does.
package peer

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Lock is one lock of one thread.
type Lock interface {
	Take() error
	GiveBack() error
}

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
	grants, pairs int64
	max           time.Duration
	cells         map[int]int64
}

// Must ends the program, with the reason, if there is one.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	Must(err)
	return value
}

// The count that all processes share, or none.
func shared(path string) []byte {
	if path == "-" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	Must(err)
	bytes, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	Must(err)
	return bytes
}

type times struct{ from, end time.Time }

func work(lock Lock, hold time.Duration, count []byte, round times) tally {
	mine := tally{cells: map[int]int64{}}
	for asked := time.Now(); asked.Before(round.end); asked = time.Now() {
		Must(lock.Take())
		granted := time.Now()
		var before uint64
		if count != nil {
			before = binary.LittleEndian.Uint64(count)
		}
		if hold > 0 {
			time.Sleep(hold)
		}
		if count != nil {
			binary.LittleEndian.PutUint64(count, before+1)
		}
		Must(lock.GiveBack())
		mine.pairs++
		if now := time.Now(); now.After(round.from) && now.Before(round.end) {
			mine.grants++
		}
		if asked.After(round.from) {
			mine.cells[cell(granted.Sub(asked))]++
			mine.max = max(mine.max, granted.Sub(asked))
		}
	}
	return mine
}

func report(all []tally, counted bool) {
	grants, cells := []int64{}, [][2]float64{}
	var pairs int64
	var longest time.Duration
	for _, one := range all {
		grants = append(grants, one.grants)
		pairs += one.pairs
		longest = max(longest, one.max)
		for at, count := range one.cells {
			cells = append(cells, [2]float64{top(at), float64(count)})
		}
	}
	steps := pairs
	if !counted {
		steps = 0
	}
	Must(json.NewEncoder(os.Stdout).Encode(map[string]any{"grants": grants, "pairs": pairs,
		"counted": steps, "max_us": float64(longest) / 1e3, "histogram": cells}))
}

// Run takes locks from the source that open makes for an address.
func Run(open func(address string) func(name string) Lock) {
	words := os.Args[1:]
	lockNamed := open(words[0])
	hold := time.Duration(number(words[4])) * time.Millisecond
	count := shared(words[6])
	locks := []Lock{}
	for i := range number(words[1]) {
		name := words[5]
		if words[2] == "own" {
			name += "-" + strconv.Itoa(i)
		}
		locks = append(locks, lockNamed(name))
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var warm, length int
		_, err := fmt.Sscan(lines.Text(), &warm, &length)
		Must(err)
		var round times
		round.from = time.Now().Add(time.Duration(warm) * time.Millisecond)
		round.end = round.from.Add(time.Duration(length) * time.Millisecond)
		all := make([]tally, len(locks))
		var done sync.WaitGroup
		for i := range all {
			done.Add(1)
			go func() {
				defer done.Done()
				all[i] = work(locks[i], hold, count, round)
			}()
		}
		done.Wait()
		report(all, count != nil)
	}
}
