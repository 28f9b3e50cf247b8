//go:build !unix

package place

// ownerLock is nothing here: on these systems a lock on a removable file can not show a living process.
type ownerLock struct{ owner string }

// lockOwnerFile locks nothing: this system has no such locks.
func lockOwnerFile(_, owner string) (*ownerLock, error) { return &ownerLock{owner}, nil }

// release does nothing: there are no such locks on this system.
func (*ownerLock) release() {}

// ownerLives returns ownerUnseen: without locks on this system nobody can tell whether a process lives, and a lease holds until it ends by itself.
func ownerLives(_, _ string) life { return ownerUnseen }
