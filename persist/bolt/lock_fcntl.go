//go:build aix || solaris || illumos

package bolt

import (
	"io"
	"os"
	"syscall"
	"time"
)

// lock takes the same lock as bbolt, so the file can be read and repaired before bbolt opens it. It is this
// process's, and bbolt is granted it again at once; so there is nothing to release for it.
// Errors: persist.ErrLocked, if another process has it for longer than wait.
func lock(f *os.File, wait time.Duration) (releaseForBbolt func() error, err error) {
	whole := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err = retryLock(wait, func() (held bool, err error) {
		err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &whole)
		return err == syscall.EAGAIN || err == syscall.EACCES, err
	})
	return func() error { return nil }, err
}

// unlock releases the lock.
func unlock(f *os.File) {
	whole := syscall.Flock_t{Type: syscall.F_UNLCK, Whence: io.SeekStart}
	_ = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &whole)
}
