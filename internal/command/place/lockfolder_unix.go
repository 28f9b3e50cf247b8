//go:build unix

package place

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lockFolderEvery is the time between two tries of LockFolder.
const lockFolderEvery = 10 * time.Millisecond

// LockFolder locks a folder for this process, so that another one with the same lock waits, and returns the function that unlocks it. It waits for the lock as long as
// wait says and ctx lasts; late is true if another process had it all the time. Then, and where folders cannot be locked, it locks nothing. No file is made, and nothing
// else in the folder is kept from anybody.
func LockFolder(ctx context.Context, folder string, wait time.Duration) (unlock func(), late bool) {
	f, err := os.Open(folder)
	if err != nil {
		return func() {}, false
	}
	for end := time.Now().Add(wait); ; time.Sleep(lockFolderEvery) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		taken := errors.Is(err, syscall.EWOULDBLOCK)
		if !taken || time.Now().After(end) || ctx.Err() != nil {
			return func() { _ = f.Close() }, taken // which ends the lock, if there is one
		}
	}
}
