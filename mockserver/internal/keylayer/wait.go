package keylayer

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Pause waits for d or until one of the channels closes (nil never does), and
// reports whether all of d has passed. Every wait of the package goes through
// it, so that no client that leaves and no Close is held up, and virtual time
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

// ReadAll reads a body that is bounded already; nil is empty.
func ReadAll(r io.Reader) ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	return io.ReadAll(r)
}

func isNotSupported(err error) bool { return errors.Is(err, http.ErrNotSupported) }
