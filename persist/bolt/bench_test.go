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

func parallel(b *testing.B, writers int, op func(i int64)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range writers {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				op(i)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
}

func BenchmarkBegin(b *testing.B) {
	for _, slow := range []bool{false, true} {
		sync, name := fdatasync, "disk"
		if slow {
			sync, name = slowSync, "5ms"
		}
		for _, writers := range []int{1, 64, 256} {
			for _, yield := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%d/rawlog-yield=%t", name, writers, yield), func(b *testing.B) {
					f, err := os.Create(filepath.Join(b.TempDir(), "log"))
					if err != nil {
						b.Fatal(err)
					}
					defer f.Close()
					l := &rawLog{f: f, sync: sync, wake: make(chan bool, 1), yield: yield}
					parallel(b, writers, func(i int64) {
						var buf [300]byte
						l.append(buf[:])
					})
				})
			}
			b.Run(fmt.Sprintf("%s/%d/bolt", name, writers), func(b *testing.B) {
				j, err := bolt.Open(filepath.Join(b.TempDir(), "j.db"), bolt.Options{Sync: sync})
				if err != nil {
					b.Fatal(err)
				}
				defer j.Close()
				r := record("")
				parallel(b, writers, func(i int64) {
					r := r
					r.Key = fmt.Sprintf("idemp:order:u%d:o%d", i%977, i)
					r.WireKey = r.Key
					if _, created, err := j.Begin(context.Background(), r); err != nil || !created {
						b.Error(created, err)
					}
				})
				s := j.Stats()
				b.ReportMetric(float64(s.Syncs)/float64(b.N), "fsync/op")
				b.ReportMetric(float64(s.Bytes)/float64(b.N), "B-written/op")
			})
			b.Run(fmt.Sprintf("%s/%d/bolt-finish", name, writers), func(b *testing.B) {
				j, err := bolt.Open(filepath.Join(b.TempDir(), "j.db"), bolt.Options{Sync: sync})
				if err != nil {
					b.Fatal(err)
				}
				defer j.Close()
				r := record("")
				a := &persist.Answer{Status: 201, Body: make([]byte, 100)}
				parallel(b, writers, func(i int64) {
					r := r
					r.Key = fmt.Sprintf("idemp:order:u%d:o%d", i%977, i)
					r.WireKey = r.Key
					r, created, err := j.Begin(context.Background(), r)
					if err != nil || !created {
						b.Error(created, err)
					}
					r.State, r.Finished, r.Answer = persist.Confirmed, r.Created, a
					if err := j.Finish(context.Background(), r); err != nil {
						b.Error(err)
					}
				})
				s := j.Stats()
				b.ReportMetric(float64(s.Syncs)/float64(b.N), "fsync/op")
				b.ReportMetric(float64(s.Bytes)/float64(b.N), "B-written/op")
			})
			if writers == 64 && !slow {
				b.Run(fmt.Sprintf("%s/%d/naive", name, writers), func(b *testing.B) {
					db, err := bbolt.Open(filepath.Join(b.TempDir(), "n.db"), 0o600, nil)
					if err != nil {
						b.Fatal(err)
					}
					defer db.Close()
					parallel(b, writers, func(i int64) {
						err := db.Update(func(tx *bbolt.Tx) error {
							bk, err := tx.CreateBucketIfNotExists([]byte("b"))
							if err != nil {
								return err
							}
							return bk.Put(binary.BigEndian.AppendUint64(nil, uint64(i)), make([]byte, 300))
						})
						if err != nil {
							b.Error(err)
						}
					})
				})
			}
		}
	}
}
