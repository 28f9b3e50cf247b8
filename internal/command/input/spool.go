package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"syscall"

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

// Write appends p: to memory up to the limit, and then to a temporary file. Its errors do not name that file, whose name means nothing to a user.
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

// spill moves the bytes in memory into a new temporary file. The file loses its name at once, so that it goes with the process; on Windows Close removes it.
func (s *Spool) spill() error {
	f, err := CreateTemp(s.Dir, ".oncehttp-input-*")
	if err != nil {
		return err
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

// CreateTemp creates a temporary file that only its owner may read, by a pattern of os.CreateTemp: in dir, which has more room than TMPDIR as a rule, or
// in TMPDIR if dir may not be written to.
func CreateTemp(dir, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		f, err = os.CreateTemp("", pattern)
	}
	if err != nil {
		return nil, fmt.Errorf("a temporary file beside the journal, or in TMPDIR: %w", words.Pathless(err))
	}
	return f, nil
}

// Reader returns a reader of all written bytes, from the beginning.
func (s *Spool) Reader() io.Reader {
	if s.file == nil {
		return bytes.NewReader(s.memory.Bytes())
	}
	return io.NewSectionReader(s.file, 0, math.MaxInt64)
}

// Close removes the temporary file, if there is one.
func (s *Spool) Close() {
	if s.file != nil {
		_ = s.file.Close() // it is thrown away
	}
	if s.remove != "" {
		_ = os.Remove(s.remove)
	}
}
