package terminal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// SpareJournal returns an error if the file called name is a journal, which an output would overwrite. flag names the output in the error. A missing file is free.
func SpareJournal(flag, name string) error { return SpareOthers(flag, name, "") }

// SpareOthers refuses to write over a file of something else: a journal, or any file that does not begin with begins, as each output of this command
// does. The case of letters does not count, and an empty or absent file is free. Empty begins: only a journal is refused. flag names the output.
// A journal is known by the magic number of bbolt, its database, at the end of the first pageHead bytes.
func SpareOthers(flag, name, begins string) error {
	info, err := os.Stat(name)
	if name == "" || err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil // the write says so
	}
	defer f.Close()
	head := make([]byte, max(pageHead, len(begins)))
	n, _ := io.ReadFull(f, head)
	switch head = head[:n]; {
	case n >= pageHead && binary.NativeEndian.Uint32(head[pageHead-4:]) == bboltMagic:
		return fmt.Errorf("%s %s is a journal, which is not written over: name another file", flag, name)
	case n > 0 && (n < len(begins) || !bytes.EqualFold(head[:len(begins)], []byte(begins))):
		return fmt.Errorf("%s %s holds something else than this command writes: name another file, or remove it", flag, name)
	}
	return nil
}

// A file of bbolt begins with the head of a page, and behind it the magic number of a meta page.
const (
	pageHead   = 20
	bboltMagic = 0xED0CDAED
)
