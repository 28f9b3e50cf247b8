//go:build !unix

package place

// ownerLock is nothing here: whether a process lives cannot be seen by a lock on a
// file that others may remove.
type ownerLock struct{ owner string }

func lockOwnerFile(_, owner string) (*ownerLock, error) { return &ownerLock{owner}, nil }

func (*ownerLock) release() {}

// ownerLives cannot tell: a lease holds until it ends by itself.
func ownerLives(_, _ string) life { return ownerUnseen }
