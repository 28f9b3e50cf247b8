package company_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// kind is how the clients of a cell share their journal.
type kind string

// The kinds.
const (
	oneProcess   kind = "one process, with leases"
	twoProcesses kind = "two processes, with leases"
	withoutLease kind = "one process, without leases"
	inFile       kind = "one process, in a file"
)

var kinds = []kind{oneProcess, twoProcesses, withoutLease, inFile}

// store is what outlives the processes of a cell.
type store struct {
	kind kind
	mem  *memory.Journal
	file *bolt.Journal
}

// openStore makes a new one.
func openStore(t *testing.T, k kind, dir string) *store {
	t.Helper()
	s := &store{kind: k}
	if k != inFile {
		s.mem = memory.New()
		return s
	}
	file, err := bolt.Open(filepath.Join(dir, "j.db"), bolt.Options{Sync: func(*os.File) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	s.file = file
	return s
}

// journal is what is beneath the processes.
func (s *store) journal() persist.Journal {
	if s.file != nil {
		return s.file
	}
	return s.mem
}

// process is the journal as the clients of one process share it.
type process struct {
	persist.Journal
	dead *atomic.Bool
}

// start returns the journal of a new process.
func (s *store) start() process {
	dead := &atomic.Bool{}
	switch s.kind {
	case withoutLease:
		return process{&plainHandle{Journal: s.mem, dead: dead}, dead}
	case inFile:
		return process{&plainHandle{Journal: s.file, dead: dead}, dead}
	}
	return process{&sharedHandle{Journal: s.mem, dead: dead}, dead}
}

var errDead = errors.New("company: this process is dead")

// plainHandle is a journal without leases, as one process has it, which may die.
type plainHandle struct {
	persist.Journal
	own  persist.Attachment
	dead *atomic.Bool
}

func (h *plainHandle) Attach(create func() any) any { return h.own.Attach(create) }

func (h *plainHandle) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if h.dead.Load() {
		return persist.Record{}, errDead
	}
	return h.Journal.Update(ctx, rec)
}

func (h *plainHandle) Finish(ctx context.Context, rec persist.Record) error {
	if h.dead.Load() {
		return errDead
	}
	return h.Journal.Finish(ctx, rec)
}

func (h *plainHandle) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	if h.dead.Load() {
		return false, errDead
	}
	results, _ := persist.As[persist.Results](h.Journal)
	return results.MarkDelivered(ctx, id, revision)
}

func (h *plainHandle) Forget(ctx context.Context, rec persist.Record) error {
	if h.dead.Load() {
		return errDead
	}
	return h.Journal.Forget(ctx, rec)
}

// sharedHandle is a journal with leases, as one process has it, which may die.
type sharedHandle struct {
	*memory.Journal
	own  persist.Attachment
	dead *atomic.Bool
}

func (h *sharedHandle) Attach(create func() any) any { return h.own.Attach(create) }

func (h *sharedHandle) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if h.dead.Load() {
		return persist.Record{}, errDead
	}
	return h.Journal.Update(ctx, rec)
}

func (h *sharedHandle) Finish(ctx context.Context, rec persist.Record) error {
	if h.dead.Load() {
		return errDead
	}
	return h.Journal.Finish(ctx, rec)
}

func (h *sharedHandle) Forget(ctx context.Context, rec persist.Record) error {
	if h.dead.Load() {
		return errDead
	}
	return h.Journal.Forget(ctx, rec)
}

func (h *sharedHandle) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	if h.dead.Load() {
		return nil, time.Time{}, errDead
	}
	return h.Journal.Renew(ctx, owner, lease, ids)
}
