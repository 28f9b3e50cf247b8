//go:build unix

package place

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"syscall"
)

// ownerLock is a lock held by its process for as long as the process lives.
type ownerLock struct {
	owner string
	file  *os.File
}

// ownerFile returns the name of the file that a process locks while it lives, so that others see that its leases (claims to send) still count. owner is the id of
// the process in its leases; path is that of the journal.
func ownerFile(path, owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return path + ".owner-" + hex.EncodeToString(sum[:8])
}

// lockOwnerFile makes the file by which others see that this process lives, and locks it until release or the end of the process. path is that of the journal; owner
// is the random id of this process in its leases (claims to send).
func lockOwnerFile(path, owner string) (*ownerLock, error) {
	f, err := os.OpenFile(ownerFile(path, owner), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &ownerLock{owner, f}, nil
}

// release removes the owner's file and gives up its lock: the leases of this owner (its claims to send) then count as ended.
func (l *ownerLock) release() {
	_ = os.Remove(l.file.Name())
	_ = l.file.Close()
}

// ownerLives tells by the lock on an owner's file whether its process lives: ownerAlive, ownerDead, or ownerUnseen if the file cannot be opened. A process
// removes its file at its end, so that no file means a dead one. ownerLives removes the file that a dead one has left.
func ownerLives(path, owner string) life {
	f, err := os.OpenFile(ownerFile(path, owner), os.O_RDWR, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ownerDead
	case err != nil:
		return ownerUnseen
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return ownerAlive
	}
	_ = os.Remove(f.Name())
	return ownerDead
}
