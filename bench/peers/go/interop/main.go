// Go's locks in etcd, as the other side of scripts/interop-etcd and scripts/interop.
//
//	interop ENDPOINT count NAME TIMES FILE [LOG]    adds one to the number in FILE under a Mutex, so many times
//	interop ENDPOINT write NAME TIMES FILE    the same to FILE and FILE.2, under the write lock of a RWMutex
//	interop ENDPOINT lead NAME TIMES FILE [LOG]     as count, as leader of an Election that resigns each time
//	interop ENDPOINT hold NAME SECONDS        takes a Mutex with such a lease, says so, and stays
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(strings.TrimSpace(text))
	must(err)
	return value
}

func addOne(file string) {
	text, err := os.ReadFile(file)
	must(err)
	time.Sleep(2 * time.Millisecond)
	must(os.WriteFile(file, []byte(strconv.Itoa(number(string(text))+1)), 0o600))
}

// A line for scripts/interop: when it began to wait, when it was granted, and the time now, in ns
// since 1970.
func record(lines *os.File, began, granted time.Time) {
	if lines == nil {
		return
	}
	_, err := fmt.Fprintln(lines, began.UnixNano(), granted.UnixNano(), time.Now().UnixNano())
	must(err)
}

func main() {
	what, name := os.Args[2], os.Args[3]
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Args[1]}, DialTimeout: 30 * time.Second})
	must(err)
	seconds := 10
	if what == "hold" {
		seconds = number(os.Args[4])
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(seconds))
	must(err)
	defer session.Close()
	always := context.Background()
	var lines *os.File
	if len(os.Args) > 6 {
		lines, err = os.Create(os.Args[6])
		must(err)
		fmt.Println("ready")
	}
	switch what {
	case "hold":
		must(concurrency.NewMutex(session, name).Lock(always))
		fmt.Println("held")
		select {}
	case "count":
		mutex := concurrency.NewMutex(session, name)
		for i := 0; i < number(os.Args[4]); i++ {
			began := time.Now()
			must(mutex.Lock(always))
			granted := time.Now()
			addOne(os.Args[5])
			record(lines, began, granted)
			must(mutex.Unlock(always))
		}
	case "lead":
		election := concurrency.NewElection(session, name)
		for i := 0; i < number(os.Args[4]); i++ {
			began := time.Now()
			must(election.Campaign(always, "go"))
			granted := time.Now()
			leader, err := election.Leader(always)
			must(err)
			if string(leader.Kvs[0].Value) != "go" {
				log.Fatalf("the leader is %q", leader.Kvs[0].Value)
			}
			addOne(os.Args[5])
			record(lines, began, granted)
			must(election.Resign(always))
		}
	case "write":
		mutex := recipe.NewRWMutex(session, name)
		for i := 0; i < number(os.Args[4]); i++ {
			must(mutex.Lock())
			addOne(os.Args[5])
			addOne(os.Args[5] + ".2")
			must(mutex.Unlock())
		}
	}
}
