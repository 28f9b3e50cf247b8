package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// ErrSameFile returns the error for an output that is the same file as another one.
func ErrSameFile(out, other string) error {
	return fmt.Errorf("--out %s is the same file as %s", out, other)
}

// SamePath reports whether two names lead to the same file, also by links. If one of the files does not exist yet, the absolute names are compared.
func SamePath(a, b string) bool {
	ia, errA := os.Stat(a)
	ib, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(ia, ib)
	}
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return errA == nil && errB == nil && absA == absB
}

// OpenOut opens the file called name for writing, emptied, or returns stdout if name is empty. closeOut closes the file, and leaves stdout open.
func OpenOut(name string, stdout io.Writer) (w io.Writer, closeOut func() error, err error) {
	if name == "" {
		return stdout, func() error { return nil }, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("--out %s: %w", name, words.Pathless(err))
	}
	return f, func() error {
		if err := f.Close(); err != nil {
			return fmt.Errorf("--out %s: %w", name, words.Pathless(err))
		}
		return nil
	}, nil
}

var ErrTooLong = errors.New("is too long")

// ReadAtMost reads r to its end. More than limit bytes are the error ErrTooLong.
func ReadAtMost(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%w: more than %d bytes", ErrTooLong, limit)
	}
	return b, err
}

// ReadBounded reads a file. It returns an error if the file is larger than limit.
func ReadBounded(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, words.Pathless(err))
	}
	defer f.Close()
	b, err := ReadAtMost(f, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, words.Pathless(err))
	}
	return b, nil
}

// CheckFolder returns an error if the file called name could not be written: it is a folder or a journal, or its folder is missing. It is called before the work, so
// that no result is lost. An empty name is none.
func CheckFolder(name string) error {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return fmt.Errorf("--out %s: is a directory", name)
	}
	if err := SpareJournal("--out", name); err != nil {
		return err
	}
	info, err := os.Stat(filepath.Dir(name))
	switch {
	case err != nil:
		return fmt.Errorf("--out %s: %w", name, words.Pathless(err))
	case !info.IsDir():
		return fmt.Errorf("--out %s: its folder is no folder", name)
	}
	return nil
}

const HeaderFileBytesMax = 1 << 20
