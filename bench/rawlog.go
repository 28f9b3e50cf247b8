package main

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"runtime"
	"strings"
	"sync"
)

// recordFiller stands for a record of the size that a payment's has in a
// journal.
var recordFiller = strings.Repeat("r", 360)

// rawLog is the rival that a journal is measured against: a file that is only
// appended to, each entry with its length and checksum, one write and one sync
// for all who wait. It keeps no index, finds nothing, frees nothing. The first
// who waits writes for all, and yields before it does for as long as others join,
// as the journal does: without that every other sync would serve a handful.
type rawLog struct {
	file *os.File
	sync func(*os.File) error

	mu      sync.Mutex
	buf     []byte
	spare   []byte
	waiters int
	leading bool
	group   *group
	syncs   int64
	bytes   int64
}

// group is all who wait for one sync.
type group struct {
	wake chan bool // true to the one who leads next; closed when err is known
	err  error
}

func openRawLog(path string, sync func(*os.File) error) (*rawLog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &rawLog{file: f, sync: sync, group: &group{wake: make(chan bool, 1)}}, nil
}

func (l *rawLog) enter(entry []byte) {
	l.buf = binary.LittleEndian.AppendUint32(l.buf, uint32(len(entry)))
	l.buf = binary.LittleEndian.AppendUint32(l.buf, crc32.ChecksumIEEE(entry))
	l.buf = append(l.buf, entry...)
}

// later queues an entry that the next sync makes durable.
func (l *rawLog) later(entry []byte) {
	l.mu.Lock()
	l.enter(entry)
	l.mu.Unlock()
}

// append returns when the entry is durable.
func (l *rawLog) append(entry []byte) error {
	l.mu.Lock()
	l.enter(entry)
	l.waiters++
	g, lead := l.group, !l.leading
	l.leading = true
	l.mu.Unlock()
	if lead || <-g.wake {
		l.lead()
	}
	return g.err
}

// lead writes and syncs for everybody, and passes the lead on.
func (l *rawLog) lead() {
	l.gather()
	g, buf := l.group, l.buf
	l.group = &group{wake: make(chan bool, 1)}
	l.buf, l.spare, l.waiters = l.spare[:0], nil, 0
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

// gather yields for as long as callers join, and returns with mu held.
func (l *rawLog) gather() {
	joined := 0
	for range 8 {
		runtime.Gosched()
		l.mu.Lock()
		if l.waiters <= joined+1 {
			return
		}
		joined = l.waiters
		l.mu.Unlock()
	}
	l.mu.Lock()
}

func (l *rawLog) close() error { return l.file.Close() }
