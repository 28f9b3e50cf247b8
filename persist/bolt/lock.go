package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// lockPoll is the time between two tries of a lock held elsewhere.
const lockPoll = 20 * time.Millisecond

// retryLock calls try until it gets the lock. held tells that somebody else has it, and then another try can help. It asks again every lockPoll. It gives up
// with any other error of try, and with persist.ErrLocked when wait is over.
func retryLock(wait time.Duration, try func() (held bool, err error)) error {
	for deadline := time.Now().Add(wait); ; {
		held, err := try()
		switch {
		case err == nil:
			return nil
		case !held:
			return fmt.Errorf("lock: %w", err)
		case !time.Now().Before(deadline):
			return persist.ErrLocked
		}
		// The system has no lock with a time limit.
		time.Sleep(min(lockPoll, max(time.Until(deadline), 0)))
	}
}

// descriptors is the directory of a process's open files, if the system has it.
const descriptors = "/dev/fd"

// openHere reports whether this process has the file of f open a second time. Then the holder of the file's lock is this process itself, and the error can say
// so. It looks through the list of open files that some systems have as a directory (descriptors), and leaves out f itself. Without such a list it returns
// false.
func openHere(f *os.File) bool {
	mine, err := f.Stat()
	entries, listErr := os.ReadDir(descriptors)
	if err != nil || listErr != nil {
		return false
	}
	for _, e := range entries {
		if e.Name() == strconv.Itoa(int(f.Fd())) {
			continue
		}
		if other, err := os.Stat(filepath.Join(descriptors, e.Name())); err == nil && os.SameFile(mine, other) {
			return true
		}
	}
	return false
}

// lockedHere is persist.ErrLocked of a file already open in this process.
type lockedHere struct{}

// Error says that this process itself has the file open already, and how to proceed.
func (lockedHere) Error() string {
	return "this process has it open already: share one Journal, or one Client, or close the first"
}

// Is reports whether target is persist.ErrLocked.
func (lockedHere) Is(target error) bool { return target == persist.ErrLocked }
