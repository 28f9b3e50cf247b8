package keylayer

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Pause waits for d or until one of the channels is closed; a nil channel never is. True: all of d has passed, or d
// is not positive. Every wait of the mock uses it, so that a client that leaves and Close end it, and virtual time
// can pass.
func Pause(d time.Duration, end, otherEnd <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-end:
		return false
	case <-otherEnd:
		return false
	}
}

// ReadAll reads a body that is bounded already; a nil r is empty.
func ReadAll(r io.Reader) ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	return io.ReadAll(r)
}

// isNotSupported reports whether a connection lacks the feature that was asked for, as HTTP/2 lacks Hijack.
func isNotSupported(err error) bool { return errors.Is(err, http.ErrNotSupported) }
