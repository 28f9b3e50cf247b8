// Package enginetest runs tests of behaviour on each engine of journals: on memory and bolt in virtual time, and on servers in real time.
package enginetest

import (
	"hash/crc32"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// Engine is a kind of journal, opened by several processes or by several lives of one process.
type Engine struct {
	Name string
	make func(t *testing.T) (open func() persist.Journal)
	kind kind
}

// kind is the special property of an engine.
type kind uint8

const (
	ordinary kind = iota
	oneProcess
	onServer
)

// Engines returns the journals in memory, in a file (bolt) and on PostgreSQL: for each the function that makes it, and its kind: ordinary, for one process
// alone, or on a server.
func Engines() []Engine {
	return []Engine{{"memory", inMemory, ordinary}, {"bolt", inFile, oneProcess}, {"postgres", onPostgres, onServer}}
}

// AllEngines returns all journals, each as a case for tests of claims (taking due operations for a time): in memory, in a file (bolt), and on each database
// server.
func AllEngines() []Engine {
	return append(Engines(), Engine{"mysql", onMySQL, onServer}, Engine{"redis", onRedis, onServer})
}

// OnEach runs f as a parallel subtest on each engine. Servers are slow: unless [testrun.Whole], only one in eight rows of a table, chosen by its name, runs on them.
// A test without rows always does.
func OnEach(t *testing.T, engines []Engine, f func(t *testing.T, s Shared)) {
	t.Helper()
	// The name of a test without rows has no slash.
	eighth := !strings.Contains(t.Name(), "/") || crc32.ChecksumIEEE([]byte(t.Name()))%8 == 0
	for _, e := range engines {
		if e.kind == onServer && !testrun.Whole() && !eighth {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			e.Test(t, f)
		})
	}
}

// Test runs f with a new journal: in virtual time, or in real time if the journal is on a server.
func (e Engine) Test(t *testing.T, f func(t *testing.T, s Shared)) {
	t.Helper()
	// The journal's Open, whether time is real, and whether only one process can have it.
	made := func(t *testing.T) { f(t, Shared{e.make(t), e.kind == onServer, e.kind == oneProcess}) }
	if e.kind == onServer {
		made(t)
		return
	}
	synctest.Test(t, made)
}

// inMemory makes a journal in memory. Each result of open is that journal as another process sees it.
func inMemory(*testing.T) (open func() persist.Journal) {
	j := memory.New()
	return func() persist.Journal { return journaltest.NewFairLeasing(j) }
}

// inFile makes a journal in a file, and closes it with the test. Each result of open is that journal as its process sees it after one more start; two processes
// cannot have it at once.
func inFile(t *testing.T) (open func() persist.Journal) {
	t.Helper()
	j, err := bolt.Open(filepath.Join(testrun.Dir(t), "j.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return func() persist.Journal { return &journaltest.OwnProcess{Journal: j} }
}

// Shared is a journal of one engine.
type Shared struct {
	Open   func() persist.Journal // for one more process, or life of the process
	Server bool                   // it is on a server, and time is real
	alone  bool                   // two processes cannot have it at once
}

// Two returns the journal as two clients have it at once: as two processes see it, or, if the engine takes only one process, the same one twice.
func (s Shared) Two() (one, other persist.Journal) {
	if one = s.Open(); s.alone {
		return one, one
	}
	return one, s.Open()
}

// Time returns one of two lengths of time for this journal's tests: real on a server, where time really passes, else virtual.
func (s Shared) Time(virtual, real time.Duration) time.Duration {
	if s.Server {
		return real
	}
	return virtual
}

// patience bounds a wait for a server.
const patience = 30 * time.Second

// Await reports whether a condition holds: after this time in virtual time. In real time it waits for the condition, for patience at most.
func (s Shared) Await(virtual time.Duration, holds func() bool) bool {
	if !s.Server {
		time.Sleep(virtual)
		return holds()
	}
	for end := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// FallDue makes all pending operations due: an hour passes in virtual time, or, on a server, where real time passes, their NextAttempt is written as zero (due
// at once).
func (s Shared) FallDue(t *testing.T) {
	t.Helper()
	if !s.Server {
		time.Sleep(time.Hour)
		return
	}
	j := s.Open()
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true, States: []persist.State{persist.StatePending}}) {
		if err == nil && !rec.NextAttempt.IsZero() {
			rec.NextAttempt = time.Time{}
			_, err = j.Update(t.Context(), rec)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
