package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// TestRawLogIsHonest: every entry that append returned for was written, whole,
// and by far fewer syncs than entries. A rival that loses entries would be fast.
func TestRawLogIsHonest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "raw.log")
	var synced atomic.Int64
	log, err := openRawLog(path, func(f *os.File) error {
		info, err := f.Stat()
		synced.Store(info.Size())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const entries = 2000
	err = spread(t.Context(), entries, 64, func(i int64) error {
		if err := log.append(fmt.Appendf(nil, "entry %d", i)); err != nil {
			return err
		}
		if synced.Load() == 0 {
			return fmt.Errorf("entry %d returned before any sync", i)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if log.syncs >= entries {
		t.Errorf("%d syncs for %d entries", log.syncs, entries)
	}
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := synced.Load(), int64(len(text)); got != want {
		t.Errorf("synced %d bytes of %d", got, want)
	}
	found := map[string]bool{}
	for len(text) > 0 {
		n := binary.LittleEndian.Uint32(text)
		entry := text[8 : 8+n]
		if crc32.ChecksumIEEE(entry) != binary.LittleEndian.Uint32(text[4:]) {
			t.Fatalf("entry %q is damaged", entry)
		}
		found[string(entry)] = true
		text = text[8+n:]
	}
	if len(found) != entries {
		t.Errorf("found %d entries, want %d", len(found), entries)
	}
}
