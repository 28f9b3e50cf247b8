package terminal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// WriteWhole writes the file called name, whole or not at all: a reader at any time, and a full disk, find the file as it was. flag names the
// output in errors. A new file has this mode, and another one keeps what it has beyond it; a device or a pipe is written directly. Of a link the target is
// replaced, and the link stays. An error after the file was made has the status ExitUnknown.
func WriteWhole(flag, name string, mode fs.FileMode, write func(io.Writer) error) error {
	fail := func(err error) error { return fmt.Errorf("%s %s: %w", flag, name, words.Pathless(err)) }
	target := name
	if real, err := filepath.EvalSymlinks(name); err == nil {
		target = real
	}
	info, err := os.Stat(target)
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err == nil {
			err = cmp.Or(write(f), f.Close())
		}
		if err != nil {
			return fail(err)
		}
		return nil
	}
	if err == nil {
		mode |= info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".oncehttp-*.tmp")
	if err != nil {
		return fail(err)
	}
	err = write(f)
	err = cmp.Or(err, f.Chmod(mode), f.Sync())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return &ExitError{Status: ExitUnknown, Err: fail(err)}
	}
	return nil
}
