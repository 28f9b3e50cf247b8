package bolt

import (
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// lockPoll is how often a lock that is held elsewhere is tried again.
const lockPoll = 20 * time.Millisecond

// retryLock calls try until it succeeds, until it fails for another reason than
// that the lock is held, or until wait is over.
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
