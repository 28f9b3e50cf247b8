package bolt_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/persist/bolt"
)

// disk is a model of what of a file is on the disk. The file itself stands for the
// kernel's memory: what is written is there at once, and reaches the disk sector by
// sector, in any order, until a sync that succeeds. After a sync that fails the
// kernel takes every sector for clean, whether it has reached the disk or not. Of bbolt's
// own syncs it knows nothing, so that it holds less than a real disk.
type disk struct {
	t       testing.TB
	path    string
	r       *rand.Rand
	durable []byte
	seen    []byte       // the file, when it was last looked at
	dirty   map[int]bool // sectors that are in memory only
	fail    bool         // the next sync fails
	commit  bool         // the next sync is that of a commit
}

// newDisk is a disk that holds file, at path.
func newDisk(t testing.TB, path string, r *rand.Rand, file []byte) *disk {
	t.Helper()
	d := &disk{t: t, path: path, r: r}
	d.reset(file)
	return d
}

// reset makes the disk and the memory hold file.
func (d *disk) reset(file []byte) {
	if file != nil {
		writeFile(d.t, d.path, file)
	}
	d.durable, d.seen, d.dirty, d.fail = slices.Clone(file), slices.Clone(file), map[int]bool{}, false
}

// options are those of a journal on this disk.
func (d *disk) options() bolt.Options {
	opts := bolt.Options{Sync: func(*os.File) error { return d.sync() }}
	opts = bolt.WithCommit(opts, func() error {
		d.commit = true
		return nil
	})
	return bolt.WithWrite(opts, func(b []byte, at int64) error {
		d.write(int(at), len(b))
		return nil
	})
}

// look finds out which sectors were written since it last looked. A sector that was
// written over with the same bytes is found by write, or by sync.
func (d *disk) look() {
	now := readFile(d.t, d.path)
	for s := 0; s*sectorSize < len(now); s++ {
		if !bytes.Equal(sector(now, s), sector(d.seen, s)) {
			d.dirty[s] = true
		}
	}
	if len(d.durable) < len(now) { // how long a file is, bbolt syncs itself
		d.durable = append(d.durable, make([]byte, len(now)-len(d.durable))...)
	}
	d.seen = now
}

// sector is a part of a file, zeros where it ends.
func sector(file []byte, s int) []byte {
	var b [sectorSize]byte
	if s*sectorSize < len(file) {
		copy(b[:], file[s*sectorSize:])
	}
	return b[:]
}

// write notes that a part of the file is written, perhaps as it was.
func (d *disk) write(at, n int) {
	for s := at / sectorSize; s*sectorSize < at+n; s++ {
		d.dirty[s] = true
	}
}

// sync is what the journal's Sync does on this disk.
func (d *disk) sync() error {
	d.look()
	if d.commit { // some of what bbolt wrote may be as it was
		for _, p := range bolt.NewPages(d.seen) {
			d.write(int(p)*pageSize, pageSize)
		}
	}
	fails := d.fail
	d.fail, d.commit = false, false
	for _, s := range slices.Sorted(maps.Keys(d.dirty)) {
		if !fails || d.r.IntN(2) == 0 {
			d.reach(d.durable, s)
		}
	}
	clear(d.dirty)
	if fails {
		return syscall.EIO
	}
	return nil
}

// reach lets a sector reach a disk that holds file.
func (d *disk) reach(file []byte, s int) {
	if s*sectorSize < len(file) {
		copy(file[s*sectorSize:], sector(d.seen, s)[:min(sectorSize, len(file)-s*sectorSize)])
	}
}

// afterPowerLoss is what the disk holds if the power fails now and each dirty
// sector has reached it with this probability.
func (d *disk) afterPowerLoss(reached float64) []byte {
	d.look()
	file := slices.Clone(d.durable)
	for _, s := range slices.Sorted(maps.Keys(d.dirty)) {
		if d.r.Float64() < reached {
			d.reach(file, s)
		}
	}
	return file
}
