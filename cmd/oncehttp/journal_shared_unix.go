//go:build unix

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"syscall"
)

// ownerLock is a lock that its process holds for as long as it lives.
type ownerLock struct {
	owner string
	file  *os.File
}

// ownerFile is the name of the file that an owner of leases locks.
func ownerFile(path, owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return path + ".owner-" + hex.EncodeToString(sum[:8])
}

// lockOwnerFile makes and locks the file of an owner who is named by a random id.
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

// release removes the file and gives up the lock.
func (l *ownerLock) release() {
	_ = os.Remove(l.file.Name())
	_ = l.file.Close()
}

// ownerLives reports whether the process of an owner may still live. The file of
// one that has died is removed.
func ownerLives(path, owner string) bool {
	f, err := os.OpenFile(ownerFile(path, owner), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return true
	}
	_ = os.Remove(f.Name())
	return false
}
