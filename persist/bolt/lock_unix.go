//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package bolt

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// lockPoll is how often a lock that somebody else holds is tried again.
const lockPoll = 20 * time.Millisecond

// lock takes the lock that bbolt takes, so that the file can be read before
// bbolt opens it. bbolt then takes it again on the same open file, which is
// granted at once.
func lock(f *os.File, wait time.Duration) error {
	for deadline := time.Now().Add(wait); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		case !time.Now().Before(deadline):
			return persist.ErrLocked
		}
		time.Sleep(min(lockPoll, max(time.Until(deadline), 0)))
	}
}
