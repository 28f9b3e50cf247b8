package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// handler answers one call of an operation. It may be called several times at once, and may
// panic for a crash.
type handler func(*call) answer

// designs returns the servers that the suite is tested with, by name: each is a way to avoid double effects as it is taught, with its fault. Each
// function opens its stores, whose data env.end removes also after an error, and returns the handler.
func designs() map[string]func(*env) (handler, error) {
	return map[string]func(*env) (handler, error){
		"lock-in-finally":   lockInFinally,   // over Redis
		"token-first":       tokenFirst,      // over Redis
		"put-that-compares": putThatCompares, // over PostgreSQL
		"bill-number":       billNumber,      // over MariaDB
		"token-rolled-back": tokenRolledBack, // over PostgreSQL
		"record-and-lock":   recordAndLock,   // over Redis and MariaDB
		"short-retention":   shortRetention,  // over Redis
		"insert-or-select":  insertOrSelect,  // over PostgreSQL
	}
}

// main serves the named design, a server with a known fault, or with -repaired without it. Without a known name it lists the names and ends with
// status 2.
func main() {
	log.SetFlags(0)
	log.SetPrefix("designs: ")
	repaired := flag.Bool("repaired", false, "with the smallest repair")
	flag.Parse()
	build, found := designs()[flag.Arg(0)]
	if !found {
		log.Printf("which design: %s", strings.Join(slices.Sorted(maps.Keys(designs())), ", "))
		os.Exit(2)
	}
	if err := run(build, *repaired); err != nil {
		log.Fatal(err)
	}
}

// run serves one design until a signal, and then removes its data from the stores.
func run(build func(*env) (handler, error), repaired bool) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e := newEnv(repaired)
	defer func() { err = errors.Join(err, e.end()) }()
	handle, err := build(e)
	if err != nil {
		return err
	}
	address := os.Getenv("ADDR")
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: e.routes(handle), ReadHeaderTimeout: 30 * time.Second, ErrorLog: log.New(discard{}, "", 0)}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	go func() {
		<-ctx.Done()
		_ = server.Close() // the counts of what is at work are of no use any more
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// discard drops the traces of requested crashes.
type discard struct{}

// Write implements [io.Writer]. It drops p.
func (discard) Write(p []byte) (int, error) { return len(p), nil }
