package main

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"runtime"
	"strings"
	"sync"
)

// recordFiller is as long as a payment's record in a journal.
var recordFiller = strings.Repeat("r", 360)

// rawLog is the log for comparison with a journal: a file with appended entries,
// each with length and checksum, and one write and one sync for all waiting
// callers. It has no index and frees no space. The first waiting caller leads: it
// writes for all. Before that it yields as long as others join, as the journal
// does: otherwise every other sync would serve only a few. It is safe for
// concurrent use.
type rawLog struct {
	file *os.File
	sync func(*os.File) error

	mu      sync.Mutex // guards the fields below
	buf     []byte     // entries for the next write
	spare   []byte     // the buffer of the last write, to be used again
	waiters int        // callers of append with entries in buf
	leading bool       // a caller leads, or was told to
	group   *group     // of the waiters
	syncs   int64      // so far
	bytes   int64      // written so far
}

// group is the set of callers that wait for one sync.
type group struct {
	wake chan bool // true tells one caller to lead; closed once err is set
	err  error     // of the write or the sync
}

// openRawLog creates an empty log, the fastest file with a durable write for each operation, for comparison: callers that wait at the same time share one write
// and one sync. sync is called for each sync. The caller must call close.
func openRawLog(path string, sync func(*os.File) error) (*rawLog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &rawLog{file: f, sync: sync, group: &group{wake: make(chan bool, 1)}}, nil
}

// enter adds an entry to the buffer of the next write. The lock is held.
func (l *rawLog) enter(entry []byte) {
	l.buf = binary.LittleEndian.AppendUint32(l.buf, uint32(len(entry)))
	l.buf = binary.LittleEndian.AppendUint32(l.buf, crc32.ChecksumIEEE(entry))
	l.buf = append(l.buf, entry...)
}

// later adds an entry without waiting; the next sync makes it durable.
func (l *rawLog) later(entry []byte) {
	l.mu.Lock()
	l.enter(entry)
	l.mu.Unlock()
}

// append adds an entry and returns once it is durable, or its write has failed. If no caller leads (writes for all that wait), this one does. A waiting caller
// may be told to lead next.
func (l *rawLog) append(entry []byte) error {
	l.mu.Lock()
	l.enter(entry)
	l.waiters++
	g, lead := l.group, !l.leading
	l.leading = true
	l.mu.Unlock()
	if lead || <-g.wake { // true: this caller has to lead; false, since closed: the entry was written
		l.lead()
	}
	return g.err
}

// lead writes and syncs the entries of the callers that wait (the group), ends their wait by closing wake, and lets one of the callers that came
// meanwhile do the same. The caller does not hold the lock; gather takes it. Only one caller leads at a time.
func (l *rawLog) lead() {
	l.gather()
	g, buf := l.group, l.buf
	l.group = &group{wake: make(chan bool, 1)}
	l.buf, l.spare, l.waiters = l.spare[:0], nil, 0 // the two buffers take turns
	l.mu.Unlock()
	if _, g.err = l.file.Write(buf); g.err == nil {
		g.err = l.sync(l.file)
	}
	l.mu.Lock()
	l.spare = buf[:0]
	l.syncs++
	l.bytes += int64(len(buf))
	if l.waiters > 0 {
		l.group.wake <- true
	} else {
		l.leading = false
	}
	l.mu.Unlock()
	close(g.wake)
}

// gather gives other callers the time to add their entries to the write: it yields the processor as long as callers come, 8 times at most. It returns
// with mu locked.
func (l *rawLog) gather() {
	joined := 0
	for range 8 {
		runtime.Gosched()
		l.mu.Lock()
		if l.waiters <= joined+1 { // nobody or one has come: to wait for more does not pay
			return
		}
		joined = l.waiters
		l.mu.Unlock()
	}
	l.mu.Lock()
}

// close closes the file. Entries of later without a following append may be lost.
func (l *rawLog) close() error { return l.file.Close() }
