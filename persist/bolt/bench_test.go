//go:build linux

package bolt_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// rawLog is what no journal can beat by much: a file that is appended to, one
// write and one sync for all who wait. With yield it gives the released callers
// the chance to join, as the journal does.
type rawLog struct {
	f     *os.File
	sync  func(*os.File) error
	yield bool
	mu    sync.Mutex
	buf   []byte
	spare []byte
	wake  chan bool
	busy  bool
	n     int
}

func (l *rawLog) append(b []byte) {
	l.mu.Lock()
	l.buf = append(l.buf, b...)
	lead, wake := !l.busy, l.wake
	l.busy = true
	l.n++
	l.mu.Unlock()
	if !lead && !<-wake {
		return
	}
	if l.yield {
		runtime.Gosched()
	}
	l.mu.Lock()
	buf := l.buf
	wake = l.wake
	l.buf, l.spare, l.wake, l.n = l.spare[:0], nil, make(chan bool, 1), 0
	l.mu.Unlock()
	if _, err := l.f.Write(buf); err != nil {
		panic(err)
	}
	if err := l.sync(l.f); err != nil {
		panic(err)
	}
	l.mu.Lock()
	l.spare = buf
	if l.n > 0 {
		l.wake <- true
	} else {
		l.busy = false
	}
	l.mu.Unlock()
	close(wake)
}

func fdatasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

func slowSync(f *os.File) error {
	time.Sleep(5 * time.Millisecond)
	return fdatasync(f)
}

// parallel spreads b.N operations over writers.
func parallel(b *testing.B, writers int, op func(i int64)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range writers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				op(i)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
}

// BenchmarkBegin puts the journal beside a raw log, which is the limit, and
// beside one bbolt Update per record, which is what it is to be better than, on
// the disk as it is and on one where every sync takes 5 ms.
func BenchmarkBegin(b *testing.B) {
	for _, disk := range []struct {
		name string
		sync func(*os.File) error
	}{{"disk", fdatasync}, {"5ms", slowSync}} {
		for _, writers := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("%s/writers=%d", disk.name, writers), func(b *testing.B) {
				b.Run("rawlog", func(b *testing.B) { benchRawLog(b, writers, disk.sync, false) })
				b.Run("rawlog-yield", func(b *testing.B) { benchRawLog(b, writers, disk.sync, true) })
				b.Run("begin", func(b *testing.B) { benchJournal(b, writers, disk.sync, false) })
				b.Run("begin+finish", func(b *testing.B) { benchJournal(b, writers, disk.sync, true) })
				if disk.name == "disk" {
					b.Run("update-each", func(b *testing.B) { benchUpdates(b, writers) })
				}
			})
		}
	}
}

func benchRawLog(b *testing.B, writers int, sync func(*os.File) error, yield bool) {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	l := &rawLog{f: f, sync: sync, wake: make(chan bool, 1), yield: yield}
	parallel(b, writers, func(int64) {
		var buf [400]byte
		l.append(buf[:])
	})
}

func benchJournal(b *testing.B, writers int, sync func(*os.File) error, finish bool) {
	j := openWith(b, newPath(b), bolt.Options{Sync: sync})
	plain, ctx := record(""), context.Background()
	answer := &persist.Answer{Status: 201, Body: make([]byte, 100)}
	parallel(b, writers, func(i int64) {
		r := plain
		// A business key: unlike those of its neighbours.
		r.Key = fmt.Sprintf("idemp:order:u%d:o%d", i*7919%1000003, i)
		r.WireKey = r.Key
		r, created, err := j.Begin(ctx, r)
		if err != nil || !created {
			b.Error(created, err)
		}
		if !finish {
			return
		}
		r.State, r.Finished, r.Answer = persist.StateConfirmed, r.Created, answer
		if err := j.Finish(ctx, r); err != nil {
			b.Error(err)
		}
	})
	s := j.Stats()
	b.ReportMetric(float64(s.Syncs)/float64(b.N), "sync/op")
	b.ReportMetric(float64(s.Bytes)/float64(b.N), "B-written/op")
}

func benchUpdates(b *testing.B, writers int) {
	db, err := bbolt.Open(newPath(b), 0o600, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	value := make([]byte, 400)
	parallel(b, writers, func(i int64) {
		err := db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("records"))
			if err != nil {
				return err
			}
			return bucket.Put(binary.BigEndian.AppendUint64(nil, uint64(i)), value)
		})
		if err != nil {
			b.Error(err)
		}
	})
}
