package input

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// Spool keeps bytes written once, for reading from the beginning as often as needed. They are in memory up to Limit, then in a temporary
// file in Dir. Its user writes everything, then reads, then closes it; no two at once.
type Spool struct {
	Dir    string
	Limit  int
	memory bytes.Buffer
	file   *os.File // nil: memory holds everything
	remove string   // the file's name, if an open file cannot be removed
}

// Write appends p. Its errors do not name the file: the name means nothing to a user.
func (s *Spool) Write(p []byte) (int, error) {
	if s.file == nil && s.memory.Len()+len(p) <= s.Limit {
		return s.memory.Write(p)
	}
	if s.file == nil {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	n, err := s.file.Write(p)
	return n, words.Pathless(err)
}

// spill moves the bytes in memory into the file.
func (s *Spool) spill() error {
	f, err := os.CreateTemp(s.Dir, ".oncehttp-input-*") // mode 0600
	if err != nil {
		return fmt.Errorf("a temporary file beside the journal, or in TMPDIR: %w", words.Pathless(err))
	}
	s.file = f
	if os.Remove(f.Name()) != nil { // Windows removes no open file
		s.remove = f.Name()
	}
	if _, err := f.Write(s.memory.Bytes()); err != nil {
		return fmt.Errorf("a temporary file beside the journal, or in TMPDIR: %w", words.Pathless(err))
	}
	s.memory = bytes.Buffer{}
	return nil
}

// Reader returns a reader of all written bytes, from the beginning.
func (s *Spool) Reader() io.Reader {
	if s.file == nil {
		return bytes.NewReader(s.memory.Bytes())
	}
	return io.NewSectionReader(s.file, 0, math.MaxInt64)
}

// Close removes the file.
func (s *Spool) Close() {
	if s.file != nil {
		_ = s.file.Close() // it is thrown away
	}
	if s.remove != "" {
		_ = os.Remove(s.remove)
	}
}
