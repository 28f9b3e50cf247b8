//go:build unix && !(aix || solaris || illumos)

package bolt

import (
	"os"
	"syscall"
	"time"
)

// lock takes the same lock as bbolt, so the file can be read and repaired before bbolt opens it. bbolt then
// takes it again on the same open file. This is granted at once, so there is nothing to release for it.
// Errors: persist.ErrLocked, if another open file has it for longer than wait.
func lock(f *os.File, wait time.Duration) (releaseForBbolt func() error, err error) {
	err = retryLock(wait, func() (held bool, err error) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		return err == syscall.EWOULDBLOCK || err == syscall.EINTR, err // after a signal, too, it is tried again
	})
	return func() error { return nil }, err
}

// unlock releases the lock. If a mapping of the file is left, closing the file does not.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
