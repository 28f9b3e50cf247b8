package bolt

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// The two locked bytes, far behind the end of any file. bbolt locks the very last byte. A range locked by
// this handle cannot be locked again, not even by the same handle, so a journal has a byte of its own.
const (
	bboltByte   = 0xffffffff
	journalByte = 0xfffffffe
)

// lock locks the journal's byte until the file is closed, and bbolt's byte until
// releaseForBbolt is called, just before bbolt opens the file. So no other journal
// and no other program with bbolt is in the file while it is read and repaired.
// Errors: persist.ErrLocked, if another open file has them for longer than wait.
func lock(f *os.File, wait time.Duration) (releaseForBbolt func() error, err error) {
	if err := lockByte(f, journalByte, wait); err != nil {
		return nil, err
	}
	if err := lockByte(f, bboltByte, wait); err != nil {
		return nil, err
	}
	return func() error {
		return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, byteAt(bboltByte))
	}, nil
}

// lockByte locks one byte of a file for this handle alone. It waits for another holder for as long as wait, and returns persist.ErrLocked then.
func lockByte(f *os.File, at uint32, wait time.Duration) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return retryLock(wait, func() (held bool, err error) {
		err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, byteAt(at))
		return errors.Is(err, windows.ERROR_LOCK_VIOLATION), err
	})
}

// byteAt returns a byte as Windows names it: in the last four gigabytes of the largest possible file.
func byteAt(at uint32) *windows.Overlapped {
	return &windows.Overlapped{Offset: at, OffsetHigh: 0xffffffff}
}

// unlock releases the locks of both bytes. A byte that f has not locked is no error.
func unlock(f *os.File) {
	for _, at := range [...]uint32{journalByte, bboltByte} {
		_ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, byteAt(at))
	}
}
